//! What killed supervisors left is removed; nothing of a living run is.
//!
//! Shared memory is the machine's, so whoever starts anything meanwhile sweeps, too: what is dead may be gone before the
//! test looks, or be in the hands of another sweep for a moment.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::fcntl::AT_FDCWD;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, mkfifo};
use shoal::rendezvous::{Listener, Liveliness, RendezvousError, remove_dead_replays};
use shoal::segment::{Segment, object, system};
use shoal::standalone::ReplayHandle;
use shoal::sync::{AtomicU64, Ordering};

use super::{Child, Place, sleep_for_ever};
use crate::support::forked;
use crate::support::forked::shared::options;
use crate::support::object::{Object, ended_process, name_of, path_of};

/// An object in the shared-memory file system, as if made by process `pid` this many seconds ago.
fn aged(prefix: &str, pid: u32, bytes: &[u8], age_s: u64) -> Object {
    let object = Object::named(name_of(prefix, pid), bytes);
    age(&object.path(), age_s);
    object
}

fn age(path: &Path, age_s: u64) {
    let time = SystemTime::now() - Duration::from_secs(age_s);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn own_prefix() -> String {
    format!("shoal-{}", nix::unistd::getuid())
}

/// A supervisor in a process of its own, which has created a segment, listens and is announced; `heir` runs in it
/// before it says so and waits to be killed. Returned with the name of its segment.
fn supervisor(place: &Place, heir: impl FnOnce(&Segment)) -> (Child, String) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let child = Child::fork(|| {
        let segment = place.segment();
        let record = place.record_of(&segment);
        let _listener = Listener::bind(&record.socket).unwrap();
        let _announcement = place.announce(&record).unwrap();
        heir(&segment);
        writeln!(writer, "{}", segment.name()).unwrap();
        sleep_for_ever()
    });
    drop(writer);
    let mut name = String::new();
    BufReader::new(reader).read_line(&mut name).unwrap();
    assert!(name.ends_with('\n') && path_of(name.trim_end()).exists(), "the supervisor failed");
    (child, name.trim_end().into())
}

#[test]
fn a_killed_supervisor_leaves_its_segment_record_and_socket_and_they_are_removed() {
    let place = Place::new();
    let (mut child, segment) = supervisor(&place, |_| ());
    let entry = place.registry.find(child.pid()).unwrap();
    assert!(!place.registry.clean(&entry), "it lives");
    assert!(path_of(&segment).exists() && place.file_names().len() == 2, "{:?}", place.file_names());
    child.signal(Signal::SIGKILL);
    let pid = child.pid();
    child.reap();
    assert_eq!(place.file_names().len(), 2, "{:?}", place.file_names());
    let entry = place.registry.find(pid).unwrap();
    assert_eq!(entry.state, Liveliness::Dead);
    forked::wait_until(|| place.registry.clean(&entry));
    assert!(!path_of(&segment).exists());
    assert_eq!(place.file_names(), Vec::<String>::new());
}

/// A process that outlives its parent, by the word in which that notes its id; killed when dropped.
struct Survivor<'a>(&'a AtomicU64);

impl Survivor<'_> {
    /// Kill it; whether it lived.
    fn kill(&self) -> bool {
        let pid = i32::try_from(self.0.swap(0, Ordering::SeqCst)).expect("a process id");
        pid != 0 && nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()
    }
}

impl Drop for Survivor<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_dead_run_is_kept_while_a_process_of_it_lives() {
    let place = Place::new();
    let survivor = Survivor(place.run.scratch(0));
    let (mut child, segment) = supervisor(&place, |segment| {
        let pid = system::fork_survivor(|| {
            segment.disown();
            sleep_for_ever()
        });
        survivor.0.store(pid.unwrap().as_raw().cast_unsigned().into(), Ordering::SeqCst);
    });
    child.signal(Signal::SIGKILL);
    let pid = child.pid();
    child.reap();
    let entry = place.registry.find(pid).unwrap();
    assert_eq!(entry.state, Liveliness::Dead);
    let kept = !place.registry.clean(&entry) && path_of(&segment).exists() && place.registry.find(pid).is_ok();
    assert!(survivor.kill(), "there was no survivor");
    assert!(kept, "a living process was robbed of its segment's name");
    forked::wait_until(|| place.registry.clean(&entry));
    assert!(!path_of(&segment).exists());
}

#[test]
fn a_sweep_removes_every_dead_run_and_no_living_one() {
    let place = Place::new();
    let _announcement = place.announce(&place.record()).unwrap();
    let (living, kept) = supervisor(&place, |_| ());
    let (mut dead, removed) = supervisor(&place, |_| ());
    dead.signal(Signal::SIGKILL);
    dead.reap();
    let mut swept = Vec::new();
    forked::wait_until(|| {
        swept.extend(place.registry.sweep());
        swept.contains(&removed)
    });
    assert!(!swept.contains(&kept), "{swept:?}");
    assert!(!path_of(&removed).exists() && path_of(&kept).exists() && path_of(place.run.segment.name()).exists());
    let mut left: Vec<u32> = place.registry.list().iter().map(|entry| entry.record.identity.supervisor_pid).collect();
    left.sort_unstable();
    let mut expected = [std::process::id(), living.pid()];
    expected.sort_unstable();
    assert_eq!(left, expected);
    drop(living);
    forked::wait_until(|| place.registry.sweep().contains(&kept));
}

#[test]
fn orphaned_segments_are_removed_whatever_they_hold() {
    let place = Place::new();
    let (mut child, whole) = supervisor(&place, |_| ());
    child.signal(Signal::SIGKILL);
    let pid = child.pid();
    child.reap();
    fs::remove_file(place.registry.folder().join(format!("{pid}.json"))).unwrap();
    // Killed while the pages were being reserved, killed before that, and left by a version with another header.
    let unpublished = aged(&own_prefix(), ended_process(), &[0; 8192], 10);
    let empty = aged(&own_prefix(), ended_process(), b"", 10);
    let foreign = aged(&own_prefix(), ended_process(), &[7; 8192], 10);
    let names = [&whole, &unpublished.name, &empty.name, &foreign.name];
    forked::wait_until(|| {
        place.registry.sweep();
        !names.iter().any(|name| path_of(name).exists())
    });
    assert!(place.file_names().iter().all(|name| !name.ends_with(".json")), "{:?}", place.file_names());
}

#[test]
fn what_may_belong_to_a_living_process_is_no_orphan() {
    let place = Place::new();
    let young = aged(&own_prefix(), ended_process(), &[0; 8192], 0);
    let of_the_living = aged(&own_prefix(), std::process::id(), &[0; 8192], 3_600);
    let of_another_user = aged("shoal-4000000", ended_process(), &[0; 8192], 3_600);
    let of_another_program = aged("sheep-0", ended_process(), &[0; 8192], 3_600);
    let nameless = aged(&format!("{}-x", own_prefix()), ended_process(), &[0; 8192], 3_600);
    age(&path_of(place.run.segment.name()), 3_600);
    place.registry.sweep();
    assert!(path_of(place.run.segment.name()).exists(), "the segment of this process, which no record names");
    for kept in [young, of_the_living, of_another_user, of_another_program, nameless] {
        assert!(kept.exists(), "{}", kept.name);
    }
}

#[test]
fn a_record_cannot_have_objects_of_others_removed() {
    let place = Place::new();
    let foreign = aged("sheep-0", ended_process(), b"wool", 3_600);
    let mut record = place.record();
    record.identity.supervisor_pid = ended_process();
    record.segment.clone_from(&foreign.name);
    record.socket = place.folder.path().join("not-a-socket-of-the-registry");
    fs::write(&record.socket, "").unwrap();
    std::mem::forget(place.announce(&record).unwrap());
    place.registry.sweep();
    assert!(foreign.exists() && record.socket.exists());
    assert!(place.registry.list().is_empty(), "the record itself is removed");
}

#[test]
fn a_record_that_was_replaced_meanwhile_stays() {
    let place = Place::new();
    let mut old = place.record();
    old.identity.supervisor_start_time += 1;
    old.segment = format!("/{}-1-gone", own_prefix());
    let stale = {
        let _announcement = place.announce(&old).unwrap();
        place.registry.find(std::process::id()).unwrap()
    };
    assert_eq!(stale.state, Liveliness::Dead);
    // The id went to a new supervisor between the look and the cleaning.
    let _announcement = place.announce(&place.record()).unwrap();
    fs::write(place.record().socket, "").unwrap();
    assert!(place.registry.clean(&stale));
    assert_eq!(place.registry.find(std::process::id()).unwrap().state, Liveliness::Running);
    assert_eq!(place.file_names().len(), 2);
}

#[test]
fn stray_files_of_the_dead_disappear_and_others_stay() {
    let place = Place::new();
    let put = |name: String, age_s: u64| {
        let path = place.registry.folder().join(name);
        fs::write(&path, "{").unwrap();
        age(&path, age_s);
    };
    let (dead, other_dead, living) = (ended_process(), ended_process(), std::process::id());
    put(format!("{dead}.json"), 10);
    put(format!("{dead}.new"), 10);
    put(format!("{dead}.socket"), 10);
    put(format!("{other_dead}.socket"), 0);
    put(format!("{living}.new"), 10);
    put("notes.text".into(), 10);
    let _listening = UnixListener::bind(place.registry.folder().join(format!("{living}.socket"))).unwrap();
    place.registry.sweep();
    let mut expected = vec![format!("{other_dead}.socket"), format!("{living}.new"), format!("{living}.socket"), "notes.text".into()];
    expected.sort();
    assert_eq!(place.file_names(), expected);
}

#[test]
fn who_can_open_no_more_files_takes_nobody_for_dead_and_removes_nothing() {
    let place = Place::new();
    let record = place.record();
    let _announcement = place.announce(&record).unwrap();
    fs::write(&record.socket, "stands for the socket").unwrap();
    let files = place.file_names();
    files.iter().for_each(|name| age(&place.registry.folder().join(name), 10));
    let mut child = Child::fork(|| {
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 64, most).unwrap();
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        assert!(record.identity.is_of_this_boot() && object::is_shared(&record.segment));
        let found = place.registry.find(record.identity.supervisor_pid);
        assert!(matches!(found, Err(RendezvousError::File { .. })), "it cannot be looked for");
        // From now on the folder can be listed, and no file in it opened meanwhile.
        drop(taken.pop().expect("there was room for some"));
        place.registry.sweep();
        0
    });
    assert!(matches!(child.reap(), WaitStatus::Exited(_, 0)));
    assert_eq!(place.file_names(), files);
}

/// A name of a dead process's, under which somebody has put something that is no segment.
fn stranger(prefix: &str, put: impl FnOnce(&Path)) -> Object {
    let stranger = Object { name: name_of(prefix, ended_process()) };
    put(&stranger.path());
    // So old that nobody can be about to lock it.
    let (old, follow) = (TimeSpec::new(1, 0), UtimensatFlags::NoFollowSymlink);
    utimensat(AT_FDCWD, &stranger.path(), &old, &old, follow).unwrap();
    stranger
}

#[test]
fn whatever_others_put_under_our_names_holds_up_nobody_and_stays() {
    let place = Place::new();
    let outside = place.folder.path().join("outside");
    fs::write(&outside, "not to be touched").unwrap();
    let fifo = |path: &Path| mkfifo(path, Mode::from_bits_truncate(0o666)).unwrap();
    let link = |path: &Path| std::os::unix::fs::symlink(&outside, path).unwrap();
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    let of_another_user = |path: &Path| {
        File::create(path).unwrap().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        // Only root can give files away; then this is one more file of ours, and is removed.
        let _ = std::os::unix::fs::chown(path, Some(65_534), None);
    };
    for prefix in [own_prefix(), format!("shoal-replay-{}", nix::unistd::getuid())] {
        let strangers = [stranger(&prefix, fifo), stranger(&prefix, link), stranger(&prefix, folder), stranger(&prefix, of_another_user)];
        place.registry.sweep();
        remove_dead_replays();
        for (stranger, opened) in strangers.iter().zip(["a FIFO", "a symbolic link", "a folder", "user 65534"]) {
            if opened == "user 65534" && !nix::unistd::geteuid().is_root() {
                continue;
            }
            assert!(stranger.path().symlink_metadata().is_ok(), "{opened} was removed");
            for open in [Segment::attach, Segment::attach_read_only] {
                let error = open(&stranger.name).err().expect("it is no segment").to_string();
                assert!(error.contains(opened), "{opened}: {error}");
            }
        }
        let [.., folder, _] = strangers;
        fs::remove_dir(folder.path()).unwrap();
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not to be touched");
}

#[test]
fn an_object_that_is_cut_while_it_is_looked_at_ends_nobody() {
    let place = Place::new();
    let bytes = fs::read(path_of(place.run.segment.name())).unwrap();
    let object = aged(&own_prefix(), std::process::id(), &bytes, 0);
    let cutter = Child::fork(|| {
        let mut file = File::options().write(true).open(object.path()).unwrap();
        loop {
            file.set_len(0).unwrap();
            file.rewind().unwrap();
            file.write_all(&bytes).unwrap();
        }
    });
    let looker = system::fork_child(|| {
        for _ in 0..20_000 {
            let _ = Segment::attach_read_only(&object.name);
            let _ = Segment::attach(&object.name);
            let _ = Segment::identity_of(&object.name);
        }
        0
    });
    let status = waitpid(looker.unwrap(), None).unwrap();
    drop(cutter);
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
}

/// A shared replay that other processes may open by its name.
fn shared_replay() -> ReplayHandle {
    ReplayHandle::create(options(), true, None).unwrap()
}

#[test]
fn a_shared_replay_whose_processes_were_all_killed_is_removed_and_a_living_one_is_not() {
    let _place = Place::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut child = Child::fork(|| {
        let replay = shared_replay();
        writeln!(writer, "{}", replay.name().unwrap()).unwrap();
        sleep_for_ever()
    });
    drop(writer);
    let mut dead = String::new();
    BufReader::new(reader).read_line(&mut dead).unwrap();
    let dead = dead.trim_end();
    let removed = remove_dead_replays();
    assert!(!removed.contains(&dead.into()) && path_of(dead).exists(), "its process lives: {removed:?}");
    let living = shared_replay();
    child.signal(Signal::SIGKILL);
    child.reap();
    forked::wait_until(|| {
        remove_dead_replays();
        !path_of(dead).exists()
    });
    assert!(path_of(living.name().unwrap()).exists(), "its process lives");
}
