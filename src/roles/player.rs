//! Playing a saved policy again, outside any run.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::evaluator;
use super::run::RoleError;
use crate::algorithms::{AlgorithmError, registry as algorithms};
use crate::checkpoint::{Policy, WeightsError};
use crate::config::{Config, ConfigErrors};
use crate::environments::{EnvironmentError, registry as environments};
use crate::telemetry::{Evaluation, RunFolder, Statistics, TelemetryError};

/// Which weights of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those of the best evaluation.
    Best,
    /// The last ones.
    Last,
}

/// Why a policy could not be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The run folder cannot be read.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The environment is not there.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The algorithm is not there.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// Playing failed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The weights are not of the network that the configuration describes.
    #[error(
        "{path} holds a network of {found} parameters and {algorithm} on {environment} needs {expected}; it was trained with another [network]"
    )]
    Shape {
        /// Weights file.
        path: PathBuf,
        /// Parameters in it.
        found: usize,
        /// Parameters needed.
        expected: usize,
        /// Algorithm.
        algorithm: String,
        /// Environment.
        environment: String,
    },
}

/// How well a policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Weights file.
    pub weights: PathBuf,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Updates in the weights.
    pub updates: u64,
    /// Seed of the environments.
    pub seed: u64,
    /// Mean, spread and confidence interval.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Every return.
    pub returns: Vec<f64>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("unknown".into(), |value| format!("{value:.2}"));
        let Statistics { episodes, return_mean, return_std, return_min, return_max, ci95_low, ci95_high, .. } = self.statistics;
        writeln!(
            formatter,
            "policy      {} on {}, {} updates ({})",
            self.algorithm,
            self.environment,
            self.updates,
            self.weights.display()
        )?;
        writeln!(formatter, "episodes    {episodes}, greedy, seed {}", self.seed)?;
        writeln!(formatter, "return      mean {}, standard deviation {}", number(return_mean), number(return_std))?;
        writeln!(formatter, "interval    {} to {} (95 %, Student's t)", number(ci95_low), number(ci95_high))?;
        write!(formatter, "range       {} to {}", number(return_min), number(return_max))
    }
}

/// Play the policy at `path`, a run folder or a weights file, for `episodes` episodes.
pub fn play(path: &Path, which: Which, episodes: usize, seed: u64) -> Result<Outcome, PlayError> {
    let (weights, config) = if path.is_dir() {
        let folder = RunFolder::open(path)?;
        let weights = match which {
            Which::Best => folder.best_weights(),
            Which::Last => folder.last_weights(),
        };
        (weights, Some(Config::load(&folder.config(), &[])?.config))
    } else {
        (path.to_owned(), None)
    };
    let saved = Policy::load(&weights)?;
    let mut config = config.unwrap_or_else(|| Config::for_environment(&saved.metadata.environment));
    config.algorithm.name.clone_from(&saved.metadata.algorithm);
    config.network.hidden.clone_from(&saved.spec.hidden);
    config.network.dueling = saved.spec.dueling;
    config.algorithm.normalise_observations = saved.metadata.input_scaling.is_some();
    let algorithm = algorithms::build(&config, &environments::spec(&config.environment.id)?)?;
    let expected = algorithm.network().parameter_count();
    if saved.parameters.len() != expected {
        return Err(PlayError::Shape {
            path: weights,
            found: saved.parameters.len(),
            expected,
            algorithm: saved.metadata.algorithm,
            environment: saved.metadata.environment,
        });
    }
    let mut policy = algorithm.policy()?;
    policy.set_parameters(&saved.published());
    let played = evaluator::play(&config, &mut *policy, episodes.max(1), seed, || true)?;
    let evaluation = Evaluation { returns: played.returns, lengths: played.lengths, ..Evaluation::default() };
    Ok(Outcome {
        weights,
        environment: saved.metadata.environment,
        algorithm: saved.metadata.algorithm,
        updates: saved.metadata.updates,
        seed,
        statistics: evaluation.statistics(),
        returns: evaluation.returns,
    })
}
