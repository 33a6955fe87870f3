//! Agents learn: short, real runs on Pendulum-v1 by the presets that are shipped, through the real supervisor.

use std::path::Path;

use serde_json::Value;

use crate::support::programs::{program, told};

/// A policy that swings the pendulum up and holds it there returns -145 on average, one that never does about -1,200.
const GOAL: f64 = -250.0;

/// Train with a preset until the goal or the preset's own limit of steps; returns every evaluation's mean.
fn train(preset: &str, overrides: &[&str]) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let mut command = program("supervisor", folder.path());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(preset));
    let folder_key = format!("run.folder={:?}", runs.display().to_string());
    let goal = format!("run.stop_eval_return={GOAL:?}");
    for change in [folder_key.as_str(), &goal, "machine.affinity=false", "run.stop_wall_s=300"].iter().chain(overrides) {
        command.args(["--set", change]);
    }
    told(&command.output().unwrap());
    let evaluations = std::fs::read_to_string(runs.join("latest/evaluations.jsonl")).unwrap();
    let mean = |line: &str| serde_json::from_str::<Value>(line).unwrap()["return_mean"].as_f64().unwrap();
    evaluations.lines().map(mean).collect()
}

fn assert_learned(preset: &str, overrides: &[&str]) {
    let means = train(preset, overrides);
    let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(best >= GOAL, "{preset} {overrides:?}: the best evaluation was {best}, of {means:?}");
}

#[test]
fn sac_swings_the_pendulum_up() {
    assert_learned("pendulum_sac.toml", &[]);
}

#[test]
fn td3_swings_the_pendulum_up() {
    assert_learned("pendulum_td3.toml", &[]);
}

#[test]
fn ddpg_swings_the_pendulum_up() {
    assert_learned("pendulum_ddpg.toml", &[]);
}

#[test]
fn an_algorithm_in_two_halves_swings_the_pendulum_up() {
    for preset in ["pendulum_sac.toml", "pendulum_td3.toml"] {
        assert_learned(preset, &["learner.split=actor_critic"]);
    }
}

#[test]
fn two_learners_with_prioritized_replay_and_normalised_inputs_swing_the_pendulum_up() {
    let overrides = [
        "learner.count=2",
        "replay.prioritized=true",
        "replay.beta_anneal_steps=20000",
        "algorithm.normalise_observations=true",
        "algorithm.normalise_rewards=true",
    ];
    assert_learned("pendulum_sac.toml", &overrides);
}

#[test]
fn batches_drawn_ahead_train_as_well() {
    assert_learned("pendulum_td3.toml", &["learner.prefetch=true", "replay.prioritized=true"]);
}
