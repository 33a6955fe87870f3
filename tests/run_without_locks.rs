//! A run on a file system without locks: nobody is kept out of its folder, and whoever goes on with it waits all the same for what a
//! killed supervisor has left. Driven as real binaries.

mod run_support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use run_support::{kill, number, start, stop};

/// A library, built in `folder`, with which a program finds no locks on files.
fn no_locks(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_without_locks/no_locks.c");
    let library = folder.join("no_locks.so");
    let status = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().expect("a C compiler");
    assert!(status.success());
    library
}

#[test]
fn whoever_goes_on_with_a_killed_run_waits_for_its_sentinel() {
    let cases = [
        ("resume", "machine.sentinel=checkpoint", "waiting for what was there to be on the disk"),
        ("adopt", "machine.sentinel=keep", "waiting for everybody to leave"),
    ];
    for (action, sentinel, awaited) in cases {
        let mut run = start(&["checkpoint.interval_s=600", sentinel]);
        run.wait_for("updates", |line| number(line, "updates") > 50);
        // The sentinel waits for the actor.
        let actor = run.wait_for_process("actor");
        stop(actor);
        run.signal(Signal::SIGKILL);
        run.wait();
        let mut going_on = run.command_to(action, &["--check"]).env("LD_PRELOAD", no_locks(run.folder.path())).spawn().unwrap();
        let mut lines = BufReader::new(going_on.stderr.take().unwrap()).lines().map_while(Result::ok);
        let waits = lines.any(|line| line.contains(awaited));
        kill(actor, Signal::SIGCONT);
        assert!(waits, "{action} has not waited");
        let said: Vec<String> = lines.collect();
        assert!(going_on.wait().unwrap().success(), "{action}: {said:?}");
        if action == "adopt" {
            // Its keeper alone is left of it.
            run.all_processes().into_iter().for_each(|keeper| kill(keeper, Signal::SIGTERM));
        }
        run.wait_for_end_of_all();
        assert_eq!(run.checkpoints().len(), 1, "{}", run.log());
    }
}
