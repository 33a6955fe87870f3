//! The time of day is set while a run goes on: no process takes that for a hang, and the run's own seconds and order stay right.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use jiff::{Timestamp, ToSpan};
use nix::sys::signal::Signal;

use crate::support::programs::{SMALL, Supervised, checkpoints_in, command};

const DAY_S: i64 = 86_400;

/// A library, built in `folder`, that moves the time of day of a process that loads it: its path from there, since a space or a colon in a
/// longer one would end it in `LD_PRELOAD`.
fn moved_clock(folder: &Path) -> &'static str {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/clock_jumps/moved_clock.c");
    let library = "./moved_clock.so";
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o", library]).arg(source).current_dir(folder);
    assert!(compiler.status().expect("a C compiler").success());
    library
}

/// When a checkpoint says that it was written.
fn written(checkpoint: &Path) -> Option<Timestamp> {
    let manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(checkpoint.join("manifest.json")).ok()?).ok()?;
    manifest["written"].as_str()?.parse().ok()
}

#[test]
fn a_run_whose_time_of_day_jumps_forth_and_back_goes_on_and_is_gone_on_with() {
    let folder = tempfile::Builder::new().prefix("a space ").tempdir().unwrap();
    let moved = File::create(folder.path().join("moved")).unwrap();
    let set_clock = |seconds: i64| moved.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    set_clock(0);
    // Far less than the clock jumps by, and longer than an evaluator waits for a disk.
    let overrides = ["machine.hang_timeout_s=10.0", "checkpoint.interval_s=0.2", "checkpoint.keep_last=2", "evaluator.interval_ms=0"];
    let mut program = command(folder.path(), &[SMALL, &overrides].concat());
    program.env("LD_PRELOAD", moved_clock(folder.path())).env("MOVED_CLOCK", folder.path().join("moved")).current_dir(folder.path());
    let mut run = Supervised::spawn(program, folder);
    run.wait_for_updates(50);
    // Actor and learner were there before; the evaluator begins at its leisure.
    run.wait_for_process("evaluator");
    let before = run.workers();
    let run_folder = run.run_folder();
    let newest = || checkpoints_in(&run_folder).pop();
    for jump in [DAY_S, -DAY_S, 0] {
        set_clock(jump);
        let (of_before, evaluations) = (newest(), run.evaluations().len());
        let now = Timestamp::now();
        let is_of_that_day = |time: Timestamp| (time - (now + jump.seconds())).total(jiff::Unit::Hour).is_ok_and(|hours| hours.abs() < 1.0);
        // The newest of the last two is kept, whatever day it bears.
        run.wait_until("a checkpoint of that day", || {
            newest() != of_before && newest().and_then(|path| written(&path)).is_some_and(is_of_that_day)
        });
        run.wait_for_evaluations("two more evaluations", |lines| lines.len() >= evaluations + 2);
    }
    let log = run.log();
    assert_eq!(run.workers(), before, "nobody is killed for it: {log}");
    assert!(!log.contains("has been silent") && !log.contains("nothing has advanced"), "{log}");
    run.end_by(Signal::SIGTERM);
    let seconds: Vec<f64> = run.metrics().iter().filter_map(|line| line["wall_s"].as_f64()).collect();
    assert!(seconds.is_sorted() && *seconds.last().unwrap() < DAY_S as f64 / 2.0, "a run's seconds are its own: {seconds:?}");

    let updates = run.metrics().last().and_then(|line| line["updates"].as_u64()).unwrap();
    run.resume(&[]);
    run.wait_for("more updates than before", |line| line["updates"].as_u64() > Some(updates + 50));
    run.end_by(Signal::SIGTERM);
}
