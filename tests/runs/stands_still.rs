//! A run in which nothing advances although every process gives signs of life is said to stand still, and nobody is
//! killed for it; nor is anybody for a pause of the whole run.

use nix::sys::signal::Signal;
use shoal::segment::membership::View;

use crate::support::programs::{kill, start, updates};

#[test]
fn a_standstill_is_said_once_with_what_each_process_waits_for_and_so_is_its_end() {
    // Without an evaluator, which may wait for a disk for so long.
    let mut run = start(&["machine.hang_timeout_s=3.0", "evaluator.enabled=false"]);
    run.wait_for_updates(50);
    let before = run.workers();
    let segment = run.segment();
    let view = View::load(segment.control().membership());
    // A leader that is not there: the learner waits for its state, and the actor soon for the learner.
    View { epoch: view.epoch + 1, members: 0b11, leader: Some(1), doublings: 0 }.store(segment.control().membership());
    run.wait_for_log("nothing has advanced for");
    let reached = updates(&segment);
    run.wait_for_log("report it as a bug");
    let log = run.log();
    let learner = run.processes("learner")[0];
    assert!(log.contains(&format!("    waiting for other learners: learner 0 (pid {learner})")), "{log}");
    assert!(log.contains("    waiting for the rate limiter: actor 0 (pid "), "{log}");
    assert!(log.contains(&format!("`shoal inspect {}`", run.pid())), "{log}");
    // Another limit's worth of standing still, and it is not said again.
    let looked = std::time::Instant::now();
    run.wait_until("another standstill", || looked.elapsed().as_secs() > 6);
    View { epoch: view.epoch + 2, ..view }.store(segment.control().membership());
    run.wait_for_log("the run goes on; it stood still for");
    run.wait_until("more updates", || updates(&segment) > reached + 100);
    assert_eq!(run.log().matches("nothing has advanced for").count(), 1, "{}", run.log());
    assert_eq!(run.workers(), before, "nobody is killed for a standstill");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_that_is_stopped_as_a_whole_goes_on_with_all_its_processes() {
    // Longer than a busy machine keeps a process from running, but for an evaluator that waits for a disk.
    let mut run = start(&["machine.hang_timeout_s=4.0", "evaluator.enabled=false"]);
    run.wait_for_updates(50);
    let before = run.workers();
    let segment = run.segment();
    // The supervisor first and last, as one that is stopped by Ctrl+Z may be.
    run.signal(Signal::SIGSTOP);
    before.iter().for_each(|&pid| kill(pid, Signal::SIGSTOP));
    std::thread::sleep(std::time::Duration::from_secs(6));
    run.signal(Signal::SIGCONT);
    std::thread::sleep(std::time::Duration::from_millis(200));
    before.iter().for_each(|&pid| kill(pid, Signal::SIGCONT));
    let reached = updates(&segment);
    run.wait_until("more updates", || updates(&segment) > reached + 100);
    let log = run.log();
    assert_eq!(run.workers(), before, "{log}");
    assert!(!log.contains("has been silent") && !log.contains("nothing has advanced"), "{log}");
    drop(segment);
    run.end_by(Signal::SIGTERM);
}
