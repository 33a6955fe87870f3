//! Every key of the configuration at both of its limits: the run is planned, or refused by the name of the key, its value and a limit.

use std::ops::Bound;

use shoal::algorithms::registry as algorithms;
use shoal::catalogue::Catalogue;
use shoal::config::{Config, Key, Kind, Limits};
use shoal::environments::registry as environments;
use shoal::machine::memory::{Budget, Limit};
use shoal::roles::configured_environment::observation_options;
use shoal::roles::supervisor::Plan;

/// The memory of a small machine.
const BUDGET: Budget = Budget { bytes: 1 << 30, limit: Limit::SharedMemory { used_bytes: 0 } };

/// Keys, by what their paths begin with, that have no effect by default, and what to set for them to have one.
const SWITCHES: &[(&str, &[&str])] = &[
    ("adaptation.", &["adaptation.enabled=true"]),
    ("adaptation.step_size", &["adaptation.largest_batch=512"]),
    ("visualizer.", &["visualizer.enabled=true"]),
    ("learner.swap_interval_updates", &["learner.split=actor_critic"]),
    ("replay.", &["replay.prioritized=true"]),
    ("algorithm.epsilon_alpha", &["algorithm.exploration=ape_x"]),
    ("auto_encoder.latent", &["environment.id=Rally-v0", "auto_encoder.coefficient=1"]),
    ("evaluator.synchronous_interval_steps", &["actor.count=0"]),
    ("checkpoint.synchronous_interval_steps", &["actor.count=0"]),
    ("machine.torch_threads", &["network.engine=torch"]),
];

/// The values at the ends of what `key` allows, in TOML.
fn ends(key: &Key) -> Vec<String> {
    let mut ends = match (key.kind, key.limits) {
        (Kind::Boolean, _) => vec!["true".into(), "false".into()],
        (Kind::Choice(choices), _) => choices.iter().map(|choice| format!("{:?}", choice.word)).collect(),
        (_, Limits::Whole { least, most }) => vec![least.to_string(), most.to_string()],
        (_, Limits::OneOf(numbers)) => numbers.iter().map(usize::to_string).collect(),
        (_, Limits::Real { low, high }) => vec![
            match low {
                Bound::Included(low) => format!("{low:?}"),
                Bound::Excluded(low) => format!("{:?}", low.next_up()),
                Bound::Unbounded => format!("{:?}", f64::MIN),
            },
            match high {
                Bound::Included(high) => format!("{high:?}"),
                Bound::Excluded(high) => format!("{:?}", high.next_down()),
                Bound::Unbounded => format!("{:?}", f64::MAX),
            },
        ],
        (_, Limits::List { longest, least, most }) => {
            vec![format!("[{least}]"), format!("[{most}]"), format!("{:?}", vec![least; longest]), format!("{:?}", vec![most; longest])]
        }
        (_, Limits::Triples { longest, least, most }) => {
            vec!["[]".into(), format!("{:?}", [[least; 3]]), format!("{:?}", vec![[most; 3]; longest])]
        }
        // A text has no ends; a device is planned whether or not it is there.
        (_, Limits::Text { .. } | Limits::Any) => Vec::new(),
    };
    if key.optional {
        ends.push("\"none\"".into());
    }
    ends
}

/// The plan of `algorithm` with `overrides`, or the message that a user reads.
fn plan(algorithm: &str, overrides: &[String]) -> Result<Plan, String> {
    let id = if algorithm == "dqn" { "CartPole-v1" } else { "Pendulum-v1" };
    // A batch of whole fragments, if the algorithm learns from fragments.
    let batch = if ["appo", "ppo"].contains(&algorithm) { "learner.batch_size = 384\n" } else { "" };
    let text = format!("environment.id = {id:?}\nalgorithm.name = {algorithm:?}\n{batch}");
    let loaded = Config::parse(&text, "limits.toml", overrides).map_err(|errors| errors.0[0].to_string())?;
    let shown = environments::spec(&loaded.config.environment.id).unwrap();
    let seen = observation_options(&Catalogue::default(), &loaded.config).spec(&shown);
    let environment = seen.map_err(|error| loaded.error_at("environment.frames_per_observation", error.to_string()).to_string())?;
    let algorithm =
        algorithms::build(&loaded.config, &environment).map_err(|error| loaded.error_at(error.key(), error.to_string()).to_string())?;
    let plan = Plan::new(&loaded.config, &*algorithm, &[0, 1], &[]).map_err(|error| error.to_string())?;
    plan.check(&BUDGET).map_err(|error| error.to_string())?;
    Ok(plan)
}

/// Whether `text` has a number besides `value`: the limit, or what would fit.
fn names_a_limit(text: &str, value: &str) -> bool {
    text.replace(value, "").chars().any(|letter| letter.is_ascii_digit())
}

#[test]
fn every_key_at_both_of_its_limits_is_planned_or_refused_by_its_name_value_and_limit() {
    for key in Key::all() {
        let algorithms = if key.algorithms.is_empty() { &["dqn", "ppo"] } else { key.algorithms };
        for (value, algorithm) in ends(key).iter().flat_map(|value| algorithms.iter().map(move |algorithm| (value, algorithm))) {
            let path = key.path();
            let switches = SWITCHES.iter().filter(|(keys, _)| path.starts_with(keys)).flat_map(|(_, switches)| *switches);
            // The key comes last: it may be a switch itself.
            let overrides: Vec<String> = switches.map(|switch| (*switch).to_owned()).chain([format!("{path}={value}")]).collect();
            let Err(refusal) = plan(algorithm, &overrides) else { continue };
            assert!(!refusal.contains("it has no effect while"), "{algorithm}, {path} = {value} is never planned: {refusal}");
            let rest = refusal.replace(&format!("--set {path}={value}"), "").replace("limits.toml", "");
            assert!(refusal.contains(&path) && refusal.contains(value), "{algorithm}, {path} = {value}: {refusal}");
            let is_word = matches!(key.kind, Kind::Choice(_));
            assert!(is_word || names_a_limit(&rest, value), "{algorithm}, {path} = {value}: {refusal}");
            assert!(!refusal.contains("header") && !refusal.contains("damaged"), "{algorithm}, {path} = {value}: {refusal}");
        }
    }
}

#[test]
fn the_largest_run_that_the_limits_allow_has_a_layout() {
    let largest = |path: &str| match Key::find(path).unwrap().limits {
        Limits::Whole { most, .. } => format!("{path}={most}"),
        limits => panic!("{path}: {limits:?}"),
    };
    let paths = ["actor.count", "actor.attach_slots", "learner.count", "replay.capacity"];
    let mut overrides: Vec<String> = paths.map(largest).into();
    overrides.push("actor.flush_transitions=8192".into());
    let refusal = plan("dqn", &overrides).unwrap_err();
    assert!(refusal.contains("shared memory do not fit") && refusal.contains("replay.capacity from 16777216"), "{refusal}");

    // One actor with the largest flush that a replay can take.
    let overrides = ["actor.environments=4096", "algorithm.n_step=1000", "actor.attach_slots=0", "replay.capacity=16777216"];
    let refusal = plan("dqn", &overrides.map(str::to_owned)).unwrap_err();
    assert!(refusal.contains("shared memory do not fit"), "{refusal}");
}
