//! `docs/metrics.md` names everything that a run writes, and nothing else; `docs/run-folder.md` does so for the results
//! of several seeds.

use std::collections::BTreeSet;
use std::path::Path;

use shoal::config::Config;
use shoal::metrics::Metric;
use shoal::seeds::{Ended, Outcome, Report};
use shoal::telemetry::{ActorTime, ByKind, Effort, LearnerTime, Metrics, Snapshot, StopReason, fault_of};
use shoal::{algorithms, environments};
use tempfile::tempdir;

use crate::files::{read_events, scalars};
use crate::support::{confirmation, evaluation, json_lines, piped_console, sinks_in};

/// The metrics of all algorithms.
fn declared() -> BTreeSet<&'static str> {
    let of_one = |name: &str| {
        let mut config = Config::for_environment(if name == "dqn" { "CartPole-v1" } else { "Pendulum-v1" });
        config.algorithm.name = name.into();
        algorithms::registry::build(&config, &environments::registry::spec(&config.environment.id).unwrap()).unwrap().metrics()
    };
    algorithms::registry::Algorithms::default().names().flat_map(of_one).map(|metric| metric.name).collect()
}

/// A moment of which everything is known; without `..`, so that a new metric cannot be forgotten here.
fn everything() -> Snapshot {
    let actor_time =
        ActorTime { environment_s: 1.0, inference_s: 1.0, insert_s: 1.0, limiter_wait_s: 1.0, processor_s: 1.0, core_wait_s: 1.0 };
    let learner_time = LearnerTime {
        replay_s: 1.0,
        compute_s: 1.0,
        exchange_s: 1.0,
        publish_s: 1.0,
        limiter_wait_s: 1.0,
        processor_s: 1.0,
        core_wait_s: 1.0,
    };
    Snapshot {
        wall_s: 1.0,
        training_s: 1.0,
        earlier_training_s: 0.0,
        env_steps: 1,
        stop_env_steps: 1,
        stop_wall_s: Some(1.0),
        episodes: 1,
        updates: 1,
        earlier_updates: 0,
        inserted: 1,
        sampled: 1,
        stale_priorities: 1,
        saturated_priorities: 0,
        dropped_fragments: 0,
        replayed_fragments: 0,
        replay_size: 1,
        replay_capacity: 1,
        env_steps_per_s: 1.0,
        env_steps_per_s_of_learning: 1.0,
        updates_per_s: 1.0,
        learned: 1,
        learned_per_s: 1.0,
        cores_used: 1.0,
        cores_by_kind: ByKind::default(),
        machine_busy_share: Some(1.0),
        products_per_s: 1.0,
        peak_share: Some(1.0),
        gpu_busy_share: Some(1.0),
        gpu_memory_bytes: Some(1),
        effort: Effort::default(),
        effort_in_training: Effort::default(),
        products_peak_per_s: 1,
        train_return_mean: Some(1.0),
        train_length_mean: Some(1.0),
        eval_return_mean: Some(1.0),
        eval_return_std: Some(1.0),
        eval_episodes: Some(1),
        eval_version: Some(1),
        best_eval_return: Some(1.0),
        best_eval_ci95_low: Some(1.0),
        stop_eval_return: Some(1.0),
        only_evaluates: false,
        metrics: Metrics(declared().into_iter().map(|name| (name, 1.0)).collect()),
        epsilon: Some(1.0),
        beta: Some(1.0),
        learning_rate: 1.0,
        policy_learning_rate: Some(1.0),
        parameter_version: 1,
        policy_lag_mean: 1.0,
        policy_lag_max: 1,
        actor_time,
        learner_time,
        evaluator_processor_s: 1.0,
        visualizer_processor_s: 1.0,
        supervisor_processor_s: 1.0,
        actors: 1,
        attached: 1,
        learners: 1,
        restarts: 1,
        inserted_by_process: shoal::telemetry::InsertedByProcess::default(),
    }
}

/// The names in the table below `heading` of a page, each with a unit and a meaning.
fn named_below(page: &str, heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page)).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "name, unit and meaning: {row}");
        cells[0].trim_end_matches('`').to_owned()
    })
    .collect()
}

fn assert_named(page: &str, heading: &str, written: impl IntoIterator<Item = String>) {
    let (named, written) = (named_below(page, heading), written.into_iter().collect::<BTreeSet<_>>());
    let set: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(set.len(), named.len(), "a name stands twice below {heading}");
    let missing: Vec<_> = written.difference(&set).collect();
    let invented: Vec<_> = set.difference(&written).collect();
    assert!(missing.is_empty() && invented.is_empty(), "{heading} in docs/{page} lacks {missing:?} and invents {invented:?}");
}

#[test]
fn the_page_of_metrics_names_everything_that_is_written_and_nothing_else() {
    let root = tempdir().unwrap();
    let mut sinks = sinks_in(root.path(), piped_console().1);
    sinks.record(&everything());
    sinks.evaluation(&evaluation(1, &[1.0, 2.0]));
    sinks.evaluation(&confirmation(1, &[1.0, 2.0]));
    let keys = |path: &Path| json_lines(path)[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_named("metrics.md", "`metrics.jsonl`", keys(&sinks.folder().metrics()));
    assert_named("metrics.md", "`evaluations.jsonl`", keys(&sinks.folder().evaluations()));
    // The first two events are the file's version and the hyper-parameters.
    let events = read_events(&sinks.folder().events());
    let tags = events[2..].iter().flat_map(|event| scalars(event).into_keys().map(String::from).collect::<Vec<_>>());
    assert_named("metrics.md", "TensorBoard", tags);
    let folder = sinks.folder().clone();
    sinks.finish(StopReason::Interrupted, &everything());
    let summary = folder.record().unwrap().finished.unwrap().summary;
    assert_named("metrics.md", "`run.json`", summary.as_object().unwrap().keys().cloned());
}

#[test]
fn the_page_of_the_run_folder_names_every_key_of_a_seed_and_nothing_else() {
    let folder = tempdir().unwrap();
    Report::read(folder.path(), &[Ended { seed: 1, outcome: Outcome::Succeeded }]).write("page").unwrap();
    let table: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.path().join("seeds.json")).unwrap()).unwrap();
    assert_named("run-folder.md", "`seeds.json`", table["seeds"][0].as_object().unwrap().keys().cloned());
}

#[test]
fn an_algorithm_may_declare_a_metric_that_no_run_has_yet_once() {
    let line = serde_json::to_value(everything()).unwrap();
    for key in line.as_object().unwrap().keys() {
        let fault = fault_of(&[Metric::mean(key.clone().leak())]);
        assert_eq!(fault.is_none(), declared().contains(key.as_str()), "{key}: {fault:?}");
    }
    assert_eq!(fault_of(&[Metric::mean("error"), Metric::max("error")]).unwrap(), "two metrics \"error\"");
    assert!(fault_of(&[Metric::mean("error"), Metric::max("largest_error")]).is_none());
    assert!(fault_of(&[Metric::sum("many"); 17]).unwrap().starts_with("17 metrics"));
}
