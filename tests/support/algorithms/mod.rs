//! What the tests of the algorithms share: a made-up environment, and batches with everything in them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

#[cfg(feature = "torch")]
pub mod actor_critic;
#[cfg(feature = "torch")]
pub mod deep_q;
#[cfg(feature = "torch")]
pub mod network;
#[cfg(feature = "torch")]
pub mod reference;

use rand::{RngExt, SeedableRng};
use shoal::algorithms::{Algorithm, Learning, Random, registry};
use shoal::config::Config;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace};
use shoal::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::replay::Batch;

/// An environment with `OBSERVATIONS` elements to observe.
pub fn environment<const OBSERVATIONS: usize>(action: ActionSpace) -> EnvironmentSpec {
    EnvironmentSpec::new("made-up", ObservationSpace::symmetric([9.0; OBSERVATIONS]), action)
}

/// The algorithm called `name` in `environment`, with the configuration it was built from.
pub fn build(name: &str, environment: &EnvironmentSpec, change: impl FnOnce(&mut Config)) -> (Config, Box<dyn Algorithm>) {
    let mut config = Config::for_environment(&environment.id);
    config.algorithm.name = name.into();
    change(&mut config);
    let algorithm = registry::build(&config, environment).expect("the algorithm suits the environment");
    (config, algorithm)
}

/// Everything that a learner keeps: parameters, target parameters, moments, counts.
pub fn state(algorithm: &dyn Algorithm, learning: &dyn Learning) -> Vec<f32> {
    let mut state = vec![f32::NAN; algorithm.sizes().state];
    learning.save(&mut state);
    state
}

/// A batch of `rows` random transitions: importance weights, returns over one to three steps, terminated, truncated, both, neither.
/// Discrete actions are below `choices`.
pub fn batch(algorithm: &dyn Algorithm, rows: usize, choices: i32, seed: u64) -> Batch {
    let mut random = Random::seed_from_u64(seed);
    let mut batch = Batch::new(&algorithm.schema(), rows);
    for field in [OBSERVATION, REWARD, NEXT_OBSERVATION] {
        batch.column_mut(field).as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(-1.5..1.5));
    }
    let action = batch.column_mut(ACTION);
    // One of the two is empty, since an action is of one type.
    action.as_f32_mut().iter_mut().for_each(|value| *value = random.random_range(-1.0..1.0));
    action.as_i32_mut().iter_mut().for_each(|value| *value = random.random_range(0..choices));
    for (row, discount) in batch.column_mut(DISCOUNT).as_f32_mut().iter_mut().enumerate() {
        *discount = 0.97f32.powi(1 + row as i32 % 3);
    }
    batch.column_mut(FLAGS).as_i32_mut().iter_mut().enumerate().for_each(|(row, value)| *value = flags(row % 5 == 0, row % 7 == 0));
    batch.weights.iter_mut().for_each(|weight| *weight = random.random_range(0.2..2.2));
    batch.largest_weight = batch.weights.iter().copied().fold(0.0, f32::max);
    batch
}
