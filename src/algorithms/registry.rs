//! Algorithms by name.

use super::dqn::Dqn;
use super::{Algorithm, AlgorithmError};
use crate::config::Config;
use crate::environments::EnvironmentSpec;

/// All names.
pub const NAMES: &[&str] = &["dqn"];

/// The algorithm that `config` names, for `environment`.
pub fn build(config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
    match config.algorithm.name.as_str() {
        "dqn" => Ok(Box::new(Dqn::new(config, environment)?)),
        name => Err(AlgorithmError::Unknown { name: name.into(), known: NAMES.join(", ") }),
    }
}
