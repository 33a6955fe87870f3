//! A checkpoint is complete or absent, whenever its writer dies, and what is restored from one is what was there.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
    pub(crate) mod namespaces;
    pub(crate) mod skipped;
}

use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use shoal::checkpoint::{CheckpointError, Checkpoints, Content, Retention, RowsIn, RunCheckpoint, bytes_of_largest_checkpoint};
use shoal::replay::{Batch, Replay, ZeroPriority};
use shoal::segment::counters::Counter;
use shoal::segment::float_board::FloatBoard;
use shoal::segment::processes::Role;
use shoal::segment::{Region, Segment};
use shoal::sync::Ordering;
use shoal::telemetry::RunFolder;
use support::forked::traced::Traced;
use support::forked::{self, Identity, Payload, Run, Sizes};
use support::namespaces::{in_a_mount_namespace, mount};

const CAPACITY: usize = 64;

/// Which checkpoints are kept where that is not what a test is about.
const KEPT: Retention = Retention { last: 2, best: false, every_steps: None };

/// A run whose process 0 has inserted `rows`, whose learners have published, and which has taken `env_steps`.
fn run_with(rows: u32, env_steps: u64) -> Run {
    run_of(Sizes { capacity: CAPACITY, ..Sizes::default() }, rows, env_steps)
}

/// As [`run_with`], with a segment of these `sizes`.
fn run_of(sizes: Sizes, rows: u32, env_steps: u64) -> Run {
    let run = Run::new(sizes);
    let slot = run.slot(0);
    assert!(slot.reserve(Role::Actor, 0).is_some_and(|generation| slot.occupy(std::process::id(), generation)));
    for number in 0..rows {
        run.payload.stage(run.area(0), Identity { life: 1, number }, None);
        run.replay(0).flush(run.area(0));
    }
    slot.counters().add(Counter::EnvSteps, env_steps);
    slot.count_restarts(1);
    let control = run.segment.control();
    control.env_steps().store(env_steps, Ordering::Relaxed);
    control.updates().store(env_steps / 2, Ordering::Relaxed);
    // The rate limiter counts a quarter of them: a larger batch was in force for a while.
    control.sampled().store(8_000, Ordering::Relaxed);
    control.samples_beyond().store(6_000, Ordering::Relaxed);
    for (board, version) in [(run.segment.parameter_board(), 5), (run.segment.learner_boards().next().unwrap(), 3)] {
        for version in 1..=version {
            board.publish(&[&vec![version as f32 + env_steps as f32; board.len()]], [version, 7, 8, 9]);
        }
    }
    run
}

fn content(run: &Run) -> Content<'_> {
    Content {
        segment: &run.segment,
        schema: run.payload.schema().clone(),
        zero: ZeroPriority::Unfinished,
        incarnation: None,
        with_replay: true,
        longest_rest: Duration::ZERO,
        best_weights: Path::new("none"),
        best_env_steps: None,
        supervisor_record: &|_| json!({ "wall_s": 1.5 }),
    }
}

/// Change the manifest of the checkpoint in `path`, and its sum with it.
fn change_manifest(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut manifest = serde_json::from_slice(&std::fs::read(path.join("manifest.json")).unwrap()).unwrap();
    change(&mut manifest);
    let text = manifest.to_string();
    std::fs::write(path.join("manifest.crc32c"), format!("{:08x}", crc32c::crc32c(text.as_bytes()))).unwrap();
    std::fs::write(path.join("manifest.json"), text).unwrap();
}

/// What the manifest says of the file called `name`.
fn file_of<'a>(manifest: &'a mut Value, name: &str) -> &'a mut Value {
    manifest["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == name).unwrap()
}

/// Assert that `checkpoint`, restored into a segment of its own, has the rows, priorities, counts and publications of `run`, bit for bit.
fn assert_restores(checkpoint: &RunCheckpoint, run: &Run) {
    let layout = run.segment.layout().clone();
    let segment = Segment::create_private(layout, &run.segment.description().unwrap()).unwrap();
    checkpoint.restore(&segment, run.payload.schema(), RowsIn::Checkpoint, |_, number, _| Some(number)).unwrap();
    let words = |segment: &Segment, region| segment.words(region).iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    assert_eq!(words(&segment, Region::Tree), words(&run.segment, Region::Tree));
    let rows = |segment: &Segment| {
        let replay = shoal::replay::ReplayView::new(segment, run.payload.schema().clone());
        let mut rows = Vec::new();
        let taken: Result<(), ()> = replay.for_each_row(ZeroPriority::Unfinished, |record, words| {
            rows.push((record, words.to_vec()));
            Ok(())
        });
        taken.map(|()| (rows, replay.counts()))
    };
    assert_eq!(rows(&segment), rows(&run.segment));
    fn learner_board(segment: &Segment) -> FloatBoard<'_> {
        segment.learner_boards().next().unwrap()
    }
    for (board, epochs) in [(Segment::parameter_board as fn(&Segment) -> FloatBoard<'_>, 0), (learner_board, 1)] {
        let read = |segment| {
            let mut values = vec![0.0; board(segment).len()];
            let (version, notes) = board(segment).read(&mut values).expect("a publication");
            // The first note of learners is the epoch of a view, and no view of an earlier life is one of this.
            (version, notes[epochs..].to_vec(), values)
        };
        assert_eq!(read(&segment), read(&run.segment));
    }
    let mut values = vec![0.0; learner_board(&segment).len()];
    assert_eq!(learner_board(&segment).read(&mut values).expect("a publication").1[0], 0);
    let slots = [&segment, &run.segment].map(|segment| segment.processes().slot(0));
    assert_eq!(slots[0].counters().all(), slots[1].counters().all());
    assert_eq!((slots[0].restarts(), slots[0].generation()), (slots[1].restarts(), slots[1].generation()));
    let control = [&segment, &run.segment].map(|segment| segment.control());
    for word in [shoal::segment::control::Control::env_steps, shoal::segment::control::Control::updates] {
        assert_eq!(word(control[0]).load(Ordering::Relaxed), word(control[1]).load(Ordering::Relaxed));
    }
    assert_eq!(control.map(|control| (control.sampled().load(Ordering::Relaxed), control.counted_samples())), [(8_000, 2_000); 2]);
}

#[test]
fn what_is_restored_is_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"));
    // More than fit, so that slots have been claimed more than once.
    let run = run_with(3 * CAPACITY as u32 / 2, 100);
    let (path, bytes) = checkpoints.write(content(&run), KEPT).unwrap();
    let checkpoint = checkpoints.newest().unwrap();
    assert_eq!(checkpoint.path(), path);
    assert_eq!((checkpoint.manifest().env_steps, checkpoint.manifest().updates, checkpoint.manifest().sequence), (100, 50, 1));
    assert_eq!(checkpoint.manifest().supervisor_record, json!({ "wall_s": 1.5 }));
    assert!(bytes > 0 && bytes <= content(&run).bytes(), "{bytes} of at most {}", content(&run).bytes());
    assert_restores(&checkpoint, &run);
}

#[test]
fn the_keys_of_a_manifest_stay_those_of_older_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(1, 1);
    let (path, _) = Checkpoints::new(folder.path().to_path_buf()).write(content(&run), KEPT).unwrap();
    let manifest: Value = serde_json::from_slice(&std::fs::read(path.join("manifest.json")).unwrap()).unwrap();
    let layout = &manifest["layout"];
    assert!(layout["transition_words"].is_number() && layout["staged_transitions"].is_number(), "{layout}");
    assert_eq!(manifest["memory"], json!({ "wall_s": 1.5 }));
}

#[test]
fn a_replay_that_is_not_full_asks_for_room_for_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(Sizes { capacity: 1 << 16, ..Sizes::default() }, 10, 100);
    let asked = content(&run).bytes();
    let (_, bytes) = Checkpoints::new(folder.path().to_path_buf()).write(content(&run), KEPT).unwrap();
    let full = run.segment.layout().section(Region::Store).length_bytes as u64;
    assert!(bytes <= asked && asked < full / 10, "{bytes} were written, {asked} asked for, {full} are full");
}

/// Take up to `count` rows from the replay in `segment`, as process 0, and return their numbers.
fn take(segment: &Segment, payload: &Payload, count: usize) -> Vec<u32> {
    let mut replay = Replay::new(segment, payload.schema().clone(), segment.processes().slot(0));
    let mut batch = Batch::new(payload.schema(), 1);
    (0..count).map_while(|_| replay.take(&mut batch, 0).then(|| payload.verify(&batch, 0).number)).collect()
}

#[test]
fn rows_that_were_taken_for_good_are_left_out_and_the_next_to_be_taken_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    // Of 96 rows the last 64 are there, and 14 of these still wait.
    let run = run_with(96, 100);
    assert_eq!(take(&run.segment, &run.payload, 50), Vec::from_iter(32..82));
    let [all, waiting] = [ZeroPriority::Taken, ZeroPriority::TakenForGood].map(|zero| {
        let content = Content { zero, ..content(&run) };
        let asked = content.bytes();
        let (path, bytes) = checkpoints.write(content, KEPT).unwrap();
        assert!(bytes <= asked, "{bytes} were written, {asked} asked for");
        let checkpoint = RunCheckpoint::open(&path).unwrap();
        let segment = Segment::create_private(run.segment.layout().clone(), &run.segment.description().unwrap()).unwrap();
        checkpoint.restore(&segment, run.payload.schema(), RowsIn::Checkpoint, |_, number, _| Some(number)).unwrap();
        let slot = segment.processes().slot(0);
        assert!(slot.reserve(Role::Learner, 0).is_some_and(|generation| slot.occupy(std::process::id(), generation)));
        assert_eq!(take(&segment, &run.payload, 64), Vec::from_iter(82..96), "{zero:?}");
        bytes
    });
    assert_eq!(all - waiting, 50 * 8 * (3 + run.payload.schema().words() as u64));
}

#[test]
fn a_run_that_is_restored_without_rows_counts_samples_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(10, 100);
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    checkpoints.write(content(&run), KEPT).unwrap();
    let segment = Segment::create_private(run.segment.layout().clone(), &run.segment.description().unwrap()).unwrap();
    checkpoints.newest().unwrap().restore(&segment, run.payload.schema(), RowsIn::Nothing, |_, number, _| Some(number)).unwrap();
    let control = segment.control();
    let words = [control.inserted(), control.sampled(), control.samples_beyond()].map(|word| word.load(Ordering::Relaxed));
    assert_eq!((words, control.counted_samples()), ([0; 3], 0));
    assert_eq!(control.env_steps().load(Ordering::Relaxed), 100);
}

#[test]
fn what_a_run_dropped_stays_counted_when_it_is_restored_without_rows_and_what_nobody_had_taken_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(10, 100);
    run.segment.control().sampled().store(7, Ordering::Relaxed);
    run.slot(0).counters().add(Counter::DroppedRows, 5);
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    checkpoints.write(content(&run), KEPT).unwrap();
    for (rows, dropped) in [(RowsIn::Checkpoint, 5), (RowsIn::Nothing, 8)] {
        let segment = Segment::create_private(run.segment.layout().clone(), &run.segment.description().unwrap()).unwrap();
        checkpoints.newest().unwrap().restore(&segment, run.payload.schema(), rows, |_, number, _| Some(number)).unwrap();
        assert_eq!(segment.processes().total(Counter::DroppedRows), dropped, "{rows:?}");
    }
}

/// The generation is part of the seed of a process, so nobody draws again what was drawn in an earlier life.
#[test]
fn processes_of_a_later_life_have_generations_above_those_of_all_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let run = run_with(8, 100);
    let begin = |segment: &Segment, role: Role, slot: usize| {
        let slot = segment.processes().slot(slot);
        let generation = slot.reserve(role, slot.index()).expect("it is free");
        slot.release();
        generation
    };
    for times in 1..=5 {
        assert_eq!(begin(&run.segment, Role::Actor, 1), times);
    }
    run.slot(0).release();
    checkpoints.write(content(&run), KEPT).unwrap();
    let next_life = |role: Role, processes: usize| {
        let segment = Segment::create_private(run.segment.layout().clone(), &run.segment.description().unwrap()).unwrap();
        let planned = |saved: Role, number: usize, _: usize| (saved == role && number < processes).then_some(number);
        checkpoints.newest().unwrap().restore(&segment, run.payload.schema(), RowsIn::Checkpoint, planned).unwrap();
        let role_of = |slot: usize| segment.processes().slot(slot).role();
        assert_eq!(role_of(7), None, "nobody has had it");
        let began: Vec<u64> = (0..processes).map(|slot| begin(&segment, role, slot)).collect();
        checkpoints.write(Content { segment: &segment, ..content(&run) }, KEPT).unwrap();
        began
    };
    assert_eq!(next_life(Role::Actor, 1), [6], "whoever is there remembers for who is not");
    assert_eq!(next_life(Role::Synchronous, 1), [7]);
    assert_eq!(next_life(Role::Synchronous, 1), [8]);
    assert_eq!(next_life(Role::Actor, 3), [9; 3]);
}

#[test]
fn a_writer_killed_at_any_system_call_leaves_the_checkpoint_before_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let retention = Retention { last: 1, best: false, every_steps: None };
    let run = run_with(CAPACITY as u32, 100);
    checkpoints.write(content(&run), KEPT).unwrap();
    let traced = Traced::start(|| {
        || {
            checkpoints.write(content(&run), KEPT).expect("a second checkpoint");
            checkpoints.prune(retention);
        }
    });
    let (mut stops, mut seen) = (0, [false; 3]);
    while traced.next_system_call() {
        stops += 1;
        // What a kill would leave at this moment is what is there: nothing but system calls changes files.
        let newest = checkpoints.newest().unwrap_or_else(|error| panic!("after {stops} stops: {error}"));
        assert_restores(&newest, &run);
        let sequence = newest.manifest().sequence;
        seen[0] |= sequence == 1;
        seen[1] |= sequence == 2 && checkpoints.list().unwrap().len() == 2;
        seen[2] |= sequence == 2 && checkpoints.list().unwrap().len() == 1;
    }
    assert!(stops > 50 && seen == [true; 3], "{stops} stops, {seen:?}");
    drop(traced);
    forked::traced::report(&format!("a checkpoint is written: {stops} stops at system calls, a whole checkpoint at each"));
}

#[test]
fn what_a_killed_writer_left_is_no_checkpoint_and_goes_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let run = run_with(8, 100);
    assert!(matches!(checkpoints.newest(), Err(CheckpointError::NoneYet { .. })));
    std::fs::create_dir(folder.path().join(".partial-000001")).unwrap();
    std::fs::write(folder.path().join(".partial-000001/replay.shoal"), "half").unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    assert!(matches!(checkpoints.newest(), Err(CheckpointError::NoneYet { .. })));
    checkpoints.write(content(&run), KEPT).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "000001-step100", "notes"]);
}

/// Run `body`, which is the test `name`, with a disk of its own.
fn on_a_small_disk(name: &str, body: impl FnOnce(&Path)) {
    in_a_mount_namespace(name, || {
        let folder = tempfile::tempdir().unwrap();
        mount(&["-t", "tmpfs", "-o", "size=32m", "tmpfs"], folder.path());
        body(folder.path());
        // The folder can only be removed when nothing is mounted in it.
        let _ = Command::new("umount").arg("--lazy").arg(folder.path()).status();
    });
}

/// Take all the room that is left on `disk`. Whoever is writing there has seen it, as with a quota.
fn fill(disk: &Path) {
    let mut file = File::create(disk.join("filler")).unwrap();
    while file.write_all(&[1; 4_096]).is_ok() {}
}

#[test]
fn a_disk_that_takes_no_more_in_the_middle_of_a_checkpoint_takes_it_in_the_place_of_what_was_due_to_go() {
    let name = "a_disk_that_takes_no_more_in_the_middle_of_a_checkpoint_takes_it_in_the_place_of_what_was_due_to_go";
    on_a_small_disk(name, |disk| {
        // The last has a state that does not fit the buffer of its writer.
        for (case, (with_replay, network_parameters)) in [(true, 256), (false, 256), (false, 1 << 17)].into_iter().enumerate() {
            let checkpoints = Checkpoints::new(disk.join(case.to_string()));
            let run = run_of(Sizes { capacity: CAPACITY, network_parameters, ..Sizes::default() }, 8, 100);
            let content = || Content { with_replay, ..content(&run) };
            let [_, second] = [(); 2].map(|()| checkpoints.write(content(), KEPT).unwrap().0);
            let is_full = Cell::new(false);
            let record = |_| {
                if !is_full.replace(true) {
                    fill(disk);
                }
                json!({ "wall_s": 1.5 })
            };
            let (third, _) =
                checkpoints.write(Content { supervisor_record: &record, ..content() }, KEPT).expect("room in the place of the first");
            assert!(is_full.get());
            assert_eq!(checkpoints.list().unwrap(), [second, third.clone()]);
            RunCheckpoint::open(&third).unwrap().check_replay().unwrap();
            std::fs::remove_file(disk.join("filler")).unwrap();
        }
    });
}

#[test]
fn the_only_whole_checkpoint_stays_however_often_the_disk_takes_no_other() {
    on_a_small_disk("the_only_whole_checkpoint_stays_however_often_the_disk_takes_no_other", |disk| {
        let checkpoints = Checkpoints::new(disk.join("checkpoints"));
        let run = run_with(8, 100);
        let one = Retention { last: 1, ..KEPT };
        let written = [(); 3].map(|()| checkpoints.write(content(&run), KEPT).unwrap().0);
        let [_, whole, damaged] = &written;
        // Its rows alone: nothing else tells that nobody can go on from it.
        let mut rows = std::fs::read(damaged.join("replay.shoal")).unwrap();
        *rows.last_mut().unwrap() ^= 1;
        std::fs::write(damaged.join("replay.shoal"), rows).unwrap();
        // Every attempt finds the disk full.
        let record = |_| {
            fill(disk);
            json!({ "wall_s": 1.5 })
        };
        for _ in 0..2 {
            let error = checkpoints.write(Content { supervisor_record: &record, ..content(&run) }, one).unwrap_err();
            assert!(matches!(&error, CheckpointError::Write { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
            assert_eq!(checkpoints.list().unwrap(), std::slice::from_ref(whole));
            std::fs::remove_file(disk.join("filler")).unwrap();
        }
        fill(disk);
        assert!(matches!(checkpoints.write(content(&run), one).unwrap_err(), CheckpointError::NoRoom { .. }));
        assert_eq!(checkpoints.list().unwrap(), std::slice::from_ref(whole));
        assert_restores(&RunCheckpoint::open(whole).unwrap(), &run);
    });
}

#[test]
fn the_folder_of_a_run_knows_the_steps_of_its_newest_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "run", "").unwrap();
    let checkpoints = Checkpoints::new(folder.checkpoints());
    let run = run_with(8, 0);
    assert_eq!(folder.saved_env_steps(), None);
    for env_steps in [200, 100] {
        run.segment.control().env_steps().store(env_steps, Ordering::Relaxed);
        checkpoints.write(content(&run), KEPT).unwrap();
        assert_eq!(folder.saved_env_steps(), Some(env_steps));
    }
}

#[test]
fn a_folder_that_cannot_be_listed_is_not_taken_for_one_without_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    // What is no folder cannot be listed, whoever asks.
    let file = folder.path().join("checkpoints");
    std::fs::write(&file, "").unwrap();
    let error = Checkpoints::new(file.clone()).newest().map(drop).unwrap_err();
    assert!(matches!(error, CheckpointError::List { .. }) && error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn the_newest_the_best_and_the_first_of_each_period_are_kept() {
    let kept = |retention: Retention| {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path().to_path_buf());
        let run = run_with(8, 0);
        for (env_steps, best) in [(40, None), (90, Some(80)), (110, Some(80)), (190, Some(150)), (240, Some(150)), (290, Some(150))] {
            run.segment.control().env_steps().store(env_steps, Ordering::Relaxed);
            checkpoints.write(Content { best_env_steps: best, ..content(&run) }, KEPT).unwrap();
            checkpoints.prune(retention);
        }
        let steps = |path: std::path::PathBuf| RunCheckpoint::open(&path).unwrap().manifest().env_steps;
        checkpoints.list().unwrap().into_iter().map(steps).collect::<Vec<_>>()
    };
    let last = Retention { last: 2, best: false, every_steps: None };
    assert_eq!(kept(last), [240, 290]);
    assert_eq!(kept(Retention { best: true, ..last }), [190, 240, 290]);
    assert_eq!(kept(Retention { every_steps: Some(100), ..last }), [40, 110, 240, 290]);
}

#[test]
fn a_checkpoint_that_the_disk_does_not_give_is_kept_where_it_may_be_to_keep_and_a_damaged_one_is_not() {
    for (every_steps, are_kept) in [(Some(1_000), [true, false, true]), (None, [false, false, true])] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path().to_path_buf());
        let run = run_with(8, 100);
        let written = [(); 3].map(|()| checkpoints.write(content(&run), KEPT).unwrap().0);
        // A folder cannot be read as a file, whoever asks.
        std::fs::remove_file(written[0].join("manifest.json")).unwrap();
        std::fs::create_dir(written[0].join("manifest.json")).unwrap();
        // No text, which is what the system gave.
        std::fs::write(written[1].join("manifest.crc32c"), [0xff]).unwrap();
        checkpoints.prune(Retention { last: 1, every_steps, ..KEPT });
        assert_eq!(written.map(|path| path.exists()), are_kept, "{every_steps:?}");
    }
}

#[test]
fn counts_in_a_checkpoint_are_those_when_the_supervisors_record_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let run = run_with(8, 100);
    // A step that an actor takes while the record is taken counts.
    let record = |_| {
        run.segment.control().env_steps().store(130, Ordering::Relaxed);
        json!({ "wall_s": 1.5 })
    };
    let (path, _) = checkpoints.write(Content { supervisor_record: &record, ..content(&run) }, KEPT).unwrap();
    assert_eq!(RunCheckpoint::open(&path).unwrap().manifest().env_steps, 130);
    assert!(path.ends_with("000001-step130"), "{}", path.display());
}

#[test]
fn a_writer_that_rests_writes_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let run = run_with(8, 100);
    let (path, _) = checkpoints.write(Content { longest_rest: Duration::from_millis(50), ..content(&run) }, KEPT).unwrap();
    assert_restores(&RunCheckpoint::open(&path).unwrap(), &run);
}

#[test]
fn a_checkpoint_of_another_format_or_another_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let run = run_with(8, 100);
    let (path, _) = checkpoints.write(content(&run), KEPT).unwrap();
    let other = Segment::create_private(
        forked::run::layout(Sizes { capacity: CAPACITY, network_parameters: 100, ..Sizes::default() }, run.payload.schema()),
        &run.segment.description().unwrap(),
    );
    let error = checkpoints
        .newest()
        .unwrap()
        .restore(&other.unwrap(), run.payload.schema(), RowsIn::Checkpoint, |_, number, _| Some(number))
        .unwrap_err();
    assert!(error.to_string().contains("another length"), "{error}");
    change_manifest(&path, |manifest| manifest["format"] = json!(7));
    let error = checkpoints.newest().unwrap_err().to_string();
    assert!(error.contains("format 7") && error.contains("format 3"), "{error}");
}

#[test]
fn a_manifest_leads_to_no_other_files_and_to_none_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let (path, _) = checkpoints.write(content(&run_with(8, 100)), KEPT).unwrap();
    std::fs::copy(path.join("config.toml"), folder.path().join("outside")).unwrap();
    let whole = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    for name in ["../outside", "/dev/zero"] {
        change_manifest(&path, |manifest| {
            *manifest = serde_json::from_str(&whole).unwrap();
            file_of(manifest, "config.toml")["name"] = json!(name);
        });
        let error = RunCheckpoint::open(&path).unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains(&format!("\"{name}\" is no file of a checkpoint")), "{error}");
    }
    change_manifest(&path, |manifest| *manifest = serde_json::from_str(&whole).unwrap());
    std::fs::remove_file(path.join("config.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path.join("config.toml")).unwrap();
    let error = RunCheckpoint::open(&path).unwrap_err().to_string();
    assert!(error.contains("`config.toml`") && error.contains("no regular file"), "{error}");
    std::fs::remove_file(path.join("manifest.crc32c")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path.join("manifest.crc32c")).unwrap();
    let error = RunCheckpoint::open(&path).unwrap_err().to_string();
    assert!(error.contains("manifest.crc32c") && error.contains("no regular file"), "{error}");
}

#[test]
fn a_state_that_is_longer_than_the_memory_that_it_is_of_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_with(8, 100);
    let (path, _) = Checkpoints::new(folder.path().to_path_buf()).write(content(&run), KEPT).unwrap();
    let most = bytes_of_largest_checkpoint(run.segment.layout(), None);
    let mut state = std::fs::read(path.join("state.bin")).unwrap();
    for (length, is_read) in [(most, true), (most + 1, false)] {
        // What follows the state is not looked at.
        state.resize(length as usize, 0);
        std::fs::write(path.join("state.bin"), &state).unwrap();
        change_manifest(&path, |manifest| {
            let file = file_of(manifest, "state.bin");
            (file["bytes"], file["crc32c"]) = (json!(length), json!(crc32c::crc32c(&state)));
        });
        let refusal = RunCheckpoint::open(&path).unwrap().learned().err().map(|error| error.to_string());
        assert_eq!(refusal.is_none(), is_read, "{refusal:?}");
        assert!(refusal.is_none_or(|refusal| refusal.contains(&format!("at most {most} are read"))));
    }
}

#[test]
fn memory_in_which_nothing_is_whole_makes_no_checkpoint() {
    let regions =
        [(Region::LearnerState, "state of the learners"), (Region::Parameters, "parameters"), (Region::Description, "description")];
    for (region, content_of) in regions {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path().to_path_buf());
        let run = run_with(8, 100);
        let (before, _) = checkpoints.write(content(&run), KEPT).unwrap();
        // The first word stays: the version of a board, which then is the mark of no buffer, and the length of the description.
        run.segment.words(region)[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let error = checkpoints.write(content(&run), KEPT).unwrap_err();
        assert!(matches!(error, CheckpointError::Unreadable { .. }) && error.to_string().contains(content_of), "{error}");
        assert_eq!(checkpoints.list().unwrap(), [before], "the one before stays, and nothing is left of the new one");
    }
}
