//! Environments: the trait, the spaces, and the native ones.

use thiserror::Error;

pub mod spaces;

pub use spaces::{ActionSpace, ObservationSpace};

/// What is fixed about an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvironmentSpec {
    /// Registry name, for instance `CartPole-v1`.
    pub id: String,
    /// What is observed.
    pub observation: ObservationSpace,
    /// What can be done.
    pub action: ActionSpace,
    /// Steps after which an episode is truncated.
    pub time_limit_steps: Option<u32>,
}

/// One action for one environment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Index into a discrete space.
    Discrete(usize),
    /// Values of a box space, as many as its elements.
    Continuous(&'a [f32]),
}

/// Result of a step, besides the observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Reward of the step.
    pub reward: f64,
    /// The episode ended inside the problem: nothing follows, the value of the next state is zero.
    pub terminated: bool,
    /// The episode was cut off from outside (time limit): the next state has a value.
    pub truncated: bool,
}

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
    /// A step before the first reset or after the end of an episode.
    #[error("`{id}` was stepped {when}: call reset first")]
    NeedsReset {
        /// Environment.
        id: String,
        /// `before its first reset` or `after its episode ended`.
        when: &'static str,
    },
}

/// One environment, in the sense of Gymnasium: `reset`, then `step` until terminated or truncated, then `reset` again.
pub trait Environment {
    /// What is fixed about it.
    fn spec(&self) -> &EnvironmentSpec;

    /// Start an episode and write its first observation (`spec().observation.len()` values).
    /// A seed restarts the environment's random numbers, exactly as Gymnasium's `reset(seed=...)`.
    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) -> Result<(), EnvironmentError>;

    /// Take one step and write the observation that follows it.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvironmentError>;
}
