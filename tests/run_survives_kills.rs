//! `kill -9` of any process of a run: training goes on or ends cleanly, and nothing is left behind.

mod run_support;

use nix::sys::signal::Signal;
use run_support::{kill, start};
use serde_json::Value;

fn number(line: &Value, key: &str) -> u64 {
    line[key].as_u64().unwrap_or(0)
}

#[test]
fn a_killed_actor_is_replaced_and_training_goes_on() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for("the first updates", |line| number(line, "updates") > 50);
    let victim = run.processes("actor")[0];
    kill(victim, Signal::SIGKILL);
    run.wait_for_log("SIGKILL");
    let log = run.log();
    assert!(log.contains(&format!("(pid {victim}) was killed by SIGKILL")), "{log}");
    assert!(log.contains("environment steps") && log.contains("staged"), "{log}");
    let before = run.metrics().pop().unwrap();
    run.wait_for("both actors and more updates", |line| {
        number(line, "actors") == 2 && number(line, "restarts") == 1 && number(line, "updates") > number(&before, "updates") + 50
    });
    assert!(!run.processes("actor").contains(&victim));
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
}

#[test]
fn a_killed_learner_goes_on_from_its_last_state() {
    let mut run = start(&[]);
    run.wait_for("the first updates", |line| number(line, "updates") > 400);
    kill(run.processes("learner")[0], Signal::SIGKILL);
    run.wait_for_log("its replacement goes on");
    let killed_at = number(&run.metrics().pop().unwrap(), "updates");
    run.wait_for("more updates", |line| number(line, "restarts") == 1 && number(line, "updates") > killed_at + 200);
    let updates: Vec<u64> = run.metrics().iter().map(|line| number(line, "updates")).collect();
    let lost = updates.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).max().unwrap();
    assert!(lost <= 100, "{lost} updates were lost, and a state is published every 100");
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
}

#[test]
fn one_of_two_learners_may_die_and_come_back() {
    let mut run = start(&["learner.count=2"]);
    run.wait_for("the first updates", |line| number(line, "updates") > 100);
    for victim in [1, 0] {
        let before = number(&run.metrics().pop().unwrap(), "updates");
        let learners = run.processes("learner");
        assert_eq!(learners.len(), 2);
        kill(learners[victim], Signal::SIGKILL);
        run.wait_for("updates by both learners", |line| number(line, "learners") == 2 && number(line, "updates") > before + 300);
    }
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
}

#[test]
fn a_killed_evaluator_comes_back_and_training_does_not_notice() {
    let mut run = start(&["evaluator.interval_ms=50"]);
    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number());
    kill(run.processes("evaluator")[0], Signal::SIGKILL);
    let version = number(&run.metrics().pop().unwrap(), "eval_version");
    run.wait_for("another evaluation", |line| number(line, "restarts") == 1 && number(line, "eval_version") > version);
    run.end_by(Signal::SIGINT);
    run.assert_nothing_left();
}

#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for("the first updates", |line| number(line, "updates") > 20);
    assert!(!run_support::segments_of(run.pid()).is_empty());
    run.signal(Signal::SIGKILL);
    assert!(!run.wait().success());
    run.assert_nothing_left();
}

#[test]
fn a_supervisor_killed_while_it_removes_everything_leaves_nothing_either() {
    for spins in (0..12).map(|round| round * 3_000) {
        let mut run = start(&["evaluator.enabled=false"]);
        run.wait_for("the first updates", |line| number(line, "updates") > 5);
        run.signal(Signal::SIGTERM);
        // The end is noted right before everything is removed; the kill meets another moment in every round.
        run.spin_until_finished();
        (0..spins).for_each(|_| std::hint::spin_loop());
        run.signal(Signal::SIGKILL);
        run.wait();
        run.assert_nothing_left();
    }
}

#[test]
fn a_stopped_actor_is_found_hung_and_replaced() {
    let mut run = start(&["actor.count=2", "machine.hang_timeout_s=1.0"]);
    run.wait_for("the first updates", |line| number(line, "updates") > 20);
    let victim = run.processes("actor")[0];
    kill(victim, Signal::SIGSTOP);
    run.wait_for_log("has been silent for");
    run.wait_for("the replacement", |line| number(line, "restarts") == 1 && number(line, "actors") == 2);
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
}
