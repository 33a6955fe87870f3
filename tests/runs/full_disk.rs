//! A disk that is full for a while does not end a training, and no file on it is ever half written.
//!
//! Each test runs once more in a mount namespace of its own, where the folder of runs is a small file system in memory.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use shoal::checkpoint::{PolicyWeights, bytes_of_largest_checkpoint, free_bytes};
use shoal::segment::control::RunState;
use shoal::segment::keeping::Wanted;
use shoal::segment::scores::EvaluationScore;
use shoal::segment::{NamedProcess, Segment};
use shoal::sync::Ordering;

use crate::support::namespaces::{in_a_mount_namespace, mount};
use crate::support::programs::{self, SMALL, Supervised, Watchdog, stop, wait_until};

/// A run whose folder is on a small disk, and what it prints in a file on another.
struct OnSmallDisk {
    run: Supervised,
    printed: PathBuf,
}

impl OnSmallDisk {
    fn start(size: &str, overrides: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        std::fs::create_dir(&runs).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &runs);
        let printed = folder.path().join("printed");
        let mut command = programs::command(folder.path(), &[SMALL, overrides].concat());
        command.stderr(File::create(&printed).unwrap());
        Self { run: Supervised::spawn(command, folder), printed }
    }

    fn make_room(&self) {
        mount(&["-o", "remount,size=64m"], &self.run.folder.path().join("runs"));
    }

    /// Leave so many bytes free. Somebody else may use them at once.
    fn leave_room_for(&self, bytes: u64) {
        self.make_room();
        let runs = self.run.folder.path().join("runs");
        let used = (64 << 20) - free_bytes(&runs).unwrap();
        mount(&["-o", &format!("remount,size={}", used + bytes)], &runs);
    }

    /// Leave room for so many files, however much there is for bytes.
    fn leave_room_for_files(&self, files: u64) {
        let runs = self.run.folder.path().join("runs");
        let disk = statvfs(&runs).unwrap();
        mount(&["-o", &format!("remount,nr_inodes={}", disk.files() - disk.files_free() + files)], &runs);
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).unwrap()
    }

    fn wait_until(&mut self, what: &str, mut ready: impl FnMut(&Self) -> bool) {
        let watchdog = Watchdog::new(what);
        while !ready(self) {
            assert!(self.run.is_running(), "the run ended before {what}:\n{}", self.printed());
            watchdog.pause(Duration::from_millis(20), || self.printed());
        }
    }

    fn wait_until_printed(&mut self, text: &str) {
        self.wait_until(text, |run| run.printed().contains(text));
    }

    fn segment(&self) -> Segment {
        self.run.segment_read_only()
    }

    fn evaluation(&self) -> Option<EvaluationScore> {
        self.segment().control().scores().read().evaluation
    }

    /// Wait until `count` more evaluations have been made.
    fn wait_for_evaluations(&mut self, count: usize) {
        let mut newest = self.evaluation();
        for _ in 0..count {
            self.wait_until("another evaluation", |run| run.evaluation() != newest);
            newest = self.evaluation();
        }
    }

    fn best(&self) -> PathBuf {
        self.run.run_folder().join("weights/best.safetensors")
    }

    /// A run that has learned, and was asked to end when its first and last checkpoint finds no room.
    fn asked_to_end_without_room() -> Self {
        let mut run = Self::start("2m", &["network.hidden=[256, 256]", "checkpoint.interval_s=600"]);
        run.run.wait_for_updates(100);
        run.run.signal(Signal::SIGTERM);
        run
    }

    /// Wait until the end of the run waits for room for its last checkpoint.
    fn wait_until_end_waits_for_room_for_a_checkpoint(&mut self) {
        let waits = |line: &str| line.contains("a checkpoint takes up to") && line.contains("waits up to");
        self.wait_until("the end to wait for room", |run| run.printed().lines().any(waits));
    }

    /// Assert that the end of the run waits for room, and writes its first and last checkpoint once there is some.
    fn assert_end_waits_for_room_for_a_checkpoint(&mut self) {
        self.wait_until_end_waits_for_room_for_a_checkpoint();
        assert_eq!(self.run.checkpoints(), Vec::<PathBuf>::new());
        self.make_room();
        assert_eq!(self.run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", self.printed());
        assert_eq!(self.run.checkpoints().len(), 1, "{}", self.printed());
        assert!(!self.printed().contains("lost        the last checkpoint"), "{}", self.printed());
    }
}

impl Drop for OnSmallDisk {
    fn drop(&mut self) {
        // The folder can only be removed when nothing is mounted in it; with the namespace the mount would go anyway.
        let _ = Command::new("umount").args(["--lazy"]).arg(self.run.folder.path().join("runs")).status();
    }
}

fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn training_outlives_a_full_disk_and_writes_again_when_there_is_room() {
    in_a_mount_namespace("full_disk::training_outlives_a_full_disk_and_writes_again_when_there_is_room", || {
        // Weights of 270 kB never fit; soon nothing does.
        let mut run = OnSmallDisk::start("64k", &["network.hidden=[256, 256]", "evaluator.interval_ms=100"]);
        run.wait_until_printed("warning: ");
        let evaluator = run.run.wait_for_process("evaluator");
        let updates = run.segment().control().updates().load(Ordering::Relaxed);
        // Each of these evaluations took longer than the interval of the metrics. If no line comes during all of them, lines are lost.
        let mut lines = None;
        while lines != Some(run.run.metrics().len()) {
            lines = Some(run.run.metrics().len());
            run.wait_for_evaluations(10);
        }
        run.wait_until("more updates", |run| run.segment().control().updates().load(Ordering::Relaxed) > updates + 100);
        assert!(!run.best().exists());
        assert_eq!(run.run.processes("evaluator"), [evaluator], "nobody was replaced:\n{}", run.printed());

        run.make_room();
        run.wait_until("the best weights", |run| run.best().exists());
        PolicyWeights::load(&run.best()).unwrap();
        let lines = run.run.metrics().len();
        run.wait_until("more metrics", |run| run.run.metrics().len() > lines);
        assert_eq!(names(&run.run.run_folder().join("weights")), ["best.safetensors"], "nothing half written stays behind");

        let folder = run.run.run_folder();
        run.run.end_by(Signal::SIGTERM);
        let printed = run.printed();
        assert_eq!(printed.matches("warning: ").count(), 1, "one message for one full disk:\n{printed}");
        assert!(printed.contains("training goes on"), "{printed}");
        for lost in ["of metrics.jsonl, which could not be written", "of the TensorBoard events, which could not be written"] {
            assert!(printed.contains(lost), "`{lost}` is missing in:\n{printed}");
        }
        assert!(!printed.contains("best weights (version"), "they were written in the end:\n{printed}");
        PolicyWeights::load(&folder.join("weights/last.safetensors")).unwrap();
        for name in ["metrics.jsonl", "evaluations.jsonl"] {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            assert!(text.ends_with('\n') && text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{text}");
        }
    });
}

#[test]
fn the_end_of_a_run_waits_for_room_for_its_last_weights() {
    in_a_mount_namespace("full_disk::the_end_of_a_run_waits_for_room_for_its_last_weights", || {
        let mut run = OnSmallDisk::start("128k", &["network.hidden=[256, 256]"]);
        run.wait_until_printed("warning: ");
        run.run.signal(Signal::SIGINT);
        run.wait_until_printed("waits up to");
        run.make_room();
        assert_eq!(run.run.wait().code(), Some(128 + Signal::SIGINT as i32), "{}", run.printed());
        PolicyWeights::load(&run.run.run_folder().join("weights/last.safetensors")).unwrap();
    });
}

#[test]
fn weights_that_never_found_room_are_named_as_lost_and_the_run_fails() {
    in_a_mount_namespace("full_disk::weights_that_never_found_room_are_named_as_lost_and_the_run_fails", || {
        let mut run = OnSmallDisk::start("128k", &["network.hidden=[256, 256]"]);
        run.wait_until_printed("warning: ");
        run.run.signal(Signal::SIGTERM);
        assert_eq!(run.run.wait().code(), Some(1), "{}", run.printed());
        let printed = run.printed();
        for part in ["lost        the last weights", "the best weights (version"] {
            assert!(printed.contains(part), "`{part}` is missing in:\n{printed}");
        }
        assert!(!printed.contains("play it"), "{printed}");
    });
}

#[test]
fn a_checkpoint_for_which_there_is_no_room_is_said_once_and_written_when_there_is() {
    in_a_mount_namespace("full_disk::a_checkpoint_for_which_there_is_no_room_is_said_once_and_written_when_there_is", || {
        // The state of such networks takes more than the disk has, however few rows there are.
        let mut run = OnSmallDisk::start("2m", &["network.hidden=[256, 256]", "checkpoint.interval_s=0.05"]);
        run.wait_until_printed("a checkpoint takes up to");
        let updates = run.segment().control().updates().load(Ordering::Relaxed);
        run.wait_until("more updates", |run| run.segment().control().updates().load(Ordering::Relaxed) > updates + 200);
        assert_eq!(run.printed().matches("a checkpoint takes up to").count(), 1, "{}", run.printed());
        assert_eq!(names(&run.run.run_folder().join("checkpoints")), [".lock"]);
        run.make_room();
        run.wait_until_printed("checkpoint 000001");
        run.run.signal(Signal::SIGTERM);
        run.run.wait();
        assert!(run.printed().contains("go on "), "{}", run.printed());
    });
}

#[test]
fn a_missing_checkpoint_is_said_beside_other_files_that_are_missing_and_again_after_one_that_was_complete() {
    let name = "full_disk::a_missing_checkpoint_is_said_beside_other_files_that_are_missing_and_again_after_one_that_was_complete";
    in_a_mount_namespace(name, || {
        let mut run = OnSmallDisk::start("64k", &["network.hidden=[256, 256]", "checkpoint.interval_s=0.05", "checkpoint.replay=never"]);
        let times_said = |run: &OnSmallDisk| run.printed().matches("a checkpoint takes up to").count();
        run.wait_until("two warnings", |run| run.printed().matches("it is tried again quietly").count() == 2);
        assert_eq!(times_said(&run), 1, "{}", run.printed());
        run.make_room();
        run.wait_until_printed("checkpoint 000001");
        // As long as somebody else has this lock, no checkpoint is written.
        let lock = File::open(run.run.run_folder().join("checkpoints/.lock")).unwrap();
        lock.lock().unwrap();
        run.leave_room_for(64 << 10);
        drop(lock);
        run.wait_until("another warning", |run| times_said(run) == 2);
        run.make_room();
        run.run.signal(Signal::SIGTERM);
        run.run.wait();
    });
}

/// Assert that a run that keeps two checkpoints gets newer ones on a disk that has these two and is then made to `leave` too little room
/// for another.
fn assert_newer_checkpoints_take_the_place_of_older_ones(leave: impl FnOnce(&OnSmallDisk)) {
    let changes = ["network.hidden=[256, 256]", "checkpoint.interval_s=0.05", "checkpoint.replay=never", "checkpoint.keep_last=2"];
    let mut run = OnSmallDisk::start("64m", &changes);
    run.wait_until_printed("checkpoint 000002");
    // As long as somebody else has this lock, no checkpoint is written.
    let lock = File::open(run.run.run_folder().join("checkpoints/.lock")).unwrap();
    lock.lock().unwrap();
    run.wait_until("the older ones to go", |run| run.run.checkpoints().len() == 2);
    let before = run.run.checkpoints();
    leave(&run);
    drop(lock);
    run.wait_until("two newer ones", |run| run.run.checkpoints().first() > before.last());
    for words in ["a checkpoint takes up to", "no checkpoint could be written"] {
        assert!(!run.printed().contains(words), "{}", run.printed());
    }
    run.run.signal(Signal::SIGTERM);
    run.run.wait();
}

#[test]
fn a_disk_for_as_many_checkpoints_as_are_kept_and_for_no_other_beside_them_gets_newer_ones() {
    let name = "full_disk::a_disk_for_as_many_checkpoints_as_are_kept_and_for_no_other_beside_them_gets_newer_ones";
    in_a_mount_namespace(name, || {
        assert_newer_checkpoints_take_the_place_of_older_ones(|run| {
            run.leave_room_for(bytes_of_largest_checkpoint(run.segment().layout(), None) - (64 << 10));
        });
    });
}

#[test]
fn a_disk_that_takes_too_few_files_for_another_checkpoint_gets_newer_ones() {
    in_a_mount_namespace("full_disk::a_disk_that_takes_too_few_files_for_another_checkpoint_gets_newer_ones", || {
        // A checkpoint is a folder with four files.
        assert_newer_checkpoints_take_the_place_of_older_ones(|run| run.leave_room_for_files(3));
    });
}

#[test]
fn the_end_of_a_run_waits_for_room_for_its_last_checkpoint() {
    in_a_mount_namespace("full_disk::the_end_of_a_run_waits_for_room_for_its_last_checkpoint", || {
        OnSmallDisk::asked_to_end_without_room().assert_end_waits_for_room_for_a_checkpoint();
    });
}

#[test]
fn another_signal_ends_the_wait_for_room_for_the_last_checkpoint() {
    in_a_mount_namespace("full_disk::another_signal_ends_the_wait_for_room_for_the_last_checkpoint", || {
        let mut run = OnSmallDisk::asked_to_end_without_room();
        run.wait_until_end_waits_for_room_for_a_checkpoint();
        // A signal within a second of the first one is the same request.
        std::thread::sleep(Duration::from_millis(1_100));
        // The signal and the room are there when the supervisor looks again: if the signal did not end the wait, the room would be used.
        stop(run.run.pid());
        run.run.signal(Signal::SIGTERM);
        run.make_room();
        run.run.signal(Signal::SIGCONT);
        assert_eq!(run.run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", run.printed());
        assert_eq!(run.run.checkpoints(), Vec::<PathBuf>::new(), "{}", run.printed());
        assert!(run.printed().contains("lost        the last checkpoint"), "{}", run.printed());
    });
}

#[test]
fn the_end_of_a_synchronous_run_waits_for_room_for_the_checkpoint_that_its_trainer_has_asked_for() {
    let name = "full_disk::the_end_of_a_synchronous_run_waits_for_room_for_the_checkpoint_that_its_trainer_has_asked_for";
    in_a_mount_namespace(name, || {
        let changes = ["network.hidden=[256, 256]", "actor.count=0", "checkpoint.synchronous_interval_steps=2000"];
        let mut run = OnSmallDisk::start("2m", &changes);
        run.run.wait_for_process("synchronous trainer");
        let segment = run.segment();
        // The trainer asks while the supervisor stands still; the supervisor then ends the run before it looks.
        stop(run.run.pid());
        let is_wanted = || segment.control().checkpoint_wanted().load(Ordering::Acquire) != 0;
        wait_until("the trainer to ask for a checkpoint", || run.printed(), is_wanted);
        run.run.signal(Signal::SIGTERM);
        run.run.signal(Signal::SIGCONT);
        run.assert_end_waits_for_room_for_a_checkpoint();
    });
}

#[test]
fn a_kept_run_outlives_whoever_adopts_it_while_the_disk_is_full() {
    in_a_mount_namespace("full_disk::a_kept_run_outlives_whoever_adopts_it_while_the_disk_is_full", || {
        let mut run = OnSmallDisk::start("8m", &["machine.sentinel=keep", "checkpoint.interval_s=600"]);
        run.run.wait_for_updates(100);
        let segment = run.segment();
        let keeper = run.run.kill_and_wait_for_keeper();
        let filler = run.run.folder.path().join("runs/filler");
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[1; 4_096]).is_ok() {}
        drop(file);

        let told = run.run.adopt_elsewhere(&["--set", "learner.learning_rate=0.0005"]);
        assert!(told.contains("No space left"), "{told}");
        let keeping = segment.control().keeping();
        wait_until(
            "the run to be offered again",
            || run.run.log(),
            || keeping.wanted() == Wanted::Nothing && segment.control().run_state() == RunState::Kept,
        );
        assert_eq!(keeping.keeper().map(NamedProcess::pid), Some(keeper));

        std::fs::remove_file(filler).unwrap();
        run.run.adopt(&[]);
        run.run.wait_for_log("goes on in the memory in which it was kept");
        run.run.end_by(Signal::SIGTERM);
    });
}
