//! `kill -9` of any process of a run: training goes on or ends cleanly, and nothing is left behind.

use std::time::Duration;

use nix::sys::signal::Signal;
use shoal::segment::Segment;
use shoal::segment::counters::Counter;
use shoal::segment::membership::View;
use shoal::segment::processes::{Phase, ProcessSlot, Role, SlotState};
use shoal::sync::Ordering;

use crate::support::programs::{self, kill, learner, number, process_slot, start, start_preset, stop, stop_outside_of_operations, updates};

#[test]
fn a_killed_actor_is_replaced_and_training_goes_on() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for_updates(50);
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
}

#[test]
fn the_replacement_of_an_actor_goes_on_from_the_statistics_that_were_published() {
    // Steps between two publications: those of a fragment in each of the preset's environments.
    const UNPUBLISHED: u64 = 16 * 100;
    let mut run = start_preset("pendulum_ppo", &["run.stop_env_steps=1000000000", "run.stop_eval_return=\"none\""]);
    run.wait_for_updates(100);
    let segment = run.segment_read_only();
    let actor = process_slot(&segment, Role::Actor, 0);
    let board = segment.statistics_board(actor.index()).expect("the preset normalises");
    let mut values = vec![0.0; board.len()];
    let mut seen = || board.read(&mut values).map_or(0, |(_, [observations, ..])| observations);
    run.wait_until("more than may be lost", || seen() > 4 * UNPUBLISHED);
    let killed = actor.pid();
    kill(killed, Signal::SIGKILL);
    run.wait_until("its replacement", || actor.state() == SlotState::Live && actor.pid() != killed);
    let version = board.version();
    run.wait_until("what the replacement has seen", || board.version() > version);
    run.end_by(Signal::SIGTERM);
    let steps = segment.control().env_steps().load(Ordering::Relaxed);
    let lost = steps - seen();
    assert!(lost <= 2 * UNPUBLISHED, "{lost} of {steps} steps are in no statistics");
    run.assert_nothing_left();
}

/// Whether the learner lives, and waits until it may have a batch.
fn waits(learner: ProcessSlot<'_>) -> bool {
    learner.state() == SlotState::Live && learner.phase() == Some(Phase::LimiterWait)
}

#[test]
fn a_killed_learner_goes_on_from_its_last_state() {
    // The actor stands still until a replacement of the learner has begun.
    let mut run = start(&["machine.hang_timeout_s=600"]);
    run.wait_for_updates(400);
    let segment = run.segment();
    let (actor, victim) = (process_slot(&segment, Role::Actor, 0), learner(&segment, 0));
    // Without new rows a replacement stays where it begins.
    stop_outside_of_operations(actor);
    run.wait_until("the learner to wait for a batch", || waits(victim));
    let killed = victim.pid();
    stop(killed);
    let before = updates(&segment);
    kill(killed, Signal::SIGKILL);
    run.wait_until("its replacement to wait too", || victim.pid() != killed && waits(victim));
    let after = updates(&segment);
    // Two more are what the rate limiter may have allowed the one that was killed.
    assert!((before - 100..=before + 2).contains(&after), "from {before} to {after}, and a state is published every 100 updates");
    kill(actor.pid(), Signal::SIGCONT);
    run.wait_for("more updates", |line| number(line, "restarts") >= 1 && number(line, "updates") > before + 200);
    assert!(run.log().contains("its replacement goes on"), "{}", run.log());
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn one_of_two_learners_may_die_and_come_back() {
    let mut run = start(&["learner.count=2"]);
    run.wait_for_updates(100);
    for victim in [1, 0] {
        let before = number(&run.metrics().pop().unwrap(), "updates");
        let learners = run.processes("learner");
        assert_eq!(learners.len(), 2);
        kill(learners[victim], Signal::SIGKILL);
        run.wait_for("updates by both learners", |line| number(line, "learners") == 2 && number(line, "updates") > before + 300);
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_wait_for_a_learner_that_dies_is_none_for_the_rate_limiter() {
    const WAIT: Duration = Duration::from_secs(1);
    let mut run = start(&["learner.count=2", "replay.samples_per_insert=none", "machine.hang_timeout_s=60"]);
    run.wait_for_updates(100);
    let segment = run.segment();
    let (waiting, victim) = (learner(&segment, 0), learner(&segment, 1));
    let waited = || [Counter::ExchangeNs, Counter::LimiterWaitNs].map(|counter| Duration::from_nanos(waiting.counters().get(counter)));
    stop_outside_of_operations(victim);
    let (reached, before) = (updates(&segment), waited());
    std::thread::sleep(WAIT);
    kill(victim.pid(), Signal::SIGKILL);
    run.wait_until("more updates", || updates(&segment) > reached + 20);
    let after = waited();
    let [for_the_other, for_the_limiter] = [0, 1].map(|wait| after[wait] - before[wait]);
    assert!(for_the_other > WAIT / 2 && for_the_limiter < WAIT / 2, "{for_the_other:?} for the other, {for_the_limiter:?} for the limiter");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

/// Such a learner has the leader's state and no batch of its own yet, so only that state can tell it how observations are scaled.
#[test]
fn a_learner_that_leads_before_its_first_batch_publishes_what_normalises_observations() {
    let endless = ["learner.count=2", "run.stop_env_steps=1000000000", "run.stop_eval_return=\"none\"", "evaluator.enabled=false"];
    let mut run = start_preset("pendulum_ppo", &endless);
    run.wait_for_updates(100);
    let segment = run.segment();
    let board = segment.parameter_board();
    let [first, second] = [0, 1].map(|number| learner(&segment, number));
    let leader = || View::load(segment.control().membership()).leader;
    let published_scaling = || {
        let mut published = vec![0.0; board.len()];
        board.read(&mut published).expect("the leader has published");
        published.split_off(published.len() - 6)
    };
    // No new rows come from here on, and the learners use up those that are there.
    run.processes("actor").iter().for_each(|&actor| kill(actor, Signal::SIGSTOP));
    run.wait_until("both learners to wait for a batch", || waits(first) && waits(second));
    for (leads, joins) in [(first, second), (second, first)] {
        let killed = joins.pid();
        kill(killed, Signal::SIGKILL);
        run.wait_until("both learners to wait for a batch", || joins.pid() != killed && waits(joins) && waits(leads));
        let (version, led) = (board.version(), leads.pid());
        kill(led, Signal::SIGKILL);
        run.wait_until("the other learner to lead", || board.version() > version && leader() == joins.role().map(|(_, number)| number));
        let scaling = published_scaling();
        assert_ne!(scaling, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "observations are not scaled at all");
        run.wait_until("both learners", || leads.pid() != led && waits(leads));
    }
    run.processes("actor").iter().for_each(|&actor| kill(actor, Signal::SIGCONT));
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

/// How long a learner runs between two looks at where it is.
const SHORTEST_STEP: Duration = Duration::from_micros(50);
const LONGEST_STEP: Duration = Duration::from_millis(10);

/// Stop `publisher` after an update that is followed by all its publications, before the first of them is complete,
/// unless `given_up` comes first. It is led there in small steps, each long enough for it to get a core.
fn stop_before_it_publishes(segment: &Segment, publisher: u32, given_up: impl Fn() -> bool) -> bool {
    let board = segment.parameter_board();
    let mut parameters = vec![0.0; board.len()];
    let mut has_published = |updates: u64| board.read(&mut parameters).is_some_and(|(_, [published, ..])| published >= updates);
    let (mut step, mut ran_ns) = (SHORTEST_STEP, 0);
    while !given_up() {
        std::thread::sleep(step);
        if (1..98).contains(&(updates(segment) % 100)) {
            continue;
        }
        stop(publisher);
        if updates(segment).is_multiple_of(100) && !has_published(updates(segment)) {
            return true;
        }
        let has_run = std::mem::replace(&mut ran_ns, running_time_ns(publisher)) != ran_ns;
        step = if has_run { SHORTEST_STEP } else { (2 * step).min(LONGEST_STEP) };
        kill(publisher, Signal::SIGCONT);
    }
    false
}

/// Time that a process has had a core.
fn running_time_ns(pid: u32) -> u64 {
    let statistics = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    statistics.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
}

#[test]
fn a_learner_stopped_while_it_publishes_leads_on_when_it_wakes_up_beside_a_replacement() {
    // A large network, so that a publication takes long enough to be met.
    let mut run = start(&["learner.count=2", "learner.batch_size=8", "network.hidden=[512,512]", "machine.max_restarts=1000"]);
    run.wait_for_updates(10);
    let segment = run.segment();
    let (victim, publisher) = (learner(&segment, 0), learner(&segment, 1));
    loop {
        let killed = victim.pid();
        kill(killed, Signal::SIGKILL);
        let is_replaced = || victim.state() == SlotState::Live && victim.pid() != killed;
        // Alone for as long as the replacement is put off: not at all after the first kill, then 1, 2, 4 ... seconds.
        if stop_before_it_publishes(&segment, publisher.pid(), is_replaced) {
            run.wait_until("the replacement to wait", || is_replaced() && victim.phase() == Some(Phase::Exchange));
            break;
        }
        // The next kill comes shortly before the update that it is about.
        run.wait_until("the next publication", || is_replaced() && updates(&segment) % 100 >= 85);
    }
    let reached = updates(&segment);
    kill(publisher.pid(), Signal::SIGCONT);
    run.wait_until("more updates by both", || updates(&segment) > reached + 20);
    let log = run.log();
    assert!(!log.contains("learner 1 "), "learner 1 lives on:\n{log}");
    assert!(log.contains("its replacement goes on from the state of learner 1, which leads"), "{log}");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn learners_that_die_together_are_not_reported_to_go_on_from_each_other() {
    let mut run = start(&["learner.count=2"]);
    run.wait_for_updates(100);
    let segment = run.segment();
    let learners = [0, 1].map(|number| learner(&segment, number));
    // The supervisor finds both dead when it goes on.
    stop(run.pid());
    learners.iter().for_each(|learner| kill(learner.pid(), Signal::SIGKILL));
    run.wait_until("the end of both", || learners.iter().all(|learner| learner.dead_owner().is_some()));
    run.signal(Signal::SIGCONT);
    run.wait_for("both learners again", |line| number(line, "learners") == 2 && number(line, "restarts") >= 2);
    let log = run.log();
    assert!(!log.contains("goes on from the state of learner"), "{log}");
    assert_eq!(log.matches("its replacement goes on from the last state that was published").count(), 2, "{log}");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn what_an_evaluator_reported_before_its_death_counts() {
    let mut run = start(&["evaluator.interval_ms=0"]);
    run.wait_for_evaluations("the first evaluation", |lines| !lines.is_empty());
    let (segment, evaluator) = (run.segment(), run.processes("evaluator")[0]);
    let updates = || segment.control().updates().load(Ordering::Relaxed);
    // All but the supervisor go on, and it finds reports and death at once.
    run.signal(Signal::SIGSTOP);
    let from = updates();
    run.wait_until("what nobody takes in yet", || updates() > from + 6_000);
    kill(evaluator, Signal::SIGKILL);
    let until = updates();
    run.signal(Signal::SIGCONT);
    run.wait_for_evaluations("those of the dead one", |lines| {
        // Its replacement has only newer parameters.
        lines.iter().filter(|line| (from + 1..until - 1_000).contains(&number(line, "updates"))).count() >= 2
    });
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_killed_evaluator_comes_back_and_training_does_not_notice() {
    let mut run = start(&["evaluator.interval_ms=50"]);
    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number());
    kill(run.processes("evaluator")[0], Signal::SIGKILL);
    let version = number(&run.metrics().pop().unwrap(), "eval_version");
    run.wait_for("another evaluation", |line| number(line, "restarts") == 1 && line["eval_version"].as_u64() > Some(version));
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    let mut run = start(&["actor.count=2"]);
    run.wait_for_updates(20);
    assert!(!programs::segments_of(run.pid()).is_empty());
    run.signal(Signal::SIGKILL);
    assert!(!run.wait().success());
    run.assert_nothing_left();
}

#[test]
fn a_supervisor_killed_while_it_removes_everything_leaves_nothing_either() {
    for spins in (0..12).map(|round| round * 3_000) {
        let mut run = start(&["evaluator.enabled=false"]);
        run.wait_for_updates(5);
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
    // Without an evaluator, which may wait for a disk for so long.
    let mut run = start(&["actor.count=2", "machine.hang_timeout_s=1.0", "evaluator.enabled=false"]);
    run.wait_for_updates(20);
    let victim = run.processes("actor")[0];
    kill(victim, Signal::SIGSTOP);
    run.wait_for_log("has been silent for");
    assert!(run.log().contains("raise machine.hang_timeout_s above"), "{}", run.log());
    run.wait_for_log(&format!("(pid {victim}) gave no sign of life"));
    run.look_for("the replacement", |run| {
        let actors = run.processes("actor");
        (actors.len() == 2 && !actors.contains(&victim)).then_some(())
    });
    run.end_by(Signal::SIGTERM);
}
