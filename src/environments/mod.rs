//! Environments: the trait, the spaces, the tasks, and stepping many of them in one call.
//!
//! Native are classic control and two games that are seen as images (`native`), and MuJoCo's tasks (`mujoco`). All but the games equal
//! `gymnasium.make(id)` of Gymnasium 1.4.0 bit for bit, seeded resets and time limits included, so that a score reached here means what
//! it means everywhere else. Any other of Gymnasium's, and a user's own, is stepped by [`python`], and so is the emulator of Atari's
//! games. [`limited()`], [`delayed()`] and [`ObservationOptions::of`] wrap an environment and change one thing of it (`wrappers`).
//!
//! They are made by [`registry::make`], and with arguments by [`EnvironmentRequest::make`].

// How environments are asked for.
pub(crate) mod ids; // what an id tells by itself, and which was meant
mod origin; // what makes environments of one kind
pub mod registry; // from an id to the environment
mod request; // an environment as a user asks for it

// Native environments.
#[cfg_attr(not(feature = "mujoco"), path = "mujoco/absent.rs")]
mod mujoco; // MuJoCo's tasks, on libmujoco
mod native; // classic control, and games that are seen as images
mod numpy; // NumPy's arithmetic, without which they would not equal Gymnasium's

// Environments that need Python.
mod atari; // games of the Atari 2600: the emulator in Python, preprocessing here
pub mod python; // Gymnasium's and a user's own

// What is put around environments.
mod vector; // many of them, stepped in one call
mod wrappers; // one of them, with one thing changed

// What all of them keep to.
pub mod conformance; // the rules, and whether an environment keeps them
mod error;
mod progress; // where an episode stands between two calls
mod spaces; // what is observed, and what can be done

// For people to look at.
mod drawing; // pictures
pub mod video;

pub use drawing::{Picture, bars as observed_as_bars};
pub use error::{EnvironmentError, Moment};
pub use native::{Dynamics, Native, NativeAction};
pub use numpy::{Generator, SeedSequence, derive_seed};
pub use registry::{Environments, make, names, spec};
pub use request::{EnvironmentRequest, Examined, Purpose};
pub use spaces::{Action, ActionArrays, ActionSpace, ObservationSpace};
pub use vector::{Actions, FinishedEpisode, VectorEnvironment};
pub use wrappers::{ObservationOptions, behind_floats, delayed, limited};

use crate::values::ValuesMut;

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
    /// Mean return at which the task counts as solved, where its authors named one.
    pub reward_threshold: Option<f64>,
    /// How many of the last observations tell enough for a decision, as far as the authors of the environment know. An agent sees so
    /// many, unless its configuration says otherwise.
    pub frame_stack: usize,
    /// The arrays for which the indices of its actions stand, if it takes such arrays: environments in Python turn one into the other.
    pub action_arrays: Option<ActionArrays>,
}

impl EnvironmentSpec {
    /// A spec with no time limit and no threshold, where a single observation tells enough for a decision and actions stand for no
    /// arrays.
    pub fn new(id: impl Into<String>, observation: ObservationSpace, action: ActionSpace) -> Self {
        Self { id: id.into(), observation, action, time_limit_steps: None, reward_threshold: None, frame_stack: 1, action_arrays: None }
    }

    /// The refusal of `action`, for implementations of [`Environment`].
    #[cold]
    pub fn invalid_action(&self, action: impl std::fmt::Display) -> EnvironmentError {
        EnvironmentError::InvalidAction { id: self.id.clone(), action: action.to_string(), expected: self.action.to_string() }
    }

    /// The refusal of a step, for implementations of [`Environment`].
    #[cold]
    pub fn needs_reset(&self, when: &'static str) -> EnvironmentError {
        EnvironmentError::NeedsReset { id: self.id.clone(), when }
    }

    /// Refuse an observation that no network can learn from.
    fn check_observation(&self, observation: &[f32], during: Moment) -> Result<(), EnvironmentError> {
        match observation.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(index) => Err(self.not_finite(format!("observation[{index}]"), f64::from(observation[index]), during)),
        }
    }

    /// Refuse a reward that no network can learn from, or that is none once it is an `f32`.
    fn check_reward(&self, reward: f64, during: Moment) -> Result<(), EnvironmentError> {
        if (reward as f32).is_finite() { Ok(()) } else { Err(self.not_finite("reward".into(), reward, during)) }
    }

    /// Refuse a score that no evaluation can be made of.
    fn check_score(&self, score: f64, during: Moment) -> Result<(), EnvironmentError> {
        if score.is_finite() { Ok(()) } else { Err(self.not_finite("score".into(), score, during)) }
    }

    #[cold]
    fn not_finite(&self, what: String, value: f64, during: Moment) -> EnvironmentError {
        EnvironmentError::NotFinite { id: self.id.clone(), what, value, during }
    }
}

/// Result of a step, besides the observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Reward of the step.
    pub reward: f64,
    /// The episode ended inside the problem: nothing follows, the value of the next state is zero.
    pub terminated: bool,
    /// The episode was cut off from outside (time limit): the next state has a value.
    /// Both flags are set when a step at the time limit also terminates, as in Gymnasium; then `terminated` decides.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode is over, for either reason.
    pub fn ended(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// What the end of an episode says of the task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// An episode is all there is: its rewards add up to its score.
    SumOfRewards,
    /// The episode was a part, and the task goes on in the next one: there is no score yet.
    Unfinished,
    /// The task is over.
    Finished {
        /// What it came to, in the task's own points.
        score: f64,
        /// Its length, over all episodes that were part of it.
        length_steps: u32,
    },
    /// The task would have gone on, and was cut off by [`limited`].
    CutOff {
        /// What it had come to: the sum of its rewards.
        score: f64,
        /// Its length until then, over all episodes that were part of it.
        length_steps: u32,
    },
}

/// One environment, in the sense of Gymnasium: `reset`, then `step` until terminated or truncated, then `reset` again.
///
/// A native task becomes one by [`Native`]; a wrapper is one around another ([`wrapped`](Environment::wrapped)).
///
/// [`conformance::check`] puts an implementation through the rules written here.
pub trait Environment {
    /// What is fixed about the environment.
    fn spec(&self) -> &EnvironmentSpec;

    /// Start an episode, whatever state the last one was in, and write its first observation.
    ///
    /// A seed restarts the environment's random numbers, exactly as Gymnasium's `reset(seed=...)`; without one they continue,
    /// and an environment that never had a seed takes one from the operating system.
    ///
    /// # Errors
    /// Whatever keeps the environment from starting an episode, such as an exception in Python.
    ///
    /// # Panics
    /// If `observation` does not hold `spec().observation.len()` values of its type.
    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError>;

    /// Take one step and write the observation that follows it.
    ///
    /// A refused action ([`EnvironmentError::InvalidAction`]) leaves the episode as it was. Before the first reset and after
    /// the end of an episode the answer is [`EnvironmentError::NeedsReset`].
    ///
    /// # Errors
    /// [`EnvironmentError::InvalidAction`], [`EnvironmentError::NeedsReset`], and whatever else keeps the environment from taking the
    /// step, such as an exception in Python.
    ///
    /// # Panics
    /// If `observation` does not hold `spec().observation.len()` values of its type.
    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError>;

    /// Draw the current state, for people to look at. All pictures of an environment have one size.
    ///
    /// # Errors
    /// [`EnvironmentError::NoPicture`] unless this method is overridden, as in all native environments, or the
    /// [`wrapped`](Self::wrapped) environment draws.
    /// [`EnvironmentError::NeedsReset`] if there is nothing to see before the first reset.
    fn picture(&self) -> Result<Picture, EnvironmentError> {
        match self.wrapped() {
            Some(environment) => environment.picture(),
            None => Err(EnvironmentError::NoPicture { id: self.spec().id.clone() }),
        }
    }

    /// What the episode that the last step ended says of the task: if a learner sees less than the task ([`Purpose::Training`]),
    /// the sum of its rewards says little. To be asked after a step that ended an episode, before the next reset.
    fn outcome(&self) -> Outcome {
        self.wrapped().map_or(Outcome::SumOfRewards, |environment| environment.outcome())
    }

    /// The environment that this one is made around, if there is one. Unless they are overridden, [`picture`](Self::picture) and
    /// [`outcome`](Self::outcome) ask it.
    fn wrapped(&self) -> Option<&dyn Environment> {
        None
    }
}
