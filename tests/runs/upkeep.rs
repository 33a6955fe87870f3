//! What a run needs is put back when somebody takes it away, and what it has learned outlives even its giving up.

use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, getsid};
use shoal::checkpoint::PolicyWeights;
use shoal::segment::processes::Role;

use crate::support::programs::{
    Supervised, checkpoints_in, is_open_in, kill, limit_files, living, number, process_slot, start, stop, stop_outside_of_operations,
    too_few_files, wait_until,
};

/// The processes that the supervisor has forked into a session of their own.
fn sentinels(run: &Supervised) -> Vec<u32> {
    let leads_a_session = |pid: &u32| {
        let raw = Pid::from_raw(pid.cast_signed());
        getsid(Some(raw)).is_ok_and(|session| session == raw)
    };
    run.all_processes().into_iter().filter(|&pid| pid != run.pid()).filter(leads_a_session).collect()
}

/// Whether a sentinel of the run has the file open.
fn is_open_in_a_sentinel(run: &Supervised, file: &Path) -> bool {
    sentinels(run).into_iter().any(|pid| is_open_in(pid, file))
}

#[test]
fn a_killed_sentinel_is_replaced_by_one_that_does_as_much() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(0);
    let [first] = sentinels(&run)[..] else { panic!("one sentinel") };
    kill(first, Signal::SIGKILL);
    run.wait_for_log("was killed: another takes its place");
    let is_replaced = |run: &Supervised| sentinels(run).into_iter().filter(|&pid| pid != first).count() == 1;
    run.look_for("another sentinel", |run| is_replaced(run).then_some(()));
    run.kill();
    assert!(run.log().contains("the supervisor is gone; checkpoint"), "{}", run.log());
    assert_eq!(run.checkpoints().len(), 1);
    run.assert_nothing_left();
}

#[test]
fn a_run_that_somebody_has_removed_from_the_registry_is_announced_again() {
    let mut run = start(&[]);
    run.wait_for_updates(0);
    let registry = run.folder.path().join("shoal");
    for remove_all in [false, true] {
        let [record, socket] = ["json", "socket"].map(|ending| registry.join(format!("{}.{ending}", run.pid())));
        if remove_all {
            std::fs::remove_dir_all(&registry).unwrap();
        } else {
            std::fs::remove_file(&record).unwrap();
        }
        run.wait_until("its record", || record.is_file());
        UnixStream::connect(&socket).expect("somebody listens there");
        run.ask("inspect", &[run.run_folder().to_str().unwrap(), "--json"]);
    }
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_run_whose_lock_was_cleared_away_keeps_others_out_and_has_it_again() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(0);
    let lock = run.run_folder().canonicalize().unwrap().join(".lock");
    std::fs::remove_file(&lock).unwrap();
    let refused = run.resume_elsewhere();
    assert!(refused.contains("is under way"), "{refused}");
    run.wait_for_log("somebody had removed .lock");
    // It goes on having what the supervisor has locked when that is killed.
    run.look_for("a sentinel that has it", |run| is_open_in_a_sentinel(run, &lock).then_some(()));
    assert!(run.resume_elsewhere().contains("is under way"));
    run.end_by(Signal::SIGINT);
}

#[test]
fn whoever_goes_on_with_a_run_that_was_killed_soon_after_its_lock_was_cleared_away_waits_for_its_sentinel() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(0);
    // The sentinel waits ten seconds for it.
    stop(run.wait_for_process("actor"));
    // It would lock its folder again.
    stop(run.pid());
    let lock = run.run_folder().canonicalize().unwrap().join(".lock");
    std::fs::remove_file(&lock).unwrap();
    run.signal(Signal::SIGKILL);
    run.wait();
    wait_until("a sentinel that has locked the folder", || run.log(), || is_open_in_a_sentinel(&run, &lock));
    let plan = run.plan_to_resume();
    assert!(plan.contains("waiting for what was there to be on the disk") && plan.contains("goes on from checkpoint"), "{plan}");
    run.wait_for_end_of_all();
}

#[test]
fn a_run_whose_folder_was_moved_leaves_all_that_it_learned_where_that_is_now() {
    let mut run = start(&["checkpoint.interval_s=1", "evaluator.interval_ms=50"]);
    run.wait_for("a confirmation", |line| line["best_eval_return"].is_number());
    let old = run.run_folder().canonicalize().unwrap();
    let moved = run.move_folder("archive");
    let newest_checkpoint = || checkpoints_in(&moved).pop();
    let before = newest_checkpoint();
    run.wait_until("a checkpoint there", || newest_checkpoint() > before);
    let before_the_last = newest_checkpoint();
    run.end_by(Signal::SIGINT);
    let log = run.log();
    assert!(log.contains("the folder of the run was moved, and its results go to"), "{log}");
    let version = |name: &str| PolicyWeights::load(&moved.join("weights").join(name)).unwrap().metadata.parameter_version;
    let evaluations = run.evaluations();
    let best = evaluations.iter().filter(|line| line["is_best"] == true).map(|line| number(line, "version")).max();
    assert_eq!(best, Some(version("best.safetensors")), "{log}");
    assert!(Some(version("last.safetensors")) >= best, "{log}");
    assert_eq!(run.record()["finished"]["reason"], "interrupted");
    assert!(newest_checkpoint() > before_the_last, "{log}");
    assert!(!old.exists(), "made anew");
}

#[test]
fn a_last_checkpoint_during_which_the_folder_of_the_run_is_moved_is_written_where_that_is_now() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(0);
    // As long as somebody else has this lock, no checkpoint is written.
    let checkpoints = run.run_folder().join("checkpoints");
    std::fs::create_dir(&checkpoints).unwrap();
    let lock = std::fs::File::create(checkpoints.join(".lock")).unwrap();
    lock.lock().unwrap();
    let before = run.all_processes();
    run.signal(Signal::SIGINT);
    run.look_for("who writes it", |run| run.all_processes().into_iter().find(|pid| !before.contains(pid)));
    let moved = run.move_folder("archive");
    drop(lock);
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGINT as i32), "{}", run.output());
    assert_eq!(checkpoints_in(&moved).len(), 1, "{}", run.log());
    assert_eq!(run.record()["finished"]["reason"], "interrupted");
}

#[test]
fn a_synchronous_run_whose_folder_was_moved_replaces_its_best_weights_by_better_ones_alone() {
    let mut run = start(&[
        "actor.count=0",
        "checkpoint.synchronous_interval_steps=2000",
        "evaluator.synchronous_interval_steps=500",
        "evaluator.confirm_episodes=10",
    ]);
    run.wait_for("a confirmation", |line| line["best_eval_return"].is_number());
    run.move_folder("archive");
    // The trainer starts over after each.
    let complete = |run: &Supervised| run.log().matches("is complete").count();
    let before = complete(&run);
    run.look_for("more checkpoints", |run| (complete(run) >= before + 4).then_some(()));
    run.end_by(Signal::SIGINT);
    let evaluations = run.evaluations();
    let best = evaluations.iter().filter(|line| line["is_best"] == true);
    let proven: Vec<f64> = best.map(|line| line["ci95_low"].as_f64().unwrap()).collect();
    assert!(proven.is_sorted_by(|before, after| before < after), "{proven:?}");
}

#[test]
fn a_replacement_for_which_the_system_has_no_room_is_started_once_it_has() {
    // An evaluator lacks a channel, the others a pidfd; and a run tells once of what has the same cause.
    for roles in [&["evaluator", "learner"][..], &["actor"]] {
        let mut run = start(&[]);
        run.wait_for_updates(50);
        let segment = run.segment();
        for role in roles {
            run.wait_until("all processes", || living(&segment, role).len() == 1);
            let usual = limit_files(&run, too_few_files());
            kill(living(&segment, role)[0].1, Signal::SIGKILL);
            run.wait_for_log(&format!("{role} 0 could not be started"));
            assert!(run.is_running(), "{}", run.log());
            limit_files(&run, usual);
            run.wait_until("its replacement", || living(&segment, role).len() == 1);
            let updates = number(&run.metrics().pop().unwrap(), "updates");
            run.wait_for("more updates", |line| number(line, "updates") > updates + 50);
        }
        drop(segment);
        run.end_by(Signal::SIGINT);
    }
}

#[test]
fn two_that_die_inside_operations_are_repaired_after_though_the_supervisor_can_open_no_file() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for_updates(50);
    let segment = run.segment();
    let pids = [0, 1].map(|number| {
        let slot = process_slot(&segment, Role::Actor, number);
        stop_outside_of_operations(slot);
        std::mem::forget(slot.begin_operation(segment.control(), || ()));
        slot.pid()
    });
    let usual = limit_files(&run, too_few_files());
    // The repair after the first kills the second, which is seen off only behind it.
    kill(pids[0], Signal::SIGKILL);
    run.wait_for_log(&format!("actor 1 (pid {}) stood still in the middle of an operation and was killed (after ", pids[1]));
    run.wait_for_log("the sums of the tree are exact again");
    limit_files(&run, usual);
    run.wait_until("the replacements", || living(&segment, "actor").iter().filter(|(_, pid)| !pids.contains(pid)).count() == 2);
    let updates = number(&run.metrics().pop().unwrap(), "updates");
    run.wait_for("more updates", |line| number(line, "updates") > updates + 50);
    let log = run.log();
    assert_eq!(log.matches("is stuck in the middle of an operation").count(), 1, "{log}");
    drop(segment);
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_run_gives_up_on_a_process_that_fails_three_times_in_a_row_however_often_it_may_die() {
    // So slow that no actor makes progress before it is killed.
    let mut run = start(&["actor.count=1", "machine.max_restarts=1000", "environment.step_delay_us=10000", "evaluator.enabled=false"]);
    run.wait_for_updates(0);
    let mut crashed = Vec::new();
    for _ in 0..3 {
        let actor = run.look_for("an actor", |run| run.processes("actor").into_iter().find(|pid| !crashed.contains(pid)));
        // What a crash raises, and nobody sends.
        kill(actor, Signal::SIGABRT);
        crashed.push(actor);
    }
    assert_eq!(run.wait().code(), Some(1));
    let output = run.output();
    assert!(output.contains("gave up: actor 0 was killed by SIGABRT (3 times in a row by itself"), "{output}");
    assert!(!output.contains("machine.max_restarts is"), "raising it would change nothing: {output}");
    assert!(output.contains("restarting now (1 of 1000)") && output.contains("restarting in 1 s (2 of 1000)"), "{output}");
}

#[test]
fn a_run_whose_learner_crashes_again_and_again_keeps_what_was_learned_before() {
    let slow = ["environment.step_delay_us=8000", "replay.samples_per_insert=4", "evaluator.enabled=false"];
    let mut run = start(&[&slow[..], &["checkpoint.interval_s=600"]].concat());
    // From here on there is a state that a replacement goes on from.
    run.wait_for_updates(100);
    let mut crashed = Vec::new();
    for _ in 0..3 {
        let learner = run.look_for("a learner", |run| run.processes("learner").into_iter().find(|pid| !crashed.contains(pid)));
        kill(learner, Signal::SIGABRT);
        crashed.push(learner);
    }
    assert_eq!(run.wait().code(), Some(1));
    let output = run.output();
    assert!(output.contains("gave up: learner 0 was killed by SIGABRT (3 times in a row") && output.contains("go on "), "{output}");
    assert_eq!(run.checkpoints().len(), 1, "{output}");
}

/// Where `runs/latest` leads.
fn run_folder_of(folder: &std::path::Path) -> Option<std::path::PathBuf> {
    folder.join("runs/latest").canonicalize().ok()
}

#[test]
fn what_was_learned_stays_when_more_processes_have_died_than_may() {
    let mut run = start(&["machine.max_restarts=0", "checkpoint.interval_s=600", "run.resume=auto"]);
    let folder = run.folder.path().to_path_buf();
    run.wait_for_updates(20);
    kill(run.wait_for_process("actor"), Signal::SIGKILL);
    assert_eq!(run.wait().code(), Some(1));
    let output = run.output();
    assert!(output.contains("gave up: actor 0") && output.contains("machine.max_restarts is 0") && output.contains("go on "), "{output}");
    let steps = number(&run.metrics().pop().unwrap(), "env_steps");
    assert_eq!(run.checkpoints().len(), 1);
    // The same command once more.
    run.start_again(&["machine.max_restarts=0", "checkpoint.interval_s=600", "run.resume=auto"]);
    run.wait_for("more steps", |line| number(line, "env_steps") > steps + 500);
    assert!(run.log().contains("goes on from checkpoint"), "{}", run.log());

    kill(run.wait_for_process("actor"), Signal::SIGKILL);
    assert_eq!(run.wait().code(), Some(1));
    let gave_up = run.run_folder().canonicalize().unwrap();
    // What was wrong with it has been changed: that cannot go on from there.
    run.start_again(&["checkpoint.interval_s=600", "run.resume=auto", "network.hidden=[16]"]);
    run.wait_until("a new run", || run_folder_of(&folder).is_some_and(|folder| folder != gave_up));
    run.wait_for_updates(0);
    assert!(!run.log().contains("goes on from checkpoint"), "{}", run.log());
    run.end_by(Signal::SIGINT);
}
