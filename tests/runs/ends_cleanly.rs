//! Every way in which a run can end leaves results and nothing else.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::config::Config;
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::membership::View;
use shoal::sync::Ordering;

use crate::support::programs::{self, kill, learner, number, program, said, start, stop, stop_outside_of_operations, told, under, updates};
use crate::support::skipped;

#[test]
fn the_step_limit_ends_a_run_with_all_its_results() {
    let mut run = start(&["run.stop_env_steps=3000"]);
    let status = run.wait();
    let output = run.output();
    assert!(status.success(), "{output}");
    run.assert_nothing_left();
    let folder = run.run_folder();
    let last = run.metrics().pop().unwrap();
    let actor = Config::load(&folder.join("config.toml"), &[]).unwrap().config.actor;
    let under_way = (actor.count * actor.environments) as u64;
    assert!((3_000..3_000 + under_way).contains(&last["env_steps"].as_u64().unwrap()), "{last}");
    assert!(last["updates"].as_u64().unwrap() > 0);
    assert!(last["eval_return_mean"].is_number(), "the last parameters are evaluated");
    for name in ["config.toml", "metrics.jsonl", "evaluations.jsonl", "run.json", "weights/last.safetensors", "weights/best.safetensors"] {
        assert!(folder.join(name).is_file(), "{name} is missing");
    }
    let policy = run.last_weights();
    assert_eq!((policy.metadata.environment.as_str(), policy.metadata.algorithm.as_str()), ("CartPole-v1", "dqn"));
    assert_eq!(policy.metadata.updates, last["updates"].as_u64().unwrap());
    assert!(output.contains("step limit"), "{output}");
}

#[test]
fn the_time_limit_ends_a_run_without_another_evaluation_and_is_known_to_its_progress() {
    // The first evaluation starts with the first parameters, and the next would only at the end.
    let mut run = start(&["run.stop_wall_s=6.0", "run.metrics_interval_s=3600.0", "evaluator.interval_ms=3600000"]);
    run.succeed();
    let output = run.output();
    assert!(output.contains("time limit"), "{output}");
    let mut metrics = run.metrics();
    assert!(metrics.len() <= 2, "only the beginning and the end are written in a run that is shorter than the interval: {metrics:?}");
    let last = metrics.pop().unwrap();
    assert_eq!(last["stop_wall_s"], 6.0);
    let number = |name: &str| last[name].as_f64().unwrap();
    assert!(number("training_s") > 0.0 && number("training_s") < number("wall_s"), "{last}");
    let line = output.lines().rfind(|line| line.starts_with('[')).unwrap();
    assert!(line.ends_with("ETA 0:00"), "{line}");
    let text = std::fs::read_to_string(run.run_folder().join("evaluations.jsonl")).unwrap();
    let evaluations: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let routine = evaluations.iter().filter(|line| line["kind"] == "routine").count();
    assert!(routine <= 1, "the last parameters are not waited for: {text}");
    // The report's rates are those of the training, without the start and the end of the run.
    let record = run.record();
    let summary = &record["finished"]["summary"];
    assert_eq!(summary["training_s"], last["training_s"]);
    let rate = summary["env_steps"].as_f64().unwrap() / number("training_s");
    let shown = output.lines().find(|line| line.starts_with("steps ")).unwrap();
    let (_, shown) = shown.split_once('(').unwrap();
    let shown: f64 = match shown.split_once("/s").unwrap().0 {
        text if text.ends_with('k') => 1e3 * text.trim_end_matches('k').parse::<f64>().unwrap(),
        text if text.ends_with('M') => 1e6 * text.trim_end_matches('M').parse::<f64>().unwrap(),
        text => text.parse().unwrap(),
    };
    assert!((shown / rate - 1.0).abs() < 0.01, "{shown} is not {rate}");
}

#[test]
fn the_resolved_configuration_can_be_run_again() {
    let mut first = start(&["run.stop_env_steps=1000"]);
    first.succeed();
    let config = first.run_folder().join("config.toml");
    let folder = tempfile::tempdir().unwrap();
    let place = format!("run.folder={:?}", folder.path().display().to_string());
    told(&program("supervisor", folder.path()).arg(&config).args(["--set", &place]).output().unwrap());
    let [first, again] = [config, folder.path().join("latest/config.toml")].map(|path| std::fs::read_to_string(path).unwrap());
    let without_folder = |text: &str| text.lines().filter(|line| !line.starts_with("folder")).map(String::from).collect::<Vec<_>>();
    assert_eq!(without_folder(&first), without_folder(&again));
}

#[test]
fn interrupting_a_run_keeps_what_was_learned_and_is_told_by_the_exit_code() {
    for signal in programs::stop_signals() {
        let mut run = start(&[]);
        run.wait_for_updates(10);
        run.end_by(signal);
        assert!(run.run_folder().join("weights/last.safetensors").is_file());
        let reason = if signal == Signal::SIGINT { "interrupted" } else { "terminated" };
        assert_eq!(run.record()["finished"]["reason"], reason);
        assert!(run.output().contains(&format!("stopped     {reason}, after ")));
        run.assert_nothing_left();
    }
}

#[test]
fn the_warning_of_a_batch_system_to_every_process_ends_a_run_that_keeps_all_it_has_learned() {
    let mut warnings = programs::stop_signals();
    warnings.retain(|signal| matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2));
    if warnings.is_empty() {
        return skipped::because("the tests were started with SIGUSR1 and SIGUSR2 ignored");
    }
    for signal in warnings {
        let mut run = start(&["checkpoint.interval_s=3600"]);
        run.wait_for_updates(20);
        for process in run.all_processes() {
            programs::try_kill(process, signal);
        }
        let (status, log) = (run.wait(), run.log());
        assert_eq!(status.code(), Some(128 + signal as i32), "{log}");
        assert!(!log.contains(&format!("killed by {signal}")) && run.checkpoints().len() == 1, "{log}");
        assert_eq!(run.last_weights().metadata.updates, number(&run.metrics().pop().unwrap(), "updates"));
        run.assert_nothing_left();
    }
}

#[test]
fn a_request_to_stop_that_comes_by_several_ways_costs_no_checkpoint() {
    while !keeps_its_last_checkpoint_though_the_request_is_repeated() {}
}

/// Returns `false` if the run left so late, on a busy machine, that the request could not be repeated in time.
fn keeps_its_last_checkpoint_though_the_request_is_repeated() -> bool {
    let mut run = start(&["checkpoint.interval_s=0.1"]);
    run.wait_for_log("checkpoint 000001");
    // As long as somebody else has this lock, no checkpoint is written.
    let lock = std::fs::File::open(run.run_folder().join("checkpoints/.lock")).unwrap();
    lock.lock().unwrap();
    let before = run.checkpoints();
    let first = Instant::now();
    run.signal(Signal::SIGTERM);
    run.wait_until_left();
    let mut is_repeated = false;
    // Sent well before a second is over, so that the run also hears them within it.
    while first.elapsed() < Duration::from_millis(500) {
        programs::stop_signals().into_iter().for_each(|signal| run.signal(signal));
        is_repeated = true;
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(lock);
    if !is_repeated {
        return false;
    }
    let said = run.output();
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{said}");
    assert!(run.checkpoints().last() > before.last() && !said.contains("given up"), "{said}");
    true
}

#[test]
fn the_first_request_to_stop_costs_a_run_that_ended_by_itself_no_checkpoint() {
    let mut run = start(&["run.stop_env_steps=1000", "checkpoint.interval_s=3600", "evaluator.enabled=false"]);
    run.succeed();
    for signal in programs::stop_signals() {
        let before = run.checkpoints();
        // As long as somebody else has this lock, no checkpoint is written.
        let path = run.run_folder().join("checkpoints/.lock").canonicalize().unwrap();
        let lock = std::fs::File::open(&path).unwrap();
        lock.lock().unwrap();
        let steps = number(&run.metrics().pop().unwrap(), "env_steps");
        run.resume(&["--set", &format!("run.stop_env_steps={}", steps + 500)]);
        run.look_for("the writer of its last checkpoint", |run| {
            let processes = run.all_processes();
            processes.into_iter().any(|pid| programs::is_open_in(pid, &path)).then_some(())
        });
        let told = run.log().len();
        run.signal(signal);
        if matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) {
            // A run that gave it up would do so at once.
            std::thread::sleep(Duration::from_millis(300));
        } else {
            run.wait_for_log_after(told, "another request to stop, a second or more from now, gives it up");
        }
        drop(lock);
        run.succeed();
        let said = run.output();
        assert!(run.checkpoints().last() > before.last() && !said.contains("given up"), "after {signal}: {said}");
    }
}

#[test]
fn learners_that_do_not_leave_in_time_are_killed_and_what_that_cost_is_told() {
    for count in [1, 2] {
        let mut run = start(&["checkpoint.interval_s=3600", "evaluator.enabled=false", &format!("learner.count={count}")]);
        run.wait_for_updates(20);
        let segment = run.segment();
        (0..count).for_each(|number| stop_outside_of_operations(learner(&segment, number)));
        run.end_by(Signal::SIGTERM);
        let log = run.log();
        let cost = "what it had learned since the last publication, if nobody else has published it, is lost";
        for number in 0..count {
            let killed = format!("learner {number}, which was asked to leave, did not leave in time and was killed (after ");
            let told = log.lines().find(|line| line.contains(&killed));
            assert!(told.is_some_and(|line| line.ends_with(&format!(" updates); {cost}"))), "{log}");
        }
        assert!(run.run_folder().join("weights/last.safetensors").is_file() && run.checkpoints().len() == 1, "{log}");
        run.assert_nothing_left();
    }
}

#[test]
fn what_the_learners_have_learned_is_kept_if_the_one_that_leads_dies_while_the_run_ends() {
    // Nothing but the end has parameters published.
    let mut run = start(&["learner.count=2", "learner.publish_interval_updates=1000000", "evaluator.enabled=false"]);
    run.wait_for_updates(1);
    let segment = run.segment();
    let leads = View::load(segment.control().membership()).leader.unwrap();
    let [leader, other] = [leads, 1 - leads].map(|number| learner(&segment, number));
    run.wait_until("updates by both", || [leader, other].iter().all(|slot| slot.counters().get(Counter::Updates) >= 20));
    // The state that the leader publishes after every hundredth update may be newer than what the other knows.
    run.wait_until("an update that is no hundredth", || {
        stop_outside_of_operations(leader);
        let suits = !updates(&segment).is_multiple_of(100);
        if !suits {
            kill(leader.pid(), Signal::SIGCONT);
        }
        suits
    });
    stop_outside_of_operations(other);
    let learned = updates(&segment);
    run.signal(Signal::SIGTERM);
    run.wait_until("the end of training", || segment.control().run_state() == RunState::Stopping);
    kill(leader.pid(), Signal::SIGKILL);
    run.wait_for_log(&format!("learner {leads}, which was asked to leave, was killed by SIGKILL"));
    kill(other.pid(), Signal::SIGCONT);
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32));
    let kept = run.last_weights().metadata.updates;
    assert_eq!(kept, number(&run.metrics().pop().unwrap(), "updates"));
    assert!(kept + 1 >= learned, "{kept} of {learned}");
    run.assert_nothing_left();
}

#[test]
fn an_evaluator_that_dies_while_the_run_ends_is_told_with_what_that_cost() {
    let mut run = start(&[]);
    run.wait_for_updates(10);
    let evaluator = run.wait_for_process("evaluator");
    let segment = run.segment();
    // It stands still before the step limit comes, so that the last weights are still to be evaluated.
    stop(evaluator);
    segment.control().env_steps().fetch_add(1_000_000_000, Ordering::Relaxed);
    run.wait_until("the end of training", || segment.control().run_state() == RunState::Stopping);
    kill(evaluator, Signal::SIGKILL);
    run.succeed();
    let log = run.log();
    let told = log.lines().find(|line| line.contains("evaluator 0, which was asked to leave, was killed by SIGKILL"));
    assert!(told.is_some_and(|line| line.ends_with("(after evaluating); what it had not reported is lost")), "{log}");
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let plain = programs::command(folder.path(), programs::SMALL);
    // As nohup does, without its redirections.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    command.env("XDG_RUNTIME_DIR", folder.path()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut run = programs::Supervised::spawn(command, folder);
    let updates = |line: &serde_json::Value| line["updates"].as_u64().unwrap_or(0);
    let before = updates(&run.wait_for_updates(10));
    run.signal(Signal::SIGHUP);
    run.wait_for("more updates", |line| updates(line) > before + 500);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn planning_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = programs::command(folder.path(), &[]).arg("--check").output().unwrap();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for part in ["dqn on CartPole-v1", "segment", "learner 0", "actor 0"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_segment_that_does_not_fit_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    // The gradients of this network take 64 GiB, which some machines have.
    let huge = ["network.hidden=[16000, 16000]", "learner.count=32", "learner.batch_size=64"];
    let output = under("ulimit -f 1048576", &programs::command(folder.path(), &huge)).output().unwrap();
    let text = said(&output);
    assert!(!output.status.success());
    assert!(text.contains("do not fit") && text.contains(", or lower learner.count"), "{text}");
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_supervisor_allows_itself_the_files_that_its_processes_take_and_refuses_more_processes_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let command = programs::command(folder.path(), &[programs::SMALL, &["actor.count=24", "run.stop_env_steps=3000"]].concat());
    let refused = said(&under("ulimit -n 90", &command).output().unwrap());
    let advice = "no more than 90 are allowed; lower actor.count or actor.attach_slots, or have";
    assert!(refused.contains("open files") && refused.contains(advice), "{refused}");
    assert!(!folder.path().join("runs").exists());
    let accepted = under("ulimit -Sn 40", &command).output().unwrap();
    assert!(accepted.status.success(), "{}", said(&accepted));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_words_and_kills_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let output = under("ulimit -f 64", &programs::command(folder.path(), programs::SMALL)).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the limit on the size of files allows 64.00 KiB") && text.contains("ulimit -f"), "{text}");
    assert!(!folder.path().join("runs").exists(), "nothing has begun");

    let mut run = start(&["run.stop_env_steps=1000"]);
    run.succeed();
    let mut evaluate = run.program("evaluate");
    evaluate.arg(run.run_folder()).args(["--episodes", "1", "--video"]).arg(folder.path().join("video.gif"));
    let output = under("ulimit -f 2", &evaluate).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{}: {text}", output.status);
    assert!(text.starts_with("error: ") && text.to_lowercase().contains("file too large"), "{text}");
}

#[test]
fn a_run_that_is_ended_before_its_learner_has_begun_leaves_weights() {
    // So large that a learner takes a while to begin. If it was quicker all the same, nothing is proved.
    let stopped_in_time = || {
        let run = start(&["network.hidden=[1024, 1024, 1024]", "evaluator.enabled=false"]);
        let learner = run.wait_for_process("learner");
        kill(learner, Signal::SIGSTOP);
        let segment = run.segment();
        (segment.parameter_board().version() == 0).then_some((run, learner, segment))
    };
    let (mut run, learner, segment) = (0..20).find_map(|_| stopped_in_time()).expect("a learner is stopped before it begins");
    run.signal(Signal::SIGTERM);
    run.wait_until("the end of training", || segment.control().run_state() == RunState::Stopping);
    kill(learner, Signal::SIGCONT);
    drop(segment);
    assert_eq!(run.wait().code(), Some(143), "{}", run.output());
    let policy = run.last_weights();
    assert_eq!(policy.metadata.updates, 0);
    run.assert_nothing_left();
}
