//! A run on a file system without locks: nobody is kept out of its folder, and whoever goes on with it waits all the same for what a
//! killed supervisor has left. Driven as real binaries.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::programs::{SMALL, command, kill, said, start, stop, try_kill};

/// A library, built in `folder`, with which a program finds no locks on files: its path from there, since a space or a colon in a longer
/// one would end it in `LD_PRELOAD`.
fn no_locks(folder: &Path) -> &'static str {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/without_locks/no_locks.c");
    let library = "./no_locks.so";
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o", library]).arg(source).current_dir(folder);
    assert!(compiler.status().expect("a C compiler").success());
    library
}

#[test]
fn whoever_goes_on_with_a_killed_run_waits_for_its_sentinel() {
    let folder = tempfile::Builder::new().prefix("a space ").tempdir().unwrap();
    // Built before anybody is stopped: the sentinel waits ten seconds for the actor.
    let library = no_locks(folder.path());
    let to_disk = "waiting for what was there to be on the disk";
    let cases = [
        ("resume", "machine.sentinel=checkpoint", "run.resume=never", to_disk),
        ("the same command", "machine.sentinel=checkpoint", "run.resume=auto", to_disk),
        ("adopt", "machine.sentinel=keep", "run.resume=never", "waiting for everybody to leave"),
    ];
    for (action, sentinel, resume, awaited) in cases {
        let settings = ["checkpoint.interval_s=600", sentinel, resume];
        let mut run = start(&settings);
        run.wait_for_updates(50);
        let actor = run.wait_for_process("actor");
        stop(actor);
        run.signal(Signal::SIGKILL);
        run.wait();
        let mut program = match resume {
            "run.resume=auto" => command(run.folder.path(), &[SMALL, &settings].concat()),
            _ => run.command_to(action, &[]),
        };
        let mut going_on = program.arg("--check").env("LD_PRELOAD", library).current_dir(folder.path()).spawn().unwrap();
        let mut lines = BufReader::new(going_on.stderr.take().unwrap()).lines().map_while(Result::ok);
        let waits = lines.any(|line| line.contains(awaited));
        // The sentinel may have killed it by now.
        try_kill(actor, Signal::SIGCONT);
        assert!(waits, "{action} has not waited");
        let said: Vec<String> = lines.collect();
        assert!(going_on.wait().unwrap().success(), "{action}: {said:?}");
        assert!(said.iter().any(|line| line.contains("goes on ")), "{action}: {said:?}");
        if action == "adopt" {
            // Its keeper alone is left of it.
            run.all_processes().into_iter().for_each(|keeper| kill(keeper, Signal::SIGTERM));
        }
        run.wait_for_end_of_all();
        assert_eq!(run.checkpoints().len(), 1, "{}", run.log());
    }
}

#[test]
fn whoever_goes_on_with_a_run_that_may_live_on_another_machine_is_told_which() {
    let folder = tempfile::tempdir().unwrap();
    let library = no_locks(folder.path());
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(50);
    run.kill();
    let mut record = run.record();
    record["machine"] = "node07".into();
    record["boot"] = "its own".into();
    std::fs::write(run.run_folder().join("run.json"), record.to_string()).unwrap();
    let mut program = run.command_to("resume", &["--check"]);
    let plan = said(&program.env("LD_PRELOAD", library).current_dir(folder.path()).output().unwrap());
    assert!(plan.contains("was started on node07 and noted no end") && plan.contains("goes on from checkpoint"), "{plan}");
}
