//! Why a saved policy cannot be played.

use std::path::PathBuf;

use thiserror::Error;

use super::super::configured_environment;
use super::super::run::RoleError;
use crate::algorithms::AlgorithmError;
use crate::checkpoint::{CheckpointError, WeightsError};
use crate::config::ConfigErrors;
use crate::environments::EnvironmentError;
use crate::telemetry::TelemetryError;

/// Why a policy could not be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// What holds the weights is no file.
    #[error("{} can be read once, and weights are read again when they are played; write them to a file, and name that", path.display())]
    NoFile {
        /// The pipe or device.
        path: PathBuf,
    },
    /// The run has saved no weights.
    #[error(
        "the run in {} has saved no weights yet: the best are saved once fresh episodes confirmed them, the last when it ends. Its \
         checkpoints cannot be played before: only a file of weights says what the network is",
        folder.display()
    )]
    NoWeights {
        /// Its folder.
        folder: PathBuf,
    },
    /// The run has saved its best weights and not its last, and no checkpoint.
    #[error(
        "the run in {} has not saved its last weights yet, which a run does when it ends, and has no checkpoint to take them from. \
         `--weights best` plays the best so far",
        folder.display()
    )]
    NoLastWeights {
        /// Its folder.
        folder: PathBuf,
    },
    /// The run's newest checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run folder cannot be read.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The environment is not known or not usable here.
    #[error("{}", configured_environment::advised(.0, EnvironmentError::is_unknown))]
    Environment(#[from] EnvironmentError),
    /// A file of weights does not say what its policy observes and does, and the environment, which would, is not known or not usable here.
    #[error(
        "{} does not say what its policy observes and does: another version of Shoal has written it, or its agent sees images as floats. \
         So the environment is needed, and {}",
        path.display(),
        configured_environment::advised(source, EnvironmentError::is_unknown)
    )]
    Unsaid {
        /// The file.
        path: PathBuf,
        /// Why its environment cannot be examined.
        source: EnvironmentError,
    },
    /// The algorithm is not known or not usable here.
    #[error("{}", configured_environment::advised(.0, AlgorithmError::is_unknown))]
    Algorithm(#[from] AlgorithmError),
    /// Playing failed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// A signal ended it early.
    #[error("interrupted by signal {signal} before all episodes were played")]
    Interrupted {
        /// Its number.
        signal: u32,
    },
    /// The weights are of another network or scaling, or of an environment that shows or takes something else.
    #[error(
        "{path} holds a policy of {found} numbers, and {algorithm} on {environment} needs {expected} here{difference}: it was \
         trained with another network, with observations scaled or not, or with other options of the environment, which the folder \
         of its run has (name that, or the file in it), or with another version of it"
    )]
    Shape {
        /// Weights file.
        path: PathBuf,
        /// Numbers in it: parameters, and how observations are scaled where they are.
        found: usize,
        /// Numbers needed.
        expected: usize,
        /// Which observations or outputs differ, in parentheses; empty if neither does.
        difference: String,
        /// Algorithm.
        algorithm: String,
        /// Environment.
        environment: String,
    },
}
