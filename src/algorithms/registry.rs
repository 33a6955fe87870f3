//! Algorithms by name.

use super::appo::Appo;
use super::deterministic::Deterministic;
use super::dqn::Dqn;
use super::normalised::Normalised;
use super::sac::Sac;
use super::{Algorithm, AlgorithmError, Normalisation, ddpg, td3};
use crate::config::Config;
use crate::environments::EnvironmentSpec;

/// All names.
pub const NAMES: &[&str] = &["dqn", "ddpg", "td3", "sac", "appo"];

/// Whether an algorithm of that name learns from bytes as they are; the others are shown floats.
pub fn learns_from_bytes(name: &str) -> bool {
    matches!(name, "dqn" | "appo")
}

/// The algorithm that `config` names, for `environment`.
pub fn build(config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
    let algorithm: Box<dyn Algorithm> = match config.algorithm.name.as_str() {
        "dqn" => Box::new(Dqn::new(config, environment)?),
        "ddpg" => Box::new(Deterministic::new(config, environment, ddpg::settings(config))?),
        "td3" => Box::new(Deterministic::new(config, environment, td3::settings(config))?),
        "sac" => Box::new(Sac::new(config, environment)?),
        "appo" => Box::new(Appo::new(config, environment)?),
        name => return Err(AlgorithmError::Unknown { name: name.into(), known: NAMES.join(", ") }),
    };
    let normalisation = Normalisation {
        observations: config.algorithm.normalise_observations,
        rewards: config.algorithm.normalise_rewards,
        length: environment.observation.len(),
    };
    Ok(if normalisation.is_needed() { Box::new(Normalised::new(algorithm, normalisation)) } else { algorithm })
}
