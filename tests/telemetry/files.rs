//! The files of a run: what stands in them, and that they stay whole.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use prost::Message;
use shoal::machine::machine_time::MachineTime;
use shoal::telemetry::event_file::{Content, Event, Value, What};
use shoal::telemetry::hyper_parameters::{Kind, PluginData};
use shoal::telemetry::{
    ActorTime, Bottleneck, ByKind, Effort, Evaluation, LearnerTime, Metrics, Remembered, RunFolder, Sinks, Snapshot, StopReason,
};
use tempfile::tempdir;

use crate::support::{
    all_of, confirmation, context, evaluation, json_lines, piped_console, root_of_this_process, run_alone, sinks_in, snapshot_at,
};

#[test]
fn a_metrics_line_is_flat_and_leaves_out_what_is_not_known() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    let actor_time = ActorTime { environment_s: 1.5, limiter_wait_s: 0.25, ..ActorTime::default() };
    let learner_time = LearnerTime { compute_s: 2.5, ..LearnerTime::default() };
    let metrics = Metrics(vec![("loss", f64::NAN), ("q_mean", f64::INFINITY)]);
    sinks.record(&Snapshot { actor_time, learner_time, metrics, ..snapshot_at(1.0) });
    sinks.record(&Snapshot { eval_return_mean: Some(187.5), ..snapshot_at(2.0) });
    // The line is in the file now, and not when a buffer is full: a kill can cost the line that is being written, but no other.
    let lines = json_lines(&sinks.folder().metrics());
    assert_eq!(lines.len(), 2);
    let first = lines[0].as_object().unwrap();
    assert_eq!((&first["wall_s"], &first["env_steps"], &first["updates"]), (&1.0.into(), &800.into(), &200.into()));
    assert_eq!((&first["actor_environment_s"], &first["actor_limiter_wait_s"]), (&1.5.into(), &0.25.into()));
    assert_eq!(first["learner_compute_s"], 2.5);
    assert!(first["loss"].is_null() && first["q_mean"].is_null(), "JSON has no NaN and no infinity: {first:?}");
    assert!(!first.contains_key("eval_return_mean") && first.values().all(|value| !value.is_object()), "{first:?}");
    assert_eq!(lines[1]["eval_return_mean"], 187.5);
}

#[test]
fn metrics_follow_their_interval_and_carry_the_mean_rates_of_it() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    let metrics = sinks.folder().metrics();
    for fifth in 0..=20 {
        sinks.record(&Snapshot { env_steps_per_s: 7.0, ..snapshot_at(f64::from(fifth) / 5.0) });
    }
    sinks.finish(StopReason::Interrupted, &snapshot_at(4.5));
    let lines = json_lines(&metrics);
    let times: Vec<f64> = lines.iter().map(|line| line["wall_s"].as_f64().unwrap()).collect();
    assert_eq!(times, [0.0, 1.0, 2.0, 3.0, 4.0, 4.5], "one a second, and the last moment");
    assert_eq!(lines[2]["env_steps_per_s"], 800.0);
    assert_eq!(lines[5]["updates_per_s"], 200.0);
}

#[test]
fn the_last_moment_is_not_written_twice() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    let metrics = sinks.folder().metrics();
    sinks.record(&snapshot_at(3.0));
    sinks.finish(StopReason::StepLimit, &snapshot_at(3.0));
    assert_eq!(json_lines(&metrics).len(), 1);
}

#[test]
fn an_evaluation_line_carries_its_statistics() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.evaluation(&evaluation(3, &[1.0, 2.0, 3.0, 4.0, 5.0]));
    sinks.evaluation(&evaluation(4, &[9.0]));
    sinks.evaluation(&confirmation(4, &[8.0, 8.0]));
    let lines = json_lines(&sinks.folder().evaluations());
    assert_eq!((&lines[0]["env_steps"], &lines[0]["version"], &lines[0]["episodes"]), (&300.into(), &3.into(), &5.into()));
    assert_eq!((&lines[0]["return_mean"], &lines[0]["return_min"], &lines[0]["return_max"]), (&3.0.into(), &1.0.into(), &5.0.into()));
    assert!((lines[0]["ci95_low"].as_f64().unwrap() - 1.036757).abs() < 1e-6);
    assert_eq!(lines[0]["length_mean"], 3.0);
    assert!(lines[1]["return_std"].is_null() && lines[1]["ci95_high"].is_null());
    let marks: Vec<_> = lines.iter().map(|line| (line["kind"].as_str().unwrap(), line["is_best"].as_bool().unwrap())).collect();
    assert_eq!(marks, [("routine", false), ("routine", false), ("confirmation", true)]);
    assert_eq!(lines[2]["version"], lines[1]["version"]);
}

#[test]
fn event_files_read_back_with_valid_checksums_and_the_same_values() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    let metrics = Metrics(vec![("loss", 0.0), ("entropy", -2.5)]);
    let known = Snapshot { train_return_mean: Some(21.5), train_length_mean: Some(34.5), metrics, ..snapshot_at(1.0) };
    let cores_by_kind = ByKind { learners: 0.5, ..ByKind::default() };
    sinks.record(&Snapshot { replay_size: 640, cores_by_kind, learning_rate: 0.25, ..known });
    sinks.evaluation(&evaluation(8, &[10.0, 20.0]));
    sinks.evaluation(&confirmation(8, &[11.0, 13.0]));
    let events = read_events(&sinks.folder().events());
    assert!(matches!(&events[0].what, Some(What::FileVersion(version)) if version == "brain.Event:2"));
    let training = scalars(&events[2]);
    assert_eq!(events[2].step, 800);
    assert_eq!((training["rollout/episode_return_mean"], training["train/loss"], training["replay/size"]), (21.5, 0.0, 640.0));
    assert_eq!(training["rollout/episode_length_mean"], 34.5);
    assert_eq!(training["train/learning_rate"], 0.25);
    assert!(!training.contains_key("train/policy_learning_rate"));
    assert_eq!((training["cores/learners"], training["cores/actors"]), (0.5, 0.0));
    assert_eq!(training["train/entropy"], -2.5, "whatever an algorithm declares");
    assert!(!training.contains_key("train/q_mean"), "what is not known has no point");
    assert_eq!(events[3].step, 800);
    assert_eq!(scalars(&events[3])["evaluation/return_mean"], 15.0);
    let confirmed = scalars(&events[4]);
    assert_eq!(confirmed["confirmation/return_mean"], 12.0);
    assert!(confirmed.keys().all(|tag| tag.starts_with("confirmation/")), "curves of all evaluations stay their own: {confirmed:?}");
    assert_eq!(events.len(), 5);
}

#[test]
fn a_run_that_goes_on_keeps_the_points_of_the_step_that_it_goes_on_from() {
    let root = tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "cartpole_dqn", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
    let earlier = Remembered { env_steps: 800, ..Remembered::default() };
    let sinks = Sinks::open(folder, piped_console().1, context(), Some(&earlier)).unwrap();
    let events = read_events(&sinks.folder().events());
    let session = events.iter().find(|event| matches!(event.what, Some(What::Session(_)))).unwrap();
    // TensorBoard forgets the points of this step and of all later ones.
    assert_eq!(session.step, 801);
}

#[test]
fn what_is_known_of_a_long_run_is_read_without_keeping_its_evaluations() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    // They differ in the last digit of their returns.
    for number in 0..1_000 {
        let returned = f64::from_bits(1_f64.to_bits() + number);
        sinks.evaluation(&evaluation(1, &[returned, returned]));
    }
    let mut remembered = Remembered::default();
    let seen = allocation_counter::measure(|| remembered = Remembered::of_files(sinks.folder(), None, 0));
    assert_eq!(remembered.evaluations.routine, 1_000);
    assert!(seen.bytes_max < 100_000, "{seen:?}");
}

#[test]
fn the_resolved_configuration_is_in_the_event_file_as_hyper_parameters() {
    let root = tempdir().unwrap();
    let mut context = context();
    context.config.run.seed = (1 << 53) + 1;
    let config = context.config.to_toml();
    let folder = RunFolder::create(root.path(), "cartpole_dqn", &config).unwrap();
    let sinks = Sinks::open(folder, piped_console().1, context, None).unwrap();
    let events = read_events(&sinks.folder().events());
    let Some(What::Summary(summary)) = &events[1].what else { panic!("no summary: {events:?}") };
    let value = &summary.value[0];
    let plugin = value.metadata.as_ref().unwrap().plugin.as_ref().unwrap();
    assert_eq!((value.tag.as_str(), plugin.name.as_str()), ("_hparams_/session_start_info", "hparams"));
    assert!(matches!(value.content, Some(Content::Tensor(_))), "TensorBoard passes over a value without content");
    let known = PluginData::decode(plugin.content.as_slice()).unwrap().session_start.unwrap().hyper_parameters;
    let kind = |key: &str| known[key].kind.clone().unwrap();
    assert_eq!(kind("learner.batch_size"), Kind::Number(64.0));
    assert_eq!(kind("algorithm.gamma"), Kind::Number(0.99));
    assert_eq!(kind("run.seed"), Kind::Text("9007199254740993".into()), "no double is this number");
    assert_eq!(kind("replay.prioritized"), Kind::Truth(true));
    assert_eq!(kind("environment.id"), Kind::Text("CartPole-v1".into()));
    assert_eq!(kind("network.hidden"), Kind::Text("[256, 256]".into()));
    let tables: toml::Table = config.parse().unwrap();
    assert_eq!(known.len(), tables.values().map(|table| table.as_table().unwrap().len()).sum::<usize>(), "every key");
}

#[test]
fn the_report_names_the_confirmed_score_the_bottleneck_and_the_files() {
    let root = tempdir().unwrap();
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(root.path(), console);
    let folder = sinks.folder().clone();
    fs::write(folder.best_weights(), "weights").unwrap();
    for tenth in 0..3 {
        sinks.record(&snapshot_at(f64::from(tenth) / 10.0));
    }
    sinks.evaluation(&evaluation(4, &[500.0, 500.0]));
    sinks.evaluation(&evaluation(5, &[500.0]));
    sinks.evaluation(&Evaluation { confirms_goal: true, ..confirmation(5, &[480.0, 500.0, 490.0]) });
    sinks.evaluation(&evaluation(6, &[20.0, 30.0]));
    let actor_time = ActorTime { environment_s: 2.0, limiter_wait_s: 8.0, ..ActorTime::default() };
    let learner_time = LearnerTime { compute_s: 9.0, ..LearnerTime::default() };
    let machine_time = MachineTime { busy: 3, total: 4 };
    let processor_s = ByKind { learners: 20.0, actors: 8.0, evaluator: 2.0, supervisor: 1.0, ..ByKind::default() };
    let last = Snapshot {
        actor_time,
        learner_time,
        training_s: 20.0,
        learned: 320_000,
        effort_in_training: Effort { processor_s, machine_time, products: 5_000 },
        products_peak_per_s: 1_000,
        gpu_busy_share: Some(0.25),
        gpu_memory_bytes: Some(3 << 30),
        ..snapshot_at(25.0)
    };
    let summary = sinks.finish(StopReason::Solved, &last);

    assert_eq!(summary.best_evaluation.unwrap().version, 5);
    assert_eq!(summary.bottleneck.bottleneck, Bottleneck::Learners);
    assert!(summary.files.contains(&"weights/best.safetensors".to_string()), "{:?}", summary.files);
    let printed = all_of(reader);
    assert!(printed.contains(&summary.to_string()), "{printed}");
    for part in [
        "solved: 490.0 over 3 fresh episodes, confirmed with the same weights, after 0:25",
        "20,000 (1k/s)",
        "5,000 (250/s), 16k samples/s",
        "cores       1.50 used on average (learners 1.00, actors 0.40, evaluator 0.10; supervisor 0.05); the machine was 75 % busy\n",
        "25 % busy lately, 3.00 GiB of its memory taken",
        "peak        networks computed 25.0 % of what the cores could\n",
        "best confirmed 490.0 over 3 fresh episodes (95 % interval 465.2 to 514.8), version 5, 500 steps; 3 evaluations, 1 confirmation",
        "learner-bound: actors waited 80 %",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    assert!(printed.contains(&format!("tensorboard --logdir {}", root.path().join("tensorboard").display())), "{printed}");
    let finished = folder.record().unwrap().finished.unwrap();
    assert_eq!(finished.reason, "solved");
    let best = &finished.summary["best_evaluation"];
    assert_eq!((&best["return_mean"], &best["kind"], &best["episodes"]), (&490.0.into(), &"confirmation".into(), &3.into()));
    assert_eq!((&finished.summary["evaluations"], &finished.summary["confirmations"]), (&3.into(), &1.into()));
    assert_eq!(finished.summary["bottleneck"]["bottleneck"], "learners");
    assert_eq!((&finished.summary["cores_used"], &finished.summary["cores_by_kind"]["actors"]), (&1.5.into(), &0.4.into()));
}

#[test]
fn the_figures_of_a_run_are_noted_also_in_a_folder_whose_name_is_not_utf8() {
    let place = tempdir().unwrap();
    // No run begins in such a folder, but it may be moved there.
    let sinks = sinks_in(&place.path().join(OsStr::from_bytes(b"caf\xe9")), piped_console().1);
    let folder = sinks.folder().clone();
    sinks.finish(StopReason::StepLimit, &snapshot_at(2.0));
    let summary = folder.record().unwrap().finished.unwrap().summary;
    assert_eq!(summary["env_steps"], 1_600, "{summary}");
    assert!(["folder", "charts"].iter().all(|key| summary[key].as_str().is_some_and(|path| path.contains("caf"))), "{summary}");
}

#[test]
fn waiting_at_the_start_is_no_waiting_for_each_other() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.record(&snapshot_at(0.0));
    // The first update came after the last look: learners had waited for the first transitions, actors for the first update.
    let actor_time = ActorTime { inference_s: 2.0, limiter_wait_s: 2.0, ..ActorTime::default() };
    let learner_time = LearnerTime { compute_s: 1.0, limiter_wait_s: 2.0, ..LearnerTime::default() };
    let summary = sinks.finish(StopReason::Solved, &Snapshot { actor_time, learner_time, ..snapshot_at(4.0) });
    assert_eq!(summary.bottleneck.bottleneck, Bottleneck::Unknown, "{}", summary.bottleneck);
}

#[test]
fn waiting_that_began_before_the_first_update_does_not_count() {
    // Of an earlier life of a run that goes on, there are updates from the beginning.
    for earlier_updates in [0, 5_000] {
        let root = tempdir().unwrap();
        let mut sinks = sinks_in(root.path(), piped_console().1);
        let moment = |wall_s: f64, actor_wait_s: f64, learner_s: f64| {
            let actor_time = ActorTime { inference_s: wall_s / 2.0, limiter_wait_s: actor_wait_s, ..ActorTime::default() };
            let learner_time = LearnerTime { compute_s: learner_s, limiter_wait_s: wall_s - learner_s, ..LearnerTime::default() };
            let updates = earlier_updates + (200.0 * learner_s) as u64;
            Snapshot { actor_time, learner_time, updates, ..snapshot_at(wall_s) }
        };
        // The actors' wait for the first update, of 6 seconds, is counted when it ends, just after the first look with updates.
        for (wall_s, actor_wait_s, learner_s) in [(0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (6.0, 0.0, 0.1), (6.2, 6.0, 0.2)] {
            sinks.record(&moment(wall_s, actor_wait_s, learner_s));
        }
        let summary = sinks.finish(StopReason::Interrupted, &moment(16.2, 6.1, 2.0));
        assert_eq!(summary.bottleneck.bottleneck, Bottleneck::Actors, "{earlier_updates}: {}", summary.bottleneck);
    }
}

#[test]
fn the_time_in_which_all_leave_held_nothing_back() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    for wall_s in [0.0, 0.2, 0.4] {
        sinks.record(&snapshot_at(wall_s));
    }
    sinks.training_ended(&Snapshot { evaluator_processor_s: 10.0, ..snapshot_at(100.0) }, 4.0);
    // Two actors and a learner that worked all the time, one of them after a death; then an evaluation was waited for.
    let actor_time = ActorTime { environment_s: 150.0, inference_s: 50.0, processor_s: 180.0, ..ActorTime::default() };
    let learner_time = LearnerTime { replay_s: 10.0, compute_s: 90.0, processor_s: 90.0, ..LearnerTime::default() };
    let last = Snapshot { actor_time, learner_time, restarts: 1, evaluator_processor_s: 70.0, ..snapshot_at(160.0) };
    let verdict = sinks.finish(StopReason::StepLimit, &last).bottleneck;
    assert_eq!(verdict.bottleneck, Bottleneck::Cores, "{verdict}");
    assert!(verdict.evidence.contains("; the run used 2.81 of 4 cores"), "{verdict}");
}

#[test]
fn one_cause_of_trouble_is_one_message() {
    let root = tempdir().unwrap();
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(root.path(), console);
    sinks.trouble("no storage space".into(), "cannot write the first file");
    sinks.trouble("no storage space".into(), "cannot write the second file");
    sinks.trouble("permission denied".into(), "cannot write the third file");
    sinks.lose("the first file".into());
    let summary = sinks.finish(StopReason::Failed("the disk is full".into()), &snapshot_at(1.0));
    assert_eq!((summary.losses.as_slice(), summary.play), (&["the first file".to_owned()][..], None));
    let printed = all_of(reader);
    assert!(printed.contains("warning: cannot write the first file; training goes on"), "{printed}");
    assert!(!printed.contains("second") && printed.contains("third"), "{printed}");
}

/// What is offered to a run with a checkpoint, which ends after so many of 25 seconds and of 20,000 steps.
fn offered(reason: StopReason, wall_s: f64, env_steps: u64) -> Option<String> {
    let root = tempdir().unwrap();
    let folder = RunFolder::create(root.path(), "limited", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
    fs::create_dir_all(folder.checkpoints().join("000001-step20000")).unwrap();
    let mut context = context();
    (context.config.run.stop_env_steps, context.config.run.stop_wall_s) = (20_000, Some(25.0));
    let sinks = Sinks::open(folder, piped_console().1, context, None).unwrap();
    sinks.finish(reason, &Snapshot { env_steps, ..snapshot_at(wall_s) }).resume
}

#[test]
fn a_run_that_came_to_a_limit_is_offered_to_go_on_with_twice_of_it() {
    let after_steps = offered(StopReason::StepLimit, 5.0, 20_000).unwrap();
    assert!(after_steps.ends_with(" --set run.stop_env_steps=40000"), "{after_steps}");
    let after_time = offered(StopReason::TimeLimit, 25.0, 500).unwrap();
    assert!(after_time.ends_with(" --set run.stop_wall_s=50"), "{after_time}");
    let interrupted = offered(StopReason::Interrupted, 5.0, 500).unwrap();
    assert!(interrupted.contains(" resume ") && !interrupted.contains("--set"), "{interrupted}");
}

#[test]
fn a_run_whose_memory_is_wrong_goes_on_from_its_checkpoint_and_one_that_has_diverged_does_not() {
    let poisoned = offered(StopReason::Poisoned("the sums are wrong".into()), 5.0, 500).unwrap();
    assert!(poisoned.contains(" resume ") && !poisoned.contains("--set"), "{poisoned}");
    assert_eq!(offered(StopReason::Failed("the loss is NaN".into()), 5.0, 500), None);
    assert_eq!(StopReason::Poisoned("the sums are wrong".into()).to_string(), "gave up: the sums are wrong", "`run.resume=auto` goes on");
}

#[test]
fn the_report_of_a_run_that_missed_its_goal_names_the_best_and_the_last_weights() {
    let root = tempdir().unwrap();
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(root.path(), console);
    sinks.evaluation(&evaluation(5, &[500.0]));
    sinks.evaluation(&confirmation(5, &[450.0, 470.0]));
    sinks.evaluation(&evaluation(9, &[400.0, 420.0]));
    let summary = sinks.finish(StopReason::StepLimit, &Snapshot { parameter_version: 9, ..snapshot_at(25.0) });
    let printed = all_of(reader);
    assert_eq!(printed.matches("not solved yet: an evaluation reached 475.0 (500.0 over 1 episodes)").count(), 1, "{printed}");
    let report = summary.to_string();
    for line in [
        "stopped     step limit, after 0:25\n",
        "goal        475.0, reached by 1 evaluation that fresh episodes did not confirm\n",
        "evaluation  best confirmed 460.0 over 2 fresh episodes (95 % interval 332.9 to 587.1), version 5, 500 steps; \
         2 evaluations, 1 confirm",
        "last        410.0 over 2 episodes (95 % interval 282.9 to 537.1), version 9, 900 steps\n",
    ] {
        assert!(report.contains(line), "`{line}` is not in\n{report}");
    }
}

#[test]
fn last_weights_that_are_clearly_worse_than_the_best_are_called_so() {
    let last = |returns: &[f64]| {
        let root = tempdir().unwrap();
        let mut sinks = sinks_in(root.path(), piped_console().1);
        sinks.evaluation(&evaluation(5, &[500.0]));
        sinks.evaluation(&confirmation(5, &[450.0, 460.0, 470.0]));
        sinks.evaluation(&evaluation(9, returns));
        let report = sinks.finish(StopReason::StepLimit, &Snapshot { parameter_version: 9, ..snapshot_at(25.0) }).to_string();
        report.lines().find(|line| line.starts_with("last ")).unwrap().to_owned()
    };
    assert!(last(&[100.0, 110.0, 120.0]).ends_with("900 steps: worse than the best, which `shoal evaluate` plays"));
    assert!(last(&[100.0, 450.0, 470.0]).ends_with("900 steps"), "the intervals overlap");
}

#[test]
fn last_weights_are_not_taken_for_the_best_of_the_same_version_that_an_abandoned_life_of_the_run_left() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.evaluation(&confirmation(9, &[450.0, 460.0, 470.0]));
    sinks.evaluation(&Evaluation { env_steps: 870, ..evaluation(9, &[100.0, 110.0, 120.0]) });
    let report = sinks.finish(StopReason::StepLimit, &Snapshot { parameter_version: 9, ..snapshot_at(25.0) }).to_string();
    assert!(report.contains("version 9, 870 steps: worse than the best"), "{report}");
}

#[test]
fn the_report_says_when_the_last_weights_were_not_evaluated() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.evaluation(&evaluation(5, &[20.0]));
    let report = sinks.finish(StopReason::StepLimit, &Snapshot { parameter_version: 9, ..snapshot_at(25.0) }).to_string();
    assert!(report.contains("evaluation  none confirmed; 1 evaluation, 0 confirmations\n"), "{report}");
    assert!(report.contains("last        not evaluated\n"), "{report}");
}

#[test]
fn events_are_kept_in_the_log_of_the_run() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.event("actor 3 died of signal 9 and was replaced");
    let log = fs::read_to_string(sinks.folder().log()).unwrap();
    let (time, text) = log.trim_end().split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert_eq!(text, "actor 3 died of signal 9 and was replaced");
}

#[test]
fn a_full_disk_is_reported_once_and_leaves_only_whole_records() {
    let root = tempdir().unwrap();
    let output = run_alone("files::alone_on_a_full_disk", root.path());
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let folder = RunFolder::open(&root.path().join("latest")).unwrap();
    assert!(folder.record().unwrap().finished.is_some(), "the process did come to its end");
}

/// A limit on file sizes makes `write(2)` fail as a full disk does, including the write that gets only part of its bytes in.
#[test]
#[ignore = "the test above runs it in a process of its own, whose limits it changes"]
fn alone_on_a_full_disk() {
    let Some(root) = root_of_this_process() else { return };
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(&root, console);
    let (metrics, events) = (sinks.folder().metrics(), sinks.folder().events());
    // Some records still fit, into either file.
    let limit_bytes = fs::metadata(&events).unwrap().len() + 4096;
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, limit_bytes, hard).unwrap();
    for second in 0..50 {
        sinks.record(&snapshot_at(f64::from(second)));
    }
    let fitted = json_lines(&metrics).len();
    assert!(0 < fitted && fitted < 50, "{fitted} lines");
    let longest_line = fs::read_to_string(&metrics).unwrap().lines().map(str::len).max().unwrap() as u64 + 1;
    let whole_bytes = fs::metadata(&metrics).unwrap().len();
    assert!(whole_bytes < limit_bytes && whole_bytes + longest_line > limit_bytes, "the last write was cut at {whole_bytes}");

    setrlimit(Resource::RLIMIT_FSIZE, hard, hard).unwrap();
    sinks.record(&snapshot_at(60.0));
    assert_eq!(json_lines(&metrics).len(), fitted + 1, "it goes on as soon as there is room");
    assert_eq!(read_events(&events).last().unwrap().step, 48_000);
    let summary = sinks.finish(StopReason::StepLimit, &snapshot_at(61.0));
    assert!(
        summary.losses.contains(&format!("{} records of metrics.jsonl, which could not be written", 50 - fitted)),
        "{:?}",
        summary.losses
    );
    let printed = all_of(reader);
    // A write that was cut short and one that was refused as a whole are two causes to the system. Whether the first one
    // is cut short depends on the lengths of the records.
    let warnings = printed.matches("warning:").count();
    assert!((1..=2).contains(&warnings), "one for each cause, whatever files it stopped: {printed}");
    assert!(printed.contains("cannot append to ") && printed.contains("training goes on"), "{printed}");
}

#[test]
fn recording_starts_no_thread() {
    let root = tempdir().unwrap();
    let output = run_alone("files::alone_counting_threads", root.path());
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(RunFolder::open(&root.path().join("latest")).unwrap().record().unwrap().finished.is_some());
}

#[test]
#[ignore = "the test above runs it in a process of its own, whose threads it counts"]
fn alone_counting_threads() {
    let Some(root) = root_of_this_process() else { return };
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let console = shoal::telemetry::Console::on(terminal.slave.into(), shoal::telemetry::Abilities::ALL).unwrap();
    let mut sinks = sinks_in(&root, console);
    for second in 0..20_u32 {
        sinks.record(&snapshot_at(f64::from(second)));
        sinks.evaluation(&evaluation(second.into(), &[1.0, 2.0]));
        sinks.event("something happened");
        assert_eq!(threads(), before);
    }
    sinks.finish(StopReason::StepLimit, &snapshot_at(20.0));
    assert_eq!(threads(), before);
}

/// Parses an event file as TensorBoard does, checking both checksums of every record.
pub(crate) fn read_events(path: &PathBuf) -> Vec<Event> {
    let bytes = fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let (length, after) = checked(rest, 8);
        let length = u64::from_le_bytes(length.try_into().unwrap());
        let (payload, after) = checked(after, length as usize);
        events.push(Event::decode(payload).unwrap());
        rest = after;
    }
    assert!(path.file_name().unwrap().to_string_lossy().starts_with("events.out.tfevents."), "{}", Path::display(path));
    events
}

/// Splits off `length` bytes and the masked checksum that follows them. The checksum is computed bit by bit, apart from the library's.
fn checked(bytes: &[u8], length: usize) -> (&[u8], &[u8]) {
    let (data, rest) = bytes.split_at(length);
    let (checksum, rest) = rest.split_at(4);
    let mut crc = !0_u32;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    let masked = (!crc).rotate_right(15).wrapping_add(0xa282_ead8);
    assert_eq!(u32::from_le_bytes(checksum.try_into().unwrap()), masked);
    (data, rest)
}

pub(crate) fn scalars(event: &Event) -> BTreeMap<&str, f32> {
    let Some(What::Summary(summary)) = &event.what else { panic!("no summary: {event:?}") };
    let scalar = |value: &Value| if let Some(Content::Scalar(number)) = value.content { number } else { panic!("no scalar: {value:?}") };
    summary.value.iter().map(|value| (value.tag.as_str(), scalar(value))).collect()
}
