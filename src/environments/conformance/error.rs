//! Which rule an environment broke.

use thiserror::Error;

use crate::environments::EnvironmentError;

/// Which rule an environment broke. Steps are counted from 1 in each episode; 0 is the reset.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// The environment failed where the rules let it succeed.
    #[error("the environment failed during {during}: {source}")]
    Environment {
        /// What was attempted.
        during: &'static str,
        /// Its error.
        source: EnvironmentError,
    },
    /// The spec contradicts itself.
    #[error("the spec is inconsistent: {reason}")]
    InconsistentSpec {
        /// What contradicts what.
        reason: String,
    },
    /// Two instances describe themselves differently.
    #[error("two instances made alike have different specs: make the spec a constant of the environment")]
    SpecChanges,
    /// A step before the first reset succeeded.
    #[error("a step before the first reset succeeded: refuse it with NeedsReset")]
    SteppedBeforeReset,
    /// A step after the end of an episode succeeded.
    #[error("a step after the episode ended in step {step} succeeded: refuse it with NeedsReset")]
    SteppedAfterEnd {
        /// Length of the episode.
        step: u32,
    },
    /// Something was refused with another error than the rule asks for.
    #[error("{situation} has to be refused with {expected}, but the error was: {source}")]
    WrongRefusal {
        /// What was attempted.
        situation: String,
        /// Name of the error that the rule asks for.
        expected: &'static str,
        /// The error that came.
        source: EnvironmentError,
    },
    /// A value of an observation is NaN or was never written.
    #[error("value {index} of the observation at step {step} is NaN or was not written: write all of `observation`")]
    ObservationNotWritten {
        /// Position in the observation.
        index: usize,
        /// Step of the episode.
        step: u32,
    },
    /// A value of an observation lies outside the observation space.
    #[error("value {index} of the observation at step {step} is {value}, outside {low} .. {high}: widen the space or fix the value")]
    ObservationOutOfBounds {
        /// Position in the observation.
        index: usize,
        /// Step of the episode.
        step: u32,
        /// What it was.
        value: f32,
        /// Smallest allowed.
        low: f32,
        /// Largest allowed.
        high: f32,
    },
    /// A value of an observation is infinite.
    #[error("value {index} of the observation at step {step} is {value}: observations have to be finite, also within infinite bounds")]
    ObservationNotFinite {
        /// Position in the observation.
        index: usize,
        /// Step of the episode.
        step: u32,
        /// What it was.
        value: f32,
    },
    /// A reward is NaN or infinite, or would be as a 32-bit float.
    #[error("the reward of step {step} is {reward}: rewards have to be finite, as 32-bit floats")]
    RewardNotFinite {
        /// Step of the episode.
        step: u32,
        /// What it was.
        reward: f64,
    },
    /// An episode went on at its time limit, or ended there without being marked as truncated.
    #[error("step {step} reached the time limit without `truncated` (`terminated` is {terminated}): a time limit truncates")]
    TimeLimitDoesNotTruncate {
        /// Step of the episode, which is the time limit.
        step: u32,
        /// The other flag.
        terminated: bool,
    },
    /// Every episode that reached the time limit was marked as terminated as well.
    #[error("all {episodes} episodes that reached the limit of {limit_steps} steps were terminated too: a time limit only truncates")]
    TimeLimitTerminates {
        /// How many.
        episodes: usize,
        /// The time limit.
        limit_steps: u32,
    },
    /// The same seed and actions led to something else.
    #[error("seed {seed} gave another trajectory {situation}, first at call {call}: draw all randomness from the seeded generator")]
    NotDeterministic {
        /// The seed.
        seed: u64,
        /// Compared with what.
        situation: &'static str,
        /// Position among the resets and steps, from 0.
        call: usize,
    },
    /// All seeds led to the same trajectory.
    #[error("seeds 0 to {last} all gave the same trajectory: use the seed")]
    SeedIgnored {
        /// The last seed tried.
        last: u64,
    },
    /// A reset without a seed restarted the random numbers.
    #[error("a reset without a seed repeated the first episode of seed {seed}: it has to continue the generator")]
    ResetRestartsGenerator {
        /// The seed.
        seed: u64,
    },
    /// An invalid action was taken.
    #[error("the invalid action {action} was taken: refuse it with InvalidAction")]
    AcceptedInvalidAction {
        /// The action, printed.
        action: String,
    },
    /// An invalid action was refused but changed the episode.
    #[error("a refused action changed the episode, first seen at call {call}: check the action before anything else")]
    RefusalChangesEpisode {
        /// Position among the resets and steps, from 0.
        call: usize,
    },
    /// A finite action outside the bounds was refused.
    #[error("the action {action}, which lies outside the bounds, was refused: clip it ({source})")]
    RefusedActionOutsideBounds {
        /// The action, printed.
        action: String,
        /// The refusal.
        source: EnvironmentError,
    },
}
