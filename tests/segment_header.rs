//! A segment's file may be anything: cut, foreign, older, damaged. Opening it ends in a typed error, and nothing else.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
    pub(crate) mod object;
    pub(crate) mod skipped;
}

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use proptest::prelude::*;
use shoal::segment::control::RunState;
use shoal::segment::{Layout, Region, Segment, SegmentError, object, segment_name_prefix, system};
use support::forked::{self, Run, Sizes, run};
use support::object::{Object, path_of};
use support::skipped;

const PAGE_BYTES: usize = 4096;
/// Words of the header that name the PID and the time namespace.
const PID_NAMESPACE: usize = 11;
const TIME_NAMESPACE: usize = 12;
/// The word that holds the checksum: behind three for each region.
const CHECKSUM_WORD: usize = 32 + 3 * Region::ALL.len();
/// Bytes of the header that the checksum speaks for, and the checksum itself.
const CHECKED_BYTES: usize = 8 * (CHECKSUM_WORD + 1);

/// The error of opening a segment with these bytes, which must be the same for both ways of opening it.
fn error_of(bytes: &[u8]) -> SegmentError {
    let object = Object::new(bytes);
    let writable = Segment::attach(&object.name).err().expect("a damaged segment was accepted");
    let read_only = Segment::attach_read_only(&object.name).err().expect("a damaged segment was accepted read-only");
    assert_eq!(std::mem::discriminant(&writable), std::mem::discriminant(&read_only), "{writable} / {read_only}");
    assert!(!writable.to_string().is_empty());
    read_only
}

fn bytes_of(run: &Run) -> Vec<u8> {
    std::fs::read(path_of(run.segment.name())).expect("the segment's bytes")
}

fn small() -> Sizes {
    Sizes { capacity: 9, staged_rows: 1, network_parameters: 1, ..Sizes::default() }
}

#[test]
fn whatever_is_flipped_in_the_first_page_is_an_error_or_means_nothing() {
    let run = Run::new(small());
    let good = bytes_of(&run);
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(flips in prop::collection::vec((0usize..PAGE_BYTES, 1u8..=255), 1..6))| {
        let mut bytes = good.clone();
        for &(position, flip) in &flips {
            bytes[position] ^= flip;
        }
        if bytes[..CHECKED_BYTES] == good[..CHECKED_BYTES] {
            let object = Object::new(&bytes);
            let segment = Segment::attach_read_only(&object.name).expect("nothing behind the checksum means anything");
            prop_assert_eq!(segment.layout(), run.segment.layout());
            prop_assert_eq!(segment.identity(), run.segment.identity());
        } else {
            error_of(&bytes);
        }
    });
}

#[test]
fn any_single_bit_of_the_header_is_guarded() {
    let run = Run::new(small());
    let good = bytes_of(&run);
    for bit in 0..8 * CHECKED_BYTES {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = error_of(&bytes);
        let expected = match bit / 64 {
            1 => matches!(error, SegmentError::NotASegment { .. }),
            2 => matches!(error, SegmentError::Version { .. }),
            _ => matches!(error, SegmentError::Damaged { .. }),
        };
        assert!(expected, "bit {bit}: {error}");
    }
}

#[test]
fn random_pages_are_not_segments() {
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(bytes in prop::collection::vec(any::<u8>(), 1..3 * PAGE_BYTES))| {
        let error = error_of(&bytes);
        let expected = matches!(error, SegmentError::NotASegment { .. } | SegmentError::Damaged { .. });
        prop_assert!(expected, "{}", error);
    });
}

#[test]
fn a_consistent_header_that_claims_absurd_sizes_is_refused() {
    let run = Run::new(small());
    let good = bytes_of(&run);
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let value = prop_oneof![any::<u64>(), 0u64..100, Just(u64::MAX), Just(u64::MAX / 8 + 1)];
    proptest!(config, |(changes in prop::collection::vec((8usize..CHECKSUM_WORD, value), 1..4))| {
        let mut bytes = good.clone();
        for &(word, value) in &changes {
            bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[8..8 * CHECKSUM_WORD]);
        bytes[8 * CHECKSUM_WORD..][..8].copy_from_slice(&u64::from(sum).to_le_bytes());
        let object = Object::new(&bytes);
        // Identity and reserved words may say anything; sizes and offsets may not.
        match Segment::attach_read_only(&object.name) {
            Ok(segment) => prop_assert_eq!(segment.layout().sections(), run.segment.layout().sections()),
            Err(SegmentError::OtherPidNamespace { .. }) => prop_assert!(changes.iter().any(|&(word, _)| word == PID_NAMESPACE)),
            Err(SegmentError::OtherTimeNamespace { .. }) => prop_assert!(changes.iter().any(|&(word, _)| word == TIME_NAMESPACE)),
            Err(error) => prop_assert!(matches!(error, SegmentError::Damaged { .. }), "{}", error),
        }
    });
}

#[test]
fn a_segment_cut_or_lengthened_anywhere_is_refused() {
    let run = Run::new(small());
    let good = bytes_of(&run);
    let lengths = (1..good.len()).step_by(997).chain([PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, good.len() - 1]);
    for length in lengths {
        let error = error_of(&good[..length]);
        assert!(matches!(error, SegmentError::Damaged { .. }), "cut to {length} bytes: {error}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(error_of(&longer), SegmentError::Damaged { what: "the length of the object", .. }));
}

#[test]
fn empty_unpublished_missing_and_foreign_objects_are_told_apart() {
    let run = Run::new(small());
    assert!(matches!(error_of(&[]), SegmentError::Open { .. }));
    assert!(matches!(error_of(&vec![0; 2 * PAGE_BYTES]), SegmentError::NotReady));
    let mut unpublished = bytes_of(&run);
    unpublished[..8].fill(0);
    assert!(matches!(error_of(&unpublished), SegmentError::NotReady));
    let foreign = b"SQLite format 3\0".repeat(PAGE_BYTES / 16);
    assert!(matches!(error_of(&foreign), SegmentError::NotASegment { .. }));
    for open in [Segment::attach, Segment::attach_read_only] {
        assert!(matches!(open("/shoal-test-no-such-object"), Err(SegmentError::Open { .. })));
    }
}

#[test]
fn a_damaged_description_is_an_error_and_the_rest_stays_readable() {
    let run = Run::new(small());
    let good = bytes_of(&run);
    let section = run.segment.layout().section(Region::Description);
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(flips in prop::collection::vec((0..160usize, 1u8..=255), 1..6))| {
        let mut bytes = good.clone();
        for &(position, flip) in &flips {
            bytes[section.offset_bytes + position] ^= flip;
        }
        let object = Object::new(&bytes);
        let segment = Segment::attach_read_only(&object.name).expect("the header is whole");
        // Some damage still reads as a description; what counts is that nothing panics or allocates without bounds.
        if let Err(error) = segment.description() {
            prop_assert!(matches!(error, SegmentError::Description { .. }), "{}", error);
        }
    });
}

#[test]
fn what_was_written_is_what_an_attached_process_reads() {
    let run = Run::new(small());
    for open in [Segment::attach, Segment::attach_read_only] {
        let segment = open(run.segment.name()).expect("a live segment");
        assert_eq!((segment.layout(), segment.identity()), (run.segment.layout(), run.segment.identity()));
        assert_eq!(segment.description().expect("a description"), run::description(run.payload.schema()));
    }
}

#[test]
fn a_read_only_reader_that_writes_dies_and_changes_nothing() {
    let run = Run::new(small());
    run.segment.control().set_run_state(RunState::Running);
    let child = system::fork_child(|| {
        let segment = Segment::attach_read_only(run.segment.name()).expect("a live segment");
        assert_eq!(segment.control().run_state(), RunState::Running);
        segment.control().set_run_state(RunState::Poisoned);
        0
    });
    let status = waitpid(child.expect("fork"), None).expect("waitpid");
    assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGSEGV, _)), "{status:?}");
    assert_eq!(run.segment.control().run_state(), RunState::Running);
}

#[test]
fn the_object_is_private_exclusive_and_fully_backed() {
    let run = Run::new(Sizes { capacity: 10_000, ..small() });
    let path = path_of(run.segment.name());
    let metadata = File::open(&path).and_then(|file| file.metadata()).expect("the object");
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    assert_eq!(metadata.len(), run.segment.layout().total_bytes() as u64);
    let backed = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    assert!(backed >= metadata.len(), "{backed} of {} bytes are backed", metadata.len());
    let schema = run.payload.schema();
    let other = Segment::create(run::layout(small(), schema), &run::description(schema), false).expect("a small segment");
    assert_ne!(other.name(), run.segment.name(), "every run has a name of its own");
    // The name is taken: nobody can slip an object of his own in, nor can a second creation take the first one over.
    let again = shared_memory::ShmemConf::new().os_id(run.segment.name()).size(PAGE_BYTES).create();
    assert!(matches!(again, Err(shared_memory::ShmemError::MappingIdExists)));
}

#[test]
fn the_object_is_made_and_fully_backed_however_often_signals_come_meanwhile() {
    // Only older kernels are tested by this: with later ones only a signal that kills ends the call that reserves pages.
    let run = Run::new(small());
    let (reader, writer) = nix::unistd::pipe().expect("a pipe");
    let child = system::fork_child(|| {
        system::handle_stop_signals().expect("handlers");
        nix::unistd::write(&writer, b".").expect("a pipe");
        // Some five times as much as is reserved from one signal to the next.
        let layout = run::layout(Sizes { capacity: 200_000, ..small() }, run.payload.schema());
        let segment = Segment::create(layout, &run::description(run.payload.schema()), false).expect("a segment of 16 MB");
        let metadata = std::fs::metadata(path_of(segment.name())).expect("the object");
        i32::from(std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 < metadata.len())
    });
    let child = child.expect("fork");
    drop(writer);
    nix::unistd::read(&reader, &mut [0]).expect("a child that handles signals");
    let status = loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).expect("waitpid") {
            WaitStatus::StillAlive => nix::sys::signal::kill(child, Signal::SIGTERM).expect("signalling a child"),
            status => break status,
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(status, WaitStatus::Exited(child, 0));
}

#[test]
fn only_the_creator_removes_the_name_and_only_when_it_lives_no_more() {
    let run = Run::new(small());
    let name = run.segment.name().to_owned();
    // Forked children leave without destructors; attached ones and disowned handles own nothing.
    let child = system::fork_child(|| 0).expect("fork");
    waitpid(child, None).expect("waitpid");
    drop(Segment::attach(&name).expect("a live segment"));
    drop(Segment::attach_read_only(&name).expect("a live segment"));
    assert!(path_of(&name).exists());
    assert!(!object::remove_if_dead(&name), "a live run's segment was removed");
    assert!(path_of(&name).exists());
    drop(run);
    assert!(!path_of(&name).exists());
    assert!(object::remove_if_dead(&name), "what does not exist is gone");
}

#[test]
fn a_dead_run_is_removed_once_the_last_process_that_shares_it_is_gone() {
    let schema = forked::Payload::new().schema().clone();
    let (reader, writer) = nix::unistd::pipe().expect("a pipe");
    // A supervisor that creates a segment, forks a child that outlives it, and is killed.
    let supervisor = system::fork_child(|| {
        let segment = Segment::create(run::layout(small(), &schema), &run::description(&schema), false).expect("a small segment");
        let orphan = system::fork_survivor(|| {
            std::thread::sleep(std::time::Duration::from_secs(60));
            0
        });
        let line = format!("{} {}\n", segment.name(), orphan.expect("fork"));
        nix::unistd::write(&writer, line.as_bytes()).expect("a pipe");
        nix::sys::signal::raise(Signal::SIGKILL).expect("raise");
        0
    });
    drop(writer);
    waitpid(supervisor.expect("fork"), None).expect("waitpid");
    let mut line = [0; 256];
    let length = nix::unistd::read(&reader, &mut line).expect("a line");
    let line = String::from_utf8_lossy(&line[..length]).into_owned();
    let (name, orphan) = line.trim().split_once(' ').expect("a name and a process id");
    let orphan = nix::unistd::Pid::from_raw(orphan.parse().expect("a process id"));
    let kept = !object::remove_if_dead(name) && path_of(name).exists();
    nix::sys::signal::kill(orphan, Signal::SIGKILL).expect("killing the orphan");
    assert!(kept, "an orphan still shares the segment");
    forked::wait_until(|| object::remove_if_dead(name));
    assert!(!path_of(name).exists());
}

#[test]
fn sizes_beyond_the_memory_are_no_room_and_leave_nothing() {
    let mut sizes = *run::layout(small(), forked::Payload::new().schema()).sizes();
    sizes.capacity = shoal::segment::layout::MAX_CAPACITY;
    sizes.row_words = 1 << 20;
    let layout = Layout::new(sizes).expect("within the limits of a layout");
    let before = own_objects();
    let error = Segment::create(layout, &run::description(forked::Payload::new().schema()), false).err().expect("140 TB of memory");
    assert!(matches!(error, SegmentError::NoRoom { .. } | SegmentError::Create { .. }), "{error}");
    // Not every run has such a key, and one that goes on may not change it.
    assert!(!error.to_string().contains("replay.capacity"), "{error}");
    // Tests that run at the same time have objects of their own, which go with them.
    forked::wait_until(|| own_objects().iter().all(|name| before.contains(name)));
}

#[test]
fn a_full_shared_memory_file_system_is_an_error_before_anything_is_touched() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let schema = forked::Payload::new().schema().clone();
    const REFUSED: i32 = 77;
    let child = system::fork_child(|| {
        let nowhere: Option<&str> = None;
        let prepared = unshare(CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(nowhere, "/", nowhere, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nowhere))
            .and_then(|()| mount(Some("tmpfs"), "/dev/shm", Some("tmpfs"), MsFlags::empty(), Some("size=8m")));
        if prepared.is_err() {
            return REFUSED;
        }
        let attempt = |capacity: usize| {
            let layout = run::layout(Sizes { capacity, ..small() }, &schema);
            let total_bytes = layout.total_bytes();
            (Segment::create(layout, &run::description(&schema), false), total_bytes)
        };
        for percent in 1..=200 {
            let (result, total_bytes) = attempt(percent * 8 * (1 << 20) / 100 / 80);
            let fits = total_bytes <= 8 << 20;
            match result {
                Ok(segment) => {
                    assert!(fits, "{total_bytes} bytes were promised by a file system of 8 MiB");
                    // Every page can be touched.
                    for region in Region::ALL {
                        for word in segment.words(region) {
                            word.store(u64::MAX, shoal::sync::Ordering::Relaxed);
                        }
                    }
                }
                Err(SegmentError::NoRoom { needed_bytes, .. }) => assert!(!fits && needed_bytes == total_bytes),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(std::fs::read_dir("/dev/shm").expect("/dev/shm").count(), 0, "something was left behind");
        }
        0
    });
    match waitpid(child.expect("fork"), None).expect("waitpid") {
        WaitStatus::Exited(_, REFUSED) => skipped::because("mounting a small /dev/shm in a namespace of its own needs root"),
        status => assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}"),
    }
}

fn own_objects() -> Vec<String> {
    let wanted = format!("{}{}-", segment_name_prefix(), std::process::id());
    let entries = std::fs::read_dir("/dev/shm").expect("/dev/shm").filter_map(Result::ok);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| format!("/{name}").starts_with(&wanted));
    names.sort();
    names
}

#[test]
fn bytes_behind_a_reader_may_change_without_harm_to_it() {
    let run = Run::new(small());
    let reader = Segment::attach_read_only(run.segment.name()).expect("a live segment");
    let file = OpenOptions::new().write(true).open(path_of(run.segment.name())).expect("the object");
    file.write_all_at(&[0xff; PAGE_BYTES], 0).expect("overwriting the header");
    assert_eq!(reader.layout(), run.segment.layout(), "what was validated is kept, not read again");
    assert!(reader.description().is_ok());
    assert!(matches!(Segment::attach_read_only(run.segment.name()), Err(SegmentError::NotASegment { .. })));
}
