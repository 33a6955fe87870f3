//! Whole runs on environments in Python: they train. A fault of an environment takes down only its actor, is reported with the place in
//! the user's file, and ends the run if it happens again and again.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::config::Config;
use shoal::environments::{ActionArrays, ActionSpace};
use shoal::segment::processes::{Phase, Role};
use shoal::telemetry::videos_in;

use crate::support::programs::{self, SMALL, Supervised, number, process_slot, said, start, start_preset, told};
use crate::support::python;

/// The settings of a run of the environment that fails as `how` says. It has no evaluator, which would also fail.
fn faulty(how: &str, arguments: &str, overrides: &[&str]) -> Vec<String> {
    let python_path = format!("environment.python_path={}", python::folder().display());
    let arguments = format!(r#"environment.keyword_arguments={{"how": "{how}"{arguments}}}"#);
    let common = ["environment.id=python:faulty:Faulty", &python_path, &arguments, "evaluator.enabled=false", "actor.environments=1"];
    [&common[..], overrides].concat().into_iter().map(str::to_owned).collect()
}

fn start_faulty(how: &str, arguments: &str, overrides: &[&str]) -> Supervised {
    let settings = faulty(how, arguments, overrides);
    start(&settings.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The report of a run that gave up.
fn failure_of(mut run: Supervised) -> String {
    assert!(!run.wait().success(), "the run must have failed:\n{}", run.log());
    run.assert_nothing_left();
    let log = run.log();
    let closing = log.rfind("stopped").unwrap_or_else(|| panic!("no report in {log}"));
    log[closing..].to_owned()
}

#[test]
fn a_run_on_an_environment_of_gymnasium_trains_and_takes_in_attached_actors() {
    let mut run = start(&["environment.id=gymnasium:CartPole-v1", "actor.count=2", "evaluator.interval_ms=100"]);
    run.wait_for_updates(50);
    let attached = run.program("attach").arg(run.pid().to_string()).current_dir("/").stderr(Stdio::piped()).spawn().unwrap();
    run.wait_for("the attached actor", |line| number(line, "attached") == 1 && number(line, "actors") == 3);
    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number());
    let before = number(&run.metrics().pop().unwrap(), "env_steps");
    run.wait_for("more steps", |line| number(line, "env_steps") > before + 500);
    run.end_by(Signal::SIGTERM);
    told(&attached.wait_with_output().unwrap());
    run.assert_nothing_left();

    let log = run.log();
    assert!(log.contains("python 3.") && log.contains("gymnasium 1."), "the software must be on record: {log}");
    let played = run.program("evaluate").args(["--episodes", "3"]).arg(run.run_folder()).current_dir("/").output().unwrap();
    let text = told(&played) + &said(&played);
    assert!(text.contains("on gymnasium:CartPole-v1"), "{text}");

    // As in a folder that comes from another machine.
    let path = run.run_folder().join("config.toml");
    let mut config = Config::load(&path, &[]).unwrap().config;
    config.environment.python = "/gone/bin/python".into();
    std::fs::write(&path, config.to_toml()).unwrap();
    run.ask("evaluate", &["--episodes", "1", run.run_folder().to_str().unwrap()]);
}

#[test]
fn an_environment_that_raises_once_costs_one_actor_and_no_learner() {
    let mark = tempfile::tempdir().unwrap();
    let once = format!(r#", "once": {:?}"#, mark.path().join("raised").display().to_string());
    let mut run = start_faulty("raise", &once, &["actor.count=2"]);
    run.wait_for_log("ValueError: the wheels came off");
    let learners = run.processes("learner");
    let before = run.metrics().pop().map_or(0, |line| number(&line, "updates"));
    run.wait_for("both actors and more updates", |line| {
        number(line, "actors") == 2 && number(line, "restarts") == 1 && number(line, "updates") > before + 50
    });
    assert_eq!(run.processes("learner"), learners);
    run.end_by(Signal::SIGTERM);
    let log = run.log();
    let event = log.lines().find(|line| line.contains("the wheels came off")).unwrap();
    assert!(event.contains("raised an exception in step ") && event.contains("restarting now (1 of 10)"), "{event}");
    assert_eq!(log.matches("in raise_an_error").count(), 1, "the traceback must be told once: {log}");
    run.assert_nothing_left();
}

#[test]
fn an_environment_that_keeps_raising_ends_the_run_with_its_traceback() {
    let mut run = start_faulty("raise", "", &[]);
    assert!(!run.wait().success());
    let log = run.log();
    assert_eq!(
        log.matches("in raise_an_error").count(),
        2,
        "the first failure and the end tell the traceback, those between do not: {log}"
    );
    assert_eq!(log.matches("(as before)").count(), 1, "{log}");
    let closing = failure_of(run);
    let told = "raised an exception in step 1 of an episode: ValueError: the wheels came off (3 times in a row by itself";
    assert!(closing.contains(told), "{closing}");
    assert!(closing.contains("faulty.py\", line ") && closing.contains("in raise_an_error"), "{closing}");
}

#[test]
fn an_environment_that_crashes_rarely_ends_the_run_only_by_the_limit_of_restarts() {
    // Each actor finishes ten episodes and more before it crashes.
    let closing = failure_of(start_faulty("exit at once", r#", "after": 250"#, &["machine.max_restarts=4"]));
    assert!(
        closing.contains("exited with code 7 (5 times within a day; machine.max_restarts is 4: mend the cause, or raise it)"),
        "{closing}"
    );
}

#[test]
fn what_an_environment_prints_does_not_mix_with_the_answer() {
    let mut run = start_faulty("talk", "", &[]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGINT);
    let output = run.program("evaluate").arg(run.run_folder()).args(["--json", "--episodes", "3"]).output().unwrap();
    assert!(said(&output).contains("a new episode"), "{}", said(&output));
    let answer: Value = serde_json::from_str(&told(&output)).unwrap();
    assert_eq!(answer["returns"].as_array().map(Vec::len), Some(3));
}

#[test]
fn an_environment_that_prints_where_nobody_reads_any_more_is_stepped_on() {
    let folder = tempfile::tempdir().unwrap();
    let settings = faulty("talk", "", &["run.stop_env_steps=1000"]);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut command = programs::command(folder.path(), &[SMALL, &settings[..]].concat());
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    drop(reader);
    let mut run = Supervised::spawn(command, folder);
    run.succeed();
    assert_eq!(number(&run.metrics().pop().unwrap(), "restarts"), 0, "{}", run.log());
}

#[test]
fn an_environment_that_changes_the_current_folder_takes_neither_weights_nor_videos_there() {
    let folder = tempfile::tempdir().unwrap();
    let python_path = format!("environment.python_path={}", python::folder().display());
    let changes = [
        "run.folder=\"runs\"",
        "environment.id=python:faulty:Faulty",
        r#"environment.keyword_arguments={"how": "wander"}"#,
        &python_path,
        "visualizer.enabled=true",
        "visualizer.pictures_per_s=100",
        "visualizer.video_interval_s=1",
        // So that a process of the lowest priority gets a core.
        "environment.step_delay_us=1000",
    ];
    let mut command = programs::command(folder.path(), &[SMALL, &changes].concat());
    command.current_dir(folder.path());
    let mut run = Supervised::spawn(command, folder);
    run.wait_for_evaluations("the best weights", |lines| lines.iter().any(|line| line["is_best"] == true));
    assert!(run.run_folder().join("weights/best.safetensors").is_file(), "{}", run.log());
    let videos = run.run_folder().join("videos");
    run.wait_until("a video", || !videos_in(&videos).is_empty());
    run.end_by(Signal::SIGTERM);
    let mut evaluate = run.program("evaluate");
    evaluate.args(["runs/latest", "--episodes", "1", "--video", "first.gif"]).current_dir(run.folder.path());
    let text = told(&evaluate.output().unwrap());
    assert!(text.contains(" first.gif,") && run.folder.path().join("first.gif").is_file(), "{text}");
}

#[test]
fn episodes_that_never_end_are_cut_off_where_they_are_evaluated() {
    let evaluated = ["evaluator.enabled=true", "evaluator.episodes=2", "evaluator.episode_limit_steps=50", "evaluator.interval_ms=0"];
    // One of them names a time limit of its own that it does not keep.
    for id in ["environment.id=python:faulty:Faulty", "environment.id=python:faulty:Endless"] {
        let mut run = start_faulty("never end", "", &[&evaluated[..], &[id]].concat());
        run.wait_for_log(
            "an evaluated episode was not over after step 50 (evaluator.episode_limit_steps): such episodes are cut off there",
        );
        run.wait_for_evaluations("a confirmation", |lines| lines.len() > 1);
        run.end_by(Signal::SIGINT);
        let evaluations = run.lines("evaluations.jsonl");
        assert!(evaluations.len() > 1 && evaluations.iter().all(|line| line["return_mean"] == 50.0), "{id}: {evaluations:?}");
        assert_eq!(run.log().matches("was not over after step").count(), 1, "{id}");
    }
}

#[test]
fn an_evaluated_episode_is_cut_off_unless_the_environment_that_it_is_played_in_ends_it_there() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    for (trained_steps, evaluated_steps, is_cut_off) in [(20, 50, false), (50, 90, true)] {
        let [trained, evaluated] = [("keyword", trained_steps), ("evaluation", evaluated_steps)]
            .map(|(name, steps)| format!(r#"environment.{name}_arguments={{"steps": {steps}}}"#));
        let limit = ["evaluator.episode_limit_steps=50", "evaluator.interval_ms=10"];
        let task = ["environment.id=python:shapes:make_limited", &python_path, &trained, &evaluated];
        let mut run = start(&[&task[..], &limit].concat());
        run.wait_for_evaluations("an evaluation", |lines| !lines.is_empty());
        run.end_by(Signal::SIGINT);
        assert_eq!(run.log().contains("was not over after step 50"), is_cut_off, "{evaluated}: {}", run.log());
    }
}

#[test]
fn evaluations_are_played_with_the_arguments_for_them_and_training_episodes_without() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    for changes in [["actor.count=1", "evaluator.interval_ms=10"], ["actor.count=0", "evaluator.synchronous_interval_steps=200"]] {
        let mut run = start(&[
            "environment.id=python:shapes:Rewarded",
            &python_path,
            r#"environment.keyword_arguments={"reward": 7}"#,
            r#"environment.evaluation_arguments={"reward": 1}"#,
            "run.stop_env_steps=600",
            changes[0],
            changes[1],
        ]);
        run.succeed();
        let trained = run.metrics().pop().unwrap();
        assert_eq!(trained["train_return_mean"], 7.0, "{trained}");
        let evaluations = run.evaluations();
        let kinds = ["routine", "confirmation"];
        assert!(kinds.iter().all(|kind| evaluations.iter().any(|line| line["kind"] == *kind)), "{evaluations:?}");
        assert!(evaluations.iter().all(|line| line["return_mean"] == 1.0), "{evaluations:?}");
        let folder = run.run_folder();
        let played = run.ask("evaluate", &["--json", "--episodes", "2", folder.to_str().unwrap()]);
        assert_eq!(serde_json::from_str::<Value>(&played).unwrap()["returns"], serde_json::json!([1.0, 1.0]), "{played}");
        run.assert_nothing_left();
    }
}

#[test]
fn a_simulator_of_which_a_process_can_hold_only_one_is_trained_in_evaluated_in_played_in_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let task = "import numpy\nfrom shapes import Rewarded\n\nclass Task(Rewarded):\n    \
                metadata = {'render_modes': ['rgb_array']}\n    made = 0\n\n    def __init__(self, render_mode=None):\n        \
                Task.made += 1\n        assert Task.made == 1, 'the port is in use'\n        super().__init__(1.0)\n        \
                self.render_mode = render_mode\n\n    def render(self):\n        return numpy.zeros((4, 6, 3), numpy.uint8)\n";
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
    let of_one = ["actor.environments=1", "evaluator.environments=1", "run.stop_env_steps=600"];
    let mut run = start(&[&["environment.id=python:task:Task", &python_path][..], &of_one].concat());
    run.succeed();
    assert_eq!(run.metrics().pop().unwrap()["restarts"], 0, "{}", run.log());
    assert!(!run.evaluations().is_empty(), "{}", run.log());
    let folder_of_run = run.run_folder();
    let video = folder.path().join("first.gif");
    for recorded in [&[][..], &["--video", video.to_str().unwrap()]] {
        let played = run.ask("evaluate", &[&["--json", "--episodes", "3", folder_of_run.to_str().unwrap()][..], recorded].concat());
        assert_eq!(serde_json::from_str::<Value>(&played).unwrap()["returns"], serde_json::json!([1.0, 1.0, 1.0]), "{played}");
    }
    assert!(video.is_file());
    run.assert_nothing_left();
}

#[test]
fn every_algorithm_of_discrete_actions_plays_combinations_and_its_weights_say_for_which_arrays_they_stand() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    for algorithm in ["dqn", "ppo", "appo"] {
        let of_task = ["environment.id=python:shapes:Lock", &python_path, "run.stop_env_steps=2000", "run.stop_eval_return=\"none\""];
        let mut run = start_preset(&format!("cartpole_{algorithm}"), &of_task);
        run.succeed();
        let trained = run.metrics().pop().unwrap();
        assert!(trained["train_return_mean"].as_f64().unwrap() > 0.0, "{algorithm}: {trained}");
        let folder = run.run_folder();
        let spaces = run.last_weights().metadata.spaces.unwrap();
        let arrays = ActionArrays { counts: vec![2, 3], start: vec![0, -1], shape: vec![2], dtype: "int64".into() };
        assert_eq!((spaces.action, spaces.action_arrays), (ActionSpace::Discrete { n: 6 }, Some(arrays)), "{algorithm}");
        run.ask("evaluate", &["--json", "--episodes", "2", folder.to_str().unwrap()]);
        run.assert_nothing_left();
    }
}

#[test]
fn an_environment_of_which_there_is_only_one_is_trained_in_without_an_evaluator_and_played_in_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock").display().to_string();
    let task = format!(
        "import fcntl\nfrom shapes import Rewarded\n\nclass Task(Rewarded):\n    def __init__(self):\n        \
         self.robot = open({lock:?}, 'w')\n        fcntl.flock(self.robot, fcntl.LOCK_EX | fcntl.LOCK_NB)\n        \
         super().__init__(1.0)\n\n    def close(self):\n        self.robot.close()\n"
    );
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
    let of_one = ["actor.environments=1", "actor.attach_slots=0", "evaluator.enabled=false", "evaluator.environments=1"];
    let mut run = start(&[&["environment.id=python:task:Task", &python_path, "run.stop_env_steps=600"][..], &of_one].concat());
    run.succeed();
    assert_eq!(run.metrics().pop().unwrap()["restarts"], 0, "{}", run.log());
    let folder_of_run = run.run_folder();
    let played = run.ask("evaluate", &["--json", "--episodes", "3", folder_of_run.to_str().unwrap()]);
    assert_eq!(serde_json::from_str::<Value>(&played).unwrap()["returns"], serde_json::json!([1.0, 1.0, 1.0]), "{played}");
    run.assert_nothing_left();
}

#[test]
fn a_process_whose_environments_take_long_one_after_the_other_does_not_count_as_hung() {
    // All episodes end in the same step of the actor's, whose resets take twice as long as it may be silent.
    let mut run = start_faulty("reset slowly", "", &["actor.environments=8", "machine.hang_timeout_s=3"]);
    run.wait_for("two rounds of episodes", |line| number(line, "env_steps") > 2 * 8 * 20);
    run.end_by(Signal::SIGINT);
    assert!(!run.log().contains("silent") && !run.log().contains("nothing has advanced"), "{}", run.log());
}

#[test]
fn an_evaluator_whose_environments_close_too_slowly_is_killed_without_a_loss() {
    let evaluated = ["evaluator.enabled=true", "evaluator.episodes=32", "run.stop_env_steps=400"];
    let mut run = start_faulty("close slowly", "", &evaluated);
    run.succeed();
    let log = run.log();
    let told = "evaluator 0, which was asked to leave, did not close its environments in time and was killed (after evaluating); \
                nothing of the run is lost";
    assert!(log.lines().any(|line| line.ends_with(told)), "{log}");
    assert!(!run.lines("evaluations.jsonl").is_empty(), "{log}");
    run.assert_nothing_left();
}

#[test]
fn an_evaluator_that_is_still_resetting_long_after_it_was_called_off_is_not_said_to_play_on_and_on() {
    let mut run = start_faulty("reset slowly", "", &["evaluator.enabled=true", "evaluator.episodes=32"]);
    run.wait_for_process("evaluator");
    let segment = run.segment();
    let evaluator = process_slot(&segment, Role::Evaluator, 0);
    run.wait_until("the first evaluation", || evaluator.phase() == Some(Phase::Evaluate));
    drop(segment);
    run.end_by(Signal::SIGINT);
    let log = run.log();
    assert!(log.contains("evaluator 0, which was asked to leave, did not leave in time and was killed"), "{log}");
    assert!(!log.contains("an episode may have gone on"), "{log}");
    run.assert_nothing_left();
}

#[test]
fn a_synchronous_run_whose_environment_crashes_as_it_is_closed_is_completed() {
    let mut run = start_faulty("crash in close", "", &["actor.count=0", "run.stop_env_steps=400"]);
    run.succeed();
    assert!(run.log().contains("nothing of the run is lost"), "{}", run.log());
    run.assert_nothing_left();
}

#[test]
fn a_synchronous_run_whose_environment_raised_once_goes_on_from_its_checkpoint_by_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("raised");
    std::fs::write(&mark, "").unwrap();
    let once = format!(r#", "after": 0, "once": {:?}"#, mark.display().to_string());
    let changes = ["actor.count=0", "checkpoint.synchronous_interval_steps=500", "run.resume=auto"];
    let settings = faulty("raise", &once, &changes);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut run = start(&settings);
    run.wait_for_log("checkpoint 000001");
    // The next step raises, and marks again that one has.
    std::fs::remove_file(&mark).unwrap();
    assert_eq!(run.wait().code(), Some(1));
    let output = run.output();
    assert!(output.contains("gave up: synchronous trainer 0 failed: ") && output.contains("ValueError: the wheels came off"), "{output}");
    assert!(output.contains("go on "), "the command that resumes it: {output}");
    run.start_again(&settings);
    run.wait_for_log("goes on from checkpoint");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_that_has_diverged_is_offered_nothing_to_go_on_from() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    // The squared gradient of the first reward is beyond all floats. Hundreds of updates come before it.
    let rewarded = r#"environment.keyword_arguments={"reward": 1e30, "free": 8000}"#;
    let task = ["environment.id=python:shapes:Rewarded", &python_path, rewarded, "actor.environments=1", "algorithm.loss=mse"];
    let kinds = [(&["actor.count=0"][..], "synchronous trainer 0"), (&["actor.count=1", "checkpoint.interval_s=600"], "learner 0")];
    for (kind, learner) in kinds {
        let mut run = start(&[&task[..], kind, &["evaluator.enabled=false"]].concat());
        assert_eq!(run.wait().code(), Some(1));
        let record = run.record();
        let reason = record["finished"]["reason"].as_str().unwrap();
        assert!(reason.starts_with(&format!("failed: {learner} failed: the gradient of update ")), "{reason}");
        let updates = number(&record["finished"]["summary"], "updates");
        assert!(updates > 0, "without updates there would be no last checkpoint, whatever had ended the run");
        assert_eq!(run.checkpoints(), Vec::<PathBuf>::new());
        let output = run.output();
        assert!(!output.lines().any(|line| line.starts_with("go on ")), "{output}");
        run.assert_nothing_left();
    }
}

#[test]
fn what_an_environment_starts_ends_by_signals_and_at_the_latest_with_its_actor() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helpers");
    let once = format!(r#", "once": {:?}"#, file.display().to_string());
    let mut run = start_faulty("keep helpers", &once, &["actor.count=1", "run.stop_env_steps=400"]);
    run.succeed();
    assert_eq!(run.metrics().pop().unwrap()["restarts"], 0, "{}", run.log());
    run.assert_nothing_left();
    let text = std::fs::read_to_string(file).unwrap();
    let ids: Vec<u32> = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), 5, "{text}");
    programs::wait_until("the end of the helpers", || text.clone(), || !ids.iter().any(|&id| is_helper(id)));
}

/// Whether the process lives and may be a helper: its id could be another's by now.
fn is_helper(id: u32) -> bool {
    // The command of a process that has ended and that nobody has reaped yet is empty.
    let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    ["sleep", "faulty", "multiprocessing"].iter().any(|word| command.contains(word))
}

#[test]
fn an_environment_that_exits_ends_the_run_with_what_is_known() {
    let closing = failure_of(start_faulty("exit", "", &[]));
    assert!(closing.contains("SystemExit: no longer") && closing.contains("faulty.py\", line "), "{closing}");
    let closing = failure_of(start_faulty("exit at once", "", &[]));
    assert!(closing.contains("actor 0 exited with code 7 (3 times"), "{closing}");
    // By this code a learner says that training has diverged, and what it learned is of no use.
    let closing = failure_of(start_faulty("exit at once", r#", "code": 102"#, &[]));
    assert!(closing.contains("gave up: actor 0 exited with code 102 (3 times"), "{closing}");
    // Nobody but the actor itself knows when its work is done.
    let closing = failure_of(start_faulty("exit well at once", "", &[]));
    assert!(closing.contains("actor 0 exited with code 0 (3 times"), "{closing}");
    let closing = failure_of(start_faulty("exit well at once", "", &["actor.count=0"]));
    assert!(closing.contains("exited with code 0"), "{closing}");
}

#[test]
fn an_environment_that_crashes_is_told_of_with_its_stack() {
    let closing = failure_of(start_faulty("crash", "", &[]));
    assert!(closing.contains("actor 0 was killed by SIGABRT (3 times"), "{closing}");
    assert!(closing.contains("faulty.py\", line ") && closing.contains(" in step"), "{closing}");
}

#[test]
fn an_environment_that_observes_nan_is_named_with_the_component() {
    let closing = failure_of(start_faulty("observe nan", "", &[]));
    assert!(closing.contains("gave observation[1] = NaN in step 1 of an episode"), "{closing}");
}

#[test]
fn an_environment_that_hangs_is_asked_where_and_killed() {
    let mark = tempfile::tempdir().unwrap();
    let once = format!(r#", "once": {:?}"#, mark.path().join("hung").display().to_string());
    let mut run = start_faulty("hang", &once, &["actor.count=2", "machine.hang_timeout_s=1.0"]);
    run.wait_for_log("in phase `environment step` (if it needs longer, raise machine.hang_timeout_s above 1) and was killed");
    run.wait_for_log("in hang");
    run.wait_for("the replacement", |line| number(line, "restarts") >= 1 && number(line, "actors") == 2);
    run.end_by(Signal::SIGTERM);
    let log = run.log();
    assert!(log.contains("faulty.py\", line ") && !log.contains("<shoal"), "{log}");
    run.assert_nothing_left();
}

/// A task with so many actions.
fn task(actions: u32) -> String {
    format!(
        "import gymnasium\nimport numpy\n\n\nclass Task(gymnasium.Env):\n    \
         observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), numpy.float32)\n    \
         action_space = gymnasium.spaces.Discrete({actions})\n\n    \
         def reset(self, *, seed=None, options=None):\n        \
         return numpy.zeros(3, numpy.float32), {{}}\n\n    \
         def step(self, action):\n        \
         return numpy.zeros(3, numpy.float32), 1.0, True, False, {{}}\n"
    )
}

#[test]
fn a_run_is_played_in_the_folder_to_which_its_project_was_moved() {
    let place = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|name| place.path().join(name));
    std::fs::create_dir(&before).unwrap();
    std::fs::write(before.join("my_task.py"), task(2)).unwrap();
    let python_path = format!("environment.python_path={}", before.display());
    let mut run = start(&["environment.id=python:my_task:Task", &python_path, "evaluator.enabled=false"]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGINT);
    std::fs::rename(&before, &after).unwrap();
    let play = |folder: &Path| {
        let mut command = run.program("evaluate");
        command.arg(run.run_folder()).args(["--episodes", "1"]).current_dir(folder).output().unwrap()
    };
    assert!(said(&play(place.path())).contains("there is no module my_task in "), "{}", said(&play(place.path())));
    assert!(told(&play(&after)).contains("on python:my_task:Task"));
}

#[test]
fn an_actor_whose_environment_has_been_edited_since_the_run_began_is_not_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my_task.py");
    std::fs::write(&file, task(2)).unwrap();
    let python_path = format!("environment.python_path={}", folder.path().display());
    let mut run = start(&["environment.id=python:my_task:Task", &python_path, "evaluator.enabled=false"]);
    run.wait_for_updates(20);
    std::fs::write(&file, task(12)).unwrap();
    let refused = run.program("attach").arg(run.pid().to_string()).output().unwrap();
    let said = said(&refused);
    assert!(!refused.status.success() && said.contains("`python:my_task:Task` has changed since the run was planned"), "{said}");
    assert!(said.contains("an index from 0 to 11") && said.contains("an index from 0 to 1"), "{said}");
    run.end_by(Signal::SIGINT);
}
