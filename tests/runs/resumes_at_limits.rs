//! Limits and the end of a run that goes on: which of them it has come to, whose time counts, and what its report says. Driven
//! as real binaries.

use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::checkpoint::RunCheckpoint;

use crate::support::programs::{self, number, start};

#[test]
fn a_run_whose_time_is_over_is_told_so_and_stays_as_it_was() {
    let mut run = start(&["run.stop_wall_s=0.5", "checkpoint.interval_s=600"]);
    run.succeed();
    let kept = run.checkpoints();
    for arguments in [&["--check"][..], &[]] {
        run.resume(arguments);
        assert!(!run.wait().success() && run.output().contains("run.stop_wall_s is 0.5"), "{}", run.output());
    }
    assert_eq!(run.checkpoints(), kept);
}

#[test]
fn a_killed_run_keeps_its_replay_from_limits_that_it_did_not_go_by() {
    let mut run = start(&["checkpoint.interval_s=0.1"]);
    run.wait_for_log("checkpoint 000002");
    run.kill();
    let kept = run.checkpoints();
    for (change, limit) in [("run.stop_env_steps=100", "run.stop_env_steps is 100"), ("run.stop_wall_s=0.01", "run.stop_wall_s is 0.01")] {
        for check in [&["--check"][..], &[]] {
            run.resume(&[&["--set", change], check].concat());
            assert!(!run.wait().success());
            let said = run.output();
            assert!(said.contains("has come to ") && said.contains(limit), "{said}");
        }
    }
    assert_eq!(run.checkpoints(), kept);
    assert!(kept.last().unwrap().join("replay.shoal").is_file());
    // What it went by when it was killed at its very end: its report is to be written.
    let path = run.run_folder().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("stop_env_steps = 1000000000", "stop_env_steps = 100")).unwrap();
    run.resume(&[]);
    assert!(run.wait().success() && run.record()["finished"].is_object(), "{}", run.output());
}

#[test]
fn a_report_says_from_where_its_run_goes_on_if_that_is_behind_its_end() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGTERM);
    let said = run.output();
    assert!(said.contains("\ngo on ") && !said.contains("nothing was saved since"), "{said}");
    let saved = RunCheckpoint::open(run.checkpoints().last().unwrap()).unwrap().manifest().env_steps;
    run.resume(&["--set", "checkpoint.interval_s=none"]);
    run.wait_for("more steps", |line| number(line, "env_steps") > saved + 1000);
    run.end_by(Signal::SIGTERM);
    let said = run.output().replace(',', "");
    assert!(said.contains(&format!("\n            from {saved} steps: nothing was saved since\n")), "{said}");
}

#[test]
fn a_run_that_goes_on_with_an_empty_replay_says_when_it_learns_again_and_that_it_ended_before() {
    let mut run = start(&["run.stop_env_steps=3000", "replay.min_size=2000", "checkpoint.interval_s=600", "evaluator.enabled=false"]);
    run.succeed();
    let before = run.metrics().pop().unwrap();
    let longer_by = |steps: u64| format!("run.stop_env_steps={}", number(&before, "env_steps") + steps);
    let next = "with an empty replay; the next update needs the 2,000 more steps of replay.min_size";
    run.resume(&["--check", "--set", &longer_by(2_000)]);
    run.succeed();
    let plan = run.output();
    assert!(plan.contains("note        goes on from checkpoint 1: ") && plan.contains(&format!("{next}\n")), "{plan}");
    run.resume(&["--set", &longer_by(1_000)]);
    run.succeed();
    let said = run.output();
    assert!(said.contains(&format!("{next}, and the run ends after 1,000\n")), "{said}");
    assert!(said.contains(" samples/s; none since the run went on\n"), "{said}");
    assert_eq!(number(&run.metrics().pop().unwrap(), "updates"), number(&before, "updates"));
}

#[test]
fn waiting_until_a_killed_run_is_on_the_disk_is_no_time_of_it() {
    let auto = ["run.resume=auto", "checkpoint.interval_s=600"];
    let mut run = start(&auto);
    run.wait_for_updates(20);
    // Its sentinel waits some seconds for this one.
    programs::stop(run.processes("actor")[0]);
    run.signal(Signal::SIGKILL);
    run.wait();
    let (before, log_bytes, asked) = (run.metrics(), run.log().len(), Instant::now());
    run.start_again(&auto);
    run.wait_for_log_after(log_bytes, "goes on from checkpoint");
    let waited_s = asked.elapsed().as_secs_f64();
    let first = run.look_for("metrics of the second life", |run| run.metrics().get(before.len()).cloned());
    let wall_s = |line: &Value| line["wall_s"].as_f64().unwrap();
    assert!(wall_s(&first) - wall_s(before.last().unwrap()) < waited_s, "{first} after {waited_s} s");
    run.end_by(Signal::SIGTERM);
}
