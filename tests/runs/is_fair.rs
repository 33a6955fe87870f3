//! Actors of a real run, the supervisor's own and attached ones, get equal shares of what the rate limiter allows.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use shoal::segment::counters::Counter;

use crate::support::programs::{kill, start};

const OWN: usize = 2;
const ATTACHED: usize = 2;
const FLUSH: u64 = 16;
/// Flushes over which shares are compared, and how many there are in all.
const WINDOW: u64 = 100;
const FLUSHES: u64 = 400;

/// Learning takes much longer than acting, also for an actor that waits for a core now and then, so that the actors wait.
const LEARNER_BOUND: &[&str] = &[
    "actor.count=2",
    "actor.environments=4",
    "actor.flush_transitions=16",
    // Every turn is for as many rows: only their number says when to flush.
    "actor.flush_interval_ms=60000",
    "network.hidden=[128,128]",
    "learner.batch_size=64",
    "replay.samples_per_insert=64.0",
    "replay.error_band=16000.0",
    "evaluator.enabled=false",
];

#[test]
fn no_actor_gets_less_than_half_of_its_share() {
    let mut run = start(LEARNER_BOUND);
    run.wait_for_updates(20);
    let mut attach = run.program("attach");
    attach.args([&run.pid().to_string(), "--actors", &ATTACHED.to_string()]).stderr(Stdio::null());
    let mut attached = attach.spawn().unwrap();
    let segment = run.segment_read_only();
    let count =
        || -> Vec<u64> { (0..OWN + ATTACHED).map(|slot| segment.processes().slot(slot).counters().get(Counter::Inserted)).collect() };
    // The counts of one moment: nobody inserted between two that agree.
    let look = || loop {
        let counts = count();
        if count() == counts {
            break counts;
        }
    };
    run.wait_for("everybody", |_| look().iter().all(|&inserted| inserted > 4 * FLUSH));
    let mut looks = vec![look()];
    let total = |look: &[u64]| look.iter().sum::<u64>();
    while total(&looks[looks.len() - 1]) - total(&looks[0]) < FLUSHES * FLUSH {
        run.wait_for("progress", |_| total(&look()) >= total(&looks[looks.len() - 1]) + FLUSH);
        looks.push(look());
        assert!(attached.try_wait().unwrap().is_none(), "the attached actors have left");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut last = 0;
    for first in 0..looks.len() {
        while last < looks.len() && total(&looks[last]) - total(&looks[first]) < WINDOW * FLUSH {
            last += 1;
        }
        let Some(end) = looks.get(last) else { break };
        let gained: Vec<u64> = end.iter().zip(&looks[first]).map(|(now, then)| now - then).collect();
        let fair = total(&gained) / gained.len() as u64;
        assert!(gained.iter().all(|&gained| 2 * gained >= fair), "{gained:?} transitions");
    }
    kill(attached.id(), Signal::SIGINT);
    assert!(attached.wait().unwrap().success());
    run.end_by(Signal::SIGTERM);
    let report = run.output();
    assert!(report.contains("rows: actor 0 ") && report.contains("attached actor 3 "), "{report}");
    run.assert_nothing_left();
}
