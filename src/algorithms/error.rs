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
        /// What was asked for.
        name: String,
        /// What to write instead, where that is known; follows the name directly.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// An algorithm that a program adds under one name, and that says another of itself.
    #[error("the algorithm that was added as `{name}` calls itself `{other}`: let both names be the same")]
    Misnamed {
        /// Under which it was added.
        name: String,
        /// What it says.
        other: &'static str,
    },
    /// An algorithm that publishes something else than the parameters of its network.
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
    /// A value that an algorithm refuses for this environment, or that one of a program's own refuses.
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
        "`{environment}` does not bound element {index} of its actions ({low} to {high}); {algorithm} needs finite bounds: clip or scale the actions in the environment"
    )]
    Unbounded {
        /// Algorithm.
        algorithm: &'static str,
        /// Environment.
        environment: String,
        /// Element without a finite bound.
        index: usize,
        /// Its lower bound.
        low: f32,
        /// Its upper bound.
        high: f32,
    },
    /// The actors cannot compute what the configuration asks for.
    #[error("replay.initial_priority = \"td_error\" needs action values in the actor, which {algorithm} has not; use \"max\"")]
    NoActorErrors {
        /// Algorithm.
        algorithm: &'static str,
    },
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl AlgorithmError {
    /// Whether nobody knows the algorithm by that name.
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
