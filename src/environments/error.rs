//! Why an environment could not be made, reset or stepped.

use thiserror::Error;

/// Why an environment could not be made, reset or stepped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// No such name in the registry.
    #[error("unknown environment `{id}`{suggestion}; known are {known}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// ` (did you mean ...?)` or nothing.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// An action that is not in the action space.
    #[error("`{id}` refused action {action}: it takes {expected}")]
    InvalidAction {
        /// Environment.
        id: String,
        /// The action, printed.
        action: String,
        /// The action space, printed.
        expected: String,
    },
    /// A batch of actions that does not fit the number of environments.
    #[error("{environments} environments `{id}` were given {given} action values: give {expected}, one action after another")]
    ActionCount {
        /// Environment.
        id: String,
        /// How many environments are stepped together.
        environments: usize,
        /// Values in the batch.
        given: usize,
        /// Values that were expected.
        expected: usize,
    },
    /// A step before the first reset or after the end of an episode.
    #[error("`{id}` was stepped {when}: call reset first")]
    NeedsReset {
        /// Environment.
        id: String,
        /// `before its first reset` or `after its episode ended`.
        when: &'static str,
    },
    /// An environment of a feature that was left out of this build.
    #[error("`{id}` needs the feature `{feature}`, which this build was made without: run `cargo xtask setup`, then build with it")]
    NotBuilt {
        /// Environment.
        id: String,
        /// The Cargo feature.
        feature: &'static str,
    },
    /// The description of a simulated body cannot be used.
    #[error("`{id}` cannot load its model {path}: {reason}. Fetch the models with `cargo xtask setup`, or name their folder in {variable}")]
    Model {
        /// Environment.
        id: &'static str,
        /// File of the model.
        path: String,
        /// Why it is of no use.
        reason: String,
        /// The environment variable that names another folder.
        variable: &'static str,
    },
    /// A shared library of another version than the one this program was built for.
    #[error("`{id}` needs {library} {expected} and {found} was loaded: run `cargo xtask setup` and build again")]
    LibraryVersion {
        /// Environment.
        id: &'static str,
        /// The library.
        library: &'static str,
        /// Its version that is needed.
        expected: &'static str,
        /// Its version that is there.
        found: String,
    },
    /// Nothing to step together.
    #[error("a vector of environments needs at least one environment, 0 were given")]
    EmptyVector,
    /// Environments of different kinds cannot share one matrix of observations.
    #[error("environment {index} of the vector is `{id}`, which does not match environment 0, `{first}`: give environments of one spec")]
    MixedVector {
        /// Position of the first that differs.
        index: usize,
        /// What is there.
        id: String,
        /// What the first one is.
        first: String,
    },
}
