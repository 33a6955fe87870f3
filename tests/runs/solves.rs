//! "Solved" is true: luck does not end a run, fresh episodes with the same weights do, and those weights hold the goal afterwards.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::checkpoint::{PolicyWeights, WeightsEvaluation};
use shoal::segment::processes::{Phase, Role};

use crate::support::programs::{Supervised, Watchdog, kill, process_slot, program, start, told, try_kill, wait_until};

const SYNCHRONOUS: &[&str] = &["actor.count=0", "evaluator.synchronous_interval_steps=500"];
/// Learning that changes nothing: every version of the parameters is as good as the first.
const FROZEN: &str = "learner.learning_rate=1e-12";

fn started(mode: &[&str], overrides: &[&str]) -> Supervised {
    start(&[mode, overrides].concat())
}

/// What `evaluate` says of saved weights, in 200 episodes that nobody has seen.
fn evaluate(weights: &Path) -> Value {
    let mut command = program("evaluate", weights.parent().unwrap());
    serde_json::from_str(&told(&command.arg(weights).args(["--episodes", "200", "--seed", "77", "--json"]).output().unwrap())).unwrap()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("`{key}` is no number in {of}"))
}

fn is_confirmation(line: &Value) -> bool {
    line["kind"] == "confirmation"
}

/// A return that single episodes of an untrained policy reach now and then, and its mean does not.
fn lucky_return() -> f64 {
    let mut run = started(SYNCHRONOUS, &[FROZEN, "run.stop_env_steps=500", "evaluator.enabled=false"]);
    run.succeed();
    let played = evaluate(&run.run_folder().join("weights/last.safetensors"));
    let mut returns: Vec<f64> = played["returns"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    returns.sort_by(f64::total_cmp);
    let lucky = returns[returns.len() * 4 / 5];
    assert!(lucky > number(&played, "ci95_high"), "{lucky} is not rare enough: {played}");
    lucky
}

/// The confirmation with which weights were saved, as it stands in `evaluations.jsonl`.
fn assert_saved_with_their_confirmation(run: &Supervised) -> Value {
    let saved = PolicyWeights::load(&run.run_folder().join("weights/best.safetensors")).unwrap().metadata;
    let evaluation = saved.evaluation.expect("the best weights say how good they are");
    assert!(evaluation.confirmed && evaluation.episodes == 100, "{evaluation:?}");
    let lines = run.evaluations();
    let best = lines.iter().rfind(|line| line["is_best"] == true).expect("the confirmation of the best weights is recorded");
    assert!(is_confirmation(best), "{best}");
    assert_eq!(best["version"], saved.parameter_version);
    assert_eq!((number(best, "return_mean"), Some(number(best, "ci95_low"))), (evaluation.return_mean, evaluation.return_ci95_low));
    best.clone()
}

#[test]
fn a_lucky_evaluation_does_not_end_a_run() {
    let goal = format!("run.stop_eval_return={}", lucky_return());
    for mode in [&[][..], SYNCHRONOUS] {
        let at_once: &[&str] = if mode.is_empty() { &["evaluator.interval_ms=0"] } else { &[] };
        let mut run = started(mode, &[&[FROZEN, &goal, "evaluator.episodes=1"], at_once].concat());
        let times = |lines: &[Value], reached: fn(&Value) -> bool| lines.iter().filter(|line| reached(line)).count();
        run.wait_for_evaluations("three confirmations", |lines| times(lines, is_confirmation) >= 3);
        run.wait_for_log("not solved yet: an evaluation reached");
        run.end_by(Signal::SIGTERM);
        let output = run.output();
        assert!(output.contains("terminated, after") && !output.contains("solved:"), "{output}");
        assert!(output.contains("that fresh episodes did not confirm"), "{output}");
        // The best single episode is far above the policy's mean return; the return that is saved with the weights is not.
        let best = assert_saved_with_their_confirmation(&run);
        let highest = run.evaluations().iter().map(|line| number(line, "return_mean")).fold(f64::MIN, f64::max);
        let truth = evaluate(&run.run_folder().join("weights/best.safetensors"));
        assert!(number(&best, "return_mean") < highest, "{best}");
        assert!(number(&best, "ci95_low") <= number(&truth, "ci95_high"), "{best} {truth}");
        run.assert_nothing_left();
    }
}

#[test]
fn a_confirmed_goal_ends_the_run_with_weights_that_hold_it() {
    const GOAL: f64 = 60.0;
    for mode in [&[][..], SYNCHRONOUS] {
        let mut run = started(mode, &["run.stop_eval_return=60.0", "replay.samples_per_insert=8.0", "learner.learning_rate=2e-3"]);
        run.succeed();
        let output = run.output();
        assert!(output.contains("over 100 fresh episodes, confirmed with the same weights, after"), "{output}");
        let record = run.record();
        assert_eq!(record["finished"]["reason"], "solved");
        assert_eq!(record["finished"]["summary"]["goal"]["confirmed"], true);
        let best = assert_saved_with_their_confirmation(&run);
        assert!(best["confirms_goal"] == true && number(&best, "ci95_low") >= GOAL, "{best}");
        let proposed = |line: &Value| !is_confirmation(line) && line["version"] == best["version"];
        assert!(run.evaluations().iter().any(proposed), "both evaluations of the weights are recorded");
        // One run in some thousands is confirmed by luck alone and stands below the goal by more than its interval, hardly any by two.
        let truth = evaluate(&run.run_folder().join("weights/best.safetensors"));
        let mean = number(&truth, "return_mean");
        let luck = if mode.is_empty() { 2.0 * (number(&truth, "ci95_high") - mean) } else { 0.0 };
        assert!(mean + luck >= GOAL, "{truth}");
        run.assert_nothing_left();
    }
}

#[test]
fn a_goal_that_was_confirmed_before_anything_else_ended_the_run_is_reached() {
    for is_interrupted in [true, false] {
        // With slow steps the confirmation takes a second and more. If the supervisor is stopped too late all the same, nothing is proved.
        let mut run = start(&[
            FROZEN,
            "environment.step_delay_us=1000",
            "run.stop_eval_return=1.0",
            "evaluator.confirm_episodes=200",
            "machine.max_restarts=0",
        ]);
        let (actor, segment) = (run.wait_for_process("actor"), run.segment());
        run.wait_for_evaluations("an evaluation that reaches the goal", |lines| !lines.is_empty());
        // All but the supervisor go on, and it finds the confirmation and what else ends the run at once.
        run.signal(Signal::SIGSTOP);
        let evaluator = process_slot(&segment, Role::Evaluator, 0);
        let best = run.run_folder().join("weights/best.safetensors");
        // The weights are saved before the confirmation is reported, and after that there is nothing left to evaluate.
        let is_reported = || best.is_file() && evaluator.phase() != Some(Phase::Evaluate);
        wait_until("the confirmation to be reported", || run.log(), is_reported);
        if is_interrupted {
            run.signal(Signal::SIGTERM);
        } else {
            try_kill(actor, Signal::SIGKILL);
        }
        run.signal(Signal::SIGCONT);
        let status = run.wait();
        assert!(status.success(), "{status}: {}", run.output());
        assert_eq!(run.record()["finished"]["reason"], "solved");
        drop(segment);
        run.assert_nothing_left();
    }
}

#[test]
fn an_evaluator_killed_in_the_middle_of_a_confirmation_costs_a_delay_and_nothing_else() {
    // With slow steps a confirmation takes a second and more.
    let mut run = start(&[
        "environment.step_delay_us=300",
        "run.stop_eval_return=30.0",
        "evaluator.interval_ms=10",
        "replay.samples_per_insert=16.0",
        "learner.learning_rate=2e-3",
    ]);
    let awaits = |lines: &[Value]| lines.last().is_some_and(|line| !is_confirmation(line));
    let watchdog = Watchdog::new("a confirmation that can be met");
    let killed_after = loop {
        watchdog.pause(Duration::ZERO, || run.log());
        run.wait_for_evaluations("a confirmation under way", awaits);
        let lines = run.evaluations().len();
        let Some(&evaluator) = run.processes("evaluator").first() else { continue };
        kill(evaluator, Signal::SIGKILL);
        run.wait_for_log(&format!("evaluator 0 (pid {evaluator}) was killed by SIGKILL"));
        // Otherwise the kill came too late for it.
        if run.evaluations().len() == lines {
            break lines;
        }
    };
    run.succeed();
    assert!(run.output().contains("confirmed with the same weights"), "{}", run.output());
    let lines = run.evaluations();
    assert!(!is_confirmation(&lines[killed_after]), "half of a confirmation was counted: {}", lines[killed_after]);
    for pair in lines.windows(2).filter(|pair| is_confirmation(&pair[1])) {
        assert!(!is_confirmation(&pair[0]) && pair[0]["version"] == pair[1]["version"], "nothing had proposed {}", pair[1]);
    }
    let best = assert_saved_with_their_confirmation(&run);
    assert!(number(&best, "ci95_low") >= 30.0, "{best}");
    run.assert_nothing_left();
}

#[test]
fn the_step_limit_loses_no_confirmation_and_the_last_weights_are_evaluated() {
    // The confirmation under way at the limit takes longer than the training before it.
    let mut run = start(&["environment.step_delay_us=300", "run.stop_env_steps=1500", "evaluator.interval_ms=10"]);
    run.succeed();
    let lines = run.evaluations();
    let mut best = f64::MIN;
    for (at, routine) in lines.iter().enumerate().filter(|(_, line)| !is_confirmation(line)) {
        if number(routine, "return_mean") > best {
            let confirmation = lines.get(at + 1).unwrap_or_else(|| panic!("{routine} was not confirmed"));
            assert!(is_confirmation(confirmation) && confirmation["version"] == routine["version"], "{routine} {confirmation}");
            best = if confirmation["is_best"] == true { number(confirmation, "return_mean") } else { best };
        }
    }
    let last = run.last_weights().metadata;
    let newest = lines.iter().rfind(|line| line["version"] == last.parameter_version).expect("the last weights were evaluated");
    assert_eq!(last.evaluation.map(|evaluation| evaluation.return_mean), Some(number(newest, "return_mean")));
    run.assert_nothing_left();
}

#[test]
fn a_solved_run_goes_on_with_another_goal_alone_and_keeps_weights_that_are_better() {
    let mut run = start(&["run.stop_eval_return=15", "evaluator.interval_ms=0", "checkpoint.interval_s=600"]);
    run.succeed();
    assert_eq!(run.record()["finished"]["reason"], "solved");
    let best = run.run_folder().join("weights/best.safetensors");
    // Claim for the best weights a return far above any that is to come.
    let mut perfect = PolicyWeights::load(&best).unwrap();
    perfect.metadata.evaluation =
        Some(WeightsEvaluation { return_mean: 500.0, return_ci95_low: Some(499.0), episodes: 100, confirmed: true });
    perfect.save(&best).unwrap();
    let before = std::fs::read(&best).unwrap();
    run.resume(&[]);
    assert!(!run.wait().success());
    assert!(run.output().contains("has reached its goal, a mean return of 15"), "{}", run.output());
    run.resume(&["--set", "run.stop_eval_return=16"]);
    run.succeed();
    assert_eq!(run.record()["finished"]["summary"]["goal"]["confirmed"], true);
    let confirmed = run.evaluations().pop().unwrap();
    assert!(confirmed["confirms_goal"] == true && confirmed["is_best"] == false, "{confirmed}");
    assert!(std::fs::read(&best).is_ok_and(|now| now == before), "worse weights took their place");
}

#[test]
fn a_run_that_reached_its_goal_while_it_gave_up_is_not_gone_on_with_by_its_command() {
    let auto = ["run.resume=auto", "run.stop_eval_return=15", "evaluator.interval_ms=0", "checkpoint.interval_s=600"];
    let mut run = start(&auto);
    run.succeed();
    let solved = run.run_folder().canonicalize().unwrap();
    let mut record = run.record();
    assert_eq!(record["finished"]["summary"]["goal"]["confirmed"], true);
    assert_eq!(run.checkpoints().len(), 1);
    record["finished"]["reason"] = "gave up: too many deaths".into();
    std::fs::write(solved.join("run.json"), record.to_string()).unwrap();
    run.start_again(&auto);
    run.succeed();
    assert_ne!(run.run_folder().canonicalize().unwrap(), solved, "a new one begins");
}
