//! Why an algorithm cannot be used.

use thiserror::Error;

use crate::config::AlgorithmKeyError;
use crate::networks::NetworkError;

/// Why an algorithm cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// No such name in the registry.
    #[error("unknown algorithm `{name}`{suggestion}; known are {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// What to write instead, where that is known; follows the name directly.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// A program added an algorithm under another name than the algorithm gives itself.
    #[error("the algorithm that was added as `{name}` calls itself `{other}`: let both names be the same")]
    Misnamed {
        /// Name under which it was added.
        name: String,
        /// Name that it gives itself.
        other: &'static str,
    },
    /// The algorithm publishes something else than the parameters of its network.
    #[error("{algorithm} publishes {published} values; weights files hold the {parameters} parameters of its network: publish those alone")]
    Published {
        /// Algorithm.
        algorithm: &'static str,
        /// Values that it publishes.
        published: usize,
        /// Parameters of its network.
        parameters: usize,
    },
    /// A key that the algorithm does not know, or a value that it does not take.
    #[error(transparent)]
    Key(#[from] AlgorithmKeyError),
    /// A value that the algorithm refuses for this environment, or that an algorithm of the program's own refuses.
    #[error("{reason}")]
    Refused {
        /// The path of the key, such as `learner.batch_size`.
        key: &'static str,
        /// What is wrong, what is allowed, and what to do.
        reason: String,
    },
    /// The algorithm needs another kind of action.
    #[error(
        "{algorithm} needs {needed} actions and `{environment}` has {found} ones; take another environment, or algorithm.name = {advice}"
    )]
    ActionSpace {
        /// Algorithm.
        algorithm: &'static str,
        /// Environment.
        environment: String,
        /// The kind it needs.
        needed: &'static str,
        /// The kind there is.
        found: &'static str,
        /// Algorithms that fit.
        advice: &'static str,
    },
    /// The actions have no range to scale to.
    #[error(
        "`{environment}` does not bound element {index} of its actions ({low} to {high}); {algorithm} needs finite bounds: clip or \
         scale the actions in the environment"
    )]
    Unbounded {
        /// Algorithm.
        algorithm: &'static str,
        /// Environment.
        environment: String,
        /// Element without a finite bound.
        index: usize,
        /// Lower bound of that element.
        low: f32,
        /// Upper bound of that element.
        high: f32,
    },
    /// Actors are to compute temporal-difference errors, and the algorithm's actors cannot.
    #[error("replay.initial_priority = \"td_error\" needs actors that compute action values, and those of {algorithm} do not; use \"max\"")]
    NoActorErrors {
        /// Algorithm.
        algorithm: &'static str,
    },
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl AlgorithmError {
    /// Whether no algorithm has the name that was asked for.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// The key of the configuration that has to change.
    pub fn key(&self) -> &str {
        match self {
            Self::Unknown { .. } | Self::Misnamed { .. } | Self::Published { .. } => "algorithm.name",
            Self::Key(error) => &error.key,
            Self::Refused { key, .. } => key,
            Self::ActionSpace { .. } | Self::Unbounded { .. } => "environment.id",
            Self::NoActorErrors { .. } => "replay.initial_priority",
            Self::Network(error) if error.is_about_convolutions() => "network.convolutions",
            Self::Network(_) => "network.hidden",
        }
    }
}
