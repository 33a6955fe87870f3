//! Algorithms: what an actor needs (a [`Policy`]), what a learner needs (a [`Learning`]), and what the supervisor needs to
//! plan a run (an [`Algorithm`]). One file, one algorithm.

pub mod action;
mod actor_critic;
mod blockwise;
mod critics;
mod ddpg;
mod deterministic;
pub mod dqn;
mod error;
pub mod exploration;
mod normalised;
pub mod registry;
mod sac;
mod squashed_gaussian;
mod state;
pub mod statistics;
mod td3;
mod trained;
pub mod transition;

pub use action::{ActionBatch, ActionMut};
pub use error::AlgorithmError;
pub use statistics::{Normalisation, RunningStatistics, Statistics};

use std::ops::AddAssign;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::networks::NetworkSpec;
use crate::replay::{Batch, Schema};

/// Random numbers of a process.
pub type Random = Xoshiro256PlusPlus;

/// How many values an algorithm needs where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Values that learners publish for those who act: [`Learning::published`].
    pub published: usize,
    /// Parameters that gradients are computed of.
    pub learned: usize,
    /// Values of a learner's whole state: [`Learning::save`].
    pub state: usize,
    /// Values that every actor publishes about what it has seen; 0 when nothing is normalised.
    pub statistics: usize,
}

/// An algorithm in an environment: everything that is fixed before a process starts, and what each process builds.
pub trait Algorithm {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Fields of a transition.
    fn schema(&self) -> Schema;

    /// The network that acts: its parameters come first among the published values.
    fn network(&self) -> &NetworkSpec;

    /// How many values are needed where.
    fn sizes(&self) -> Sizes;

    /// What is normalised.
    fn normalisation(&self) -> Normalisation {
        Normalisation::default()
    }

    /// How much environment number `environment` of `of` in the run explores after `env_steps`: what [`Policy::choose`] is given.
    fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32;

    /// What an actor or evaluator acts with.
    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError>;

    /// What a learner learns with; every learner starts from the same parameters, drawn from `seed`.
    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError>;
}

/// Acting: from observations to actions.
pub trait Policy {
    /// Use these published values from now on.
    fn set_parameters(&mut self, published: &[f32]);

    /// Numbers that [`Policy::infer`] gives per observation.
    fn outputs(&self) -> usize;

    /// The network's outputs for `rows` observations: `outputs` has `rows` times [`Policy::outputs`] values.
    fn infer(&mut self, observations: &[f32], rows: usize, outputs: &mut [f32]);

    /// Choose an action from the outputs for one observation; returns its value, as far as the outputs tell it (0 otherwise).
    /// With an exploration of 0 the policy acts as well as it can.
    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> f32;

    /// A random action, for the first steps of a run; returns its value as [`Policy::choose`] does.
    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> f32;

    /// Value of a state, given the outputs for it, as far as they tell it (0 otherwise).
    fn state_value(&self, outputs: &[f32]) -> f32;
}

/// What one learner found in its part of a batch. Sums are over its transitions; weights are not yet normalised, since
/// the largest weight is only known once all learners have spoken.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartialUpdate {
    /// Transitions in it.
    pub transitions: f64,
    /// Sum of the weighted losses.
    pub loss_sum: f64,
    /// Sum of the chosen actions' values.
    pub q_sum: f64,
    /// Largest importance weight.
    pub largest_weight: f64,
    /// Sum of the policy's losses; 0 where the policy has none of its own.
    pub policy_loss_sum: f64,
}

impl AddAssign for PartialUpdate {
    fn add_assign(&mut self, other: Self) {
        self.transitions += other.transitions;
        self.loss_sum += other.loss_sum;
        self.q_sum += other.q_sum;
        self.largest_weight = self.largest_weight.max(other.largest_weight);
        self.policy_loss_sum += other.policy_loss_sum;
    }
}

impl PartialUpdate {
    /// Turn the critics' summed gradient into that of the mean weighted loss; returns the factor.
    #[expect(clippy::cast_possible_truncation, reason = "a scale needs no more than an f32")]
    fn scale_critics(&self, gradient: &mut [f32]) -> f64 {
        let scale = 1.0 / (self.transitions * self.largest_weight);
        gradient.iter_mut().for_each(|value| *value *= scale as f32);
        scale
    }

    /// Turn the policy's summed gradient into that of the mean loss.
    #[expect(clippy::cast_possible_truncation, reason = "a scale needs no more than an f32")]
    fn scale_policy(&self, gradient: &mut [f32]) {
        gradient.iter_mut().for_each(|value| *value *= (1.0 / self.transitions) as f32);
    }
}

/// What an update did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UpdateReport {
    /// Mean weighted loss.
    pub loss: f64,
    /// Mean value of the chosen actions.
    pub q_mean: f64,
    /// Norm of the gradient before clipping; with critics, the largest of theirs. Not finite when any part of the gradient is not.
    pub gradient_norm: f64,
    /// Mean loss of the policy, where it has one of its own and was updated.
    pub policy_loss: Option<f64>,
    /// Entropy temperature, where there is one.
    pub entropy_temperature: Option<f64>,
}

/// Learning: from a batch to a gradient, from a gradient to new parameters. The two are apart because learners add
/// their gradients up in between.
pub trait Learning {
    /// What those who act need.
    fn published(&mut self) -> &[f32];

    /// Write the gradient of the summed, unnormalised losses of `batch` into `gradient`. The batch may be rescaled in place.
    fn gradient(&mut self, batch: &mut Batch, random: &mut Random, gradient: &mut [f32]) -> PartialUpdate;

    /// Absolute temporal-difference errors of the last batch, in its order.
    fn errors(&self) -> &[f32];

    /// Apply the gradient that all learners' parts sum to. `gradient` is scaled and clipped in place.
    fn apply(&mut self, gradient: &mut [f32], total: PartialUpdate, learning_rate: f32) -> UpdateReport;

    /// Write everything needed to go on later into `state`, which has [`Sizes::state`] values.
    fn save(&self, state: &mut [f32]);

    /// Go on from such a state.
    fn restore(&mut self, state: &[f32]);

    /// Normalise with these statistics from now on.
    fn observe(&mut self, _statistics: &Statistics) {}
}
