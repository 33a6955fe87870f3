//! Algorithms: what an actor needs (a [`Policy`]), what a learner needs (a [`Learning`]), and what the supervisor needs
//! to plan a run (an [`Algorithm`]). One file, one algorithm.

// The algorithms.
mod appo;
mod ddpg; // a variant of `deterministic`
mod deterministic;
pub mod dqn;
mod ppo;
mod sac;
mod td3; // a variant of `deterministic`

// Parts of off-policy ones.
mod critics;
mod halves; // two learners share one algorithm
mod policy_and_critics;
mod squashed_gaussian;
mod temporal_difference;

// Parts of PPO and APPO.
mod auto_encoder;
mod distribution;
mod policy_and_value;
mod policy_gradient;
mod step_sums;
mod surrogate;
mod trained_policy;
mod v_trace;
mod value_network;

// What is put around them.
mod blockwise;
mod normalised;
pub mod statistics; // what `normalised` scales by

// What they share.
pub mod action;
pub mod conformance;
mod error;
pub mod exploration;
pub mod registry;
#[cfg(test)]
mod standardised;
mod state;
mod trained;

pub use crate::experience::Random;
pub use action::{ActionBatch, ActionMut, continuous_actions, discrete_actions, greedy, uniform};
pub(crate) use auto_encoder::LATENT;
pub use error::AlgorithmError;
pub use halves::{Half, Halved};
pub(crate) use policy_and_value::VALUE;
pub use state::{StateReader, StateWriter};
pub use statistics::{Normalisation, RunningStatistics, Statistics};
pub use temporal_difference::{GRADIENT_NORM, LOSS, Q_MEAN, bootstrap, take_mean, take_weighted_mean};
pub use trained::{Trained, WithTarget, adam_settings};

use crate::experience::{Choice, Experience};
use crate::metrics::{Metric, Share};
use crate::networks::{Network, NetworkSpec};
use crate::replay::{Batch, Schema};
use crate::values::Values;

/// How many values an algorithm publishes, learns and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Values that learners publish for actors and the evaluator ([`Learning::published`]): as many as
    /// [`Algorithm::network`] has parameters.
    pub published: usize,
    /// Parameters that are learned: the length of a gradient.
    pub learned: usize,
    /// Values of a learner's whole state: what [`Learning::save`] writes.
    pub state: usize,
}

/// An algorithm in an environment: everything that is fixed before a process starts, and what each process builds.
pub trait Algorithm {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// What actors make of their steps, and where learners get their batches from.
    fn experience(&self) -> &dyn Experience;

    /// Fields of a row of the replay.
    fn schema(&self) -> Schema {
        self.experience().schema()
    }

    /// What learners say of their updates: everything that they add to the tally of a [`Share`].
    fn metrics(&self) -> &'static [Metric];

    /// The network that acts: its parameters are what learners publish, and what a weights file holds. If observations
    /// are normalised, a wrapper around the algorithm appends their scaling. One that is impossible is refused once the
    /// algorithm has been built; a constructor that counts its parameters calls [`NetworkSpec::validate`] before.
    fn network(&self) -> &NetworkSpec;

    /// How many values are published, learned and kept.
    fn sizes(&self) -> Sizes;

    /// The most values that one half of the algorithm hands over to the other ([`Halved`]); 0 if it has no halves.
    fn handed_over(&self) -> usize {
        0
    }

    /// What is normalised.
    fn normalisation(&self) -> Normalisation {
        Normalisation::default()
    }

    /// How much environment number `environment` of `of` in the run explores after `env_steps`: what
    /// [`Policy::choose`] is given.
    fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32;

    /// What an actor or evaluator acts with.
    ///
    /// # Errors
    /// The policy's network cannot be built.
    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError>;

    /// What a learner learns with; every learner starts from the same parameters, drawn from `seed`.
    ///
    /// # Errors
    /// The learner's networks cannot be built with the configured engine, on the learner's device.
    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError>;
}

/// Acting: from observations to a network's outputs, and from these to actions.
pub trait Policy: Send {
    /// The network that acts: that of [`Algorithm::network`]. Only the provided methods ask for it.
    fn network(&mut self) -> &mut dyn Network;

    /// Use these published values from now on.
    fn set_parameters(&mut self, published: &[f32]) {
        self.network().set_parameters(published);
    }

    /// Numbers that [`Policy::infer`] gives per observation.
    fn outputs(&mut self) -> usize {
        self.network().spec().outputs()
    }

    /// The network's outputs for `rows` observations: `outputs` has `rows` times [`Policy::outputs`] values.
    fn infer(&mut self, observations: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.network().infer(observations, rows, outputs);
    }

    /// Choose an action from the outputs for one observation. With an exploration of 0 the
    /// policy acts as well as it can.
    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice;

    /// A random action, for the first steps of a run.
    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice;

    /// Value of a state, given the network's outputs for it; 0 if they do not tell it.
    fn state_value(&self, _outputs: &[f32]) -> f32 {
        0.0
    }
}

/// Learning: from a batch to a gradient, from a gradient to new parameters. The two are apart because learners add
/// their gradients up in between. [`conformance::check_algorithm`] tells whether it keeps the rules below.
pub trait Learning {
    /// What actors and the evaluator act with: the parameters of [`Algorithm::network`].
    fn published(&mut self) -> &[f32];

    /// Change a batch in place as learning needs it, for instance scale it. Called once for each batch that was
    /// drawn, however often it is learned from. Nobody may change the batch afterwards: results that were
    /// computed from it may be kept.
    fn prepare(&mut self, _batch: &mut Batch) {}

    /// Update what follows a schedule, now that the run has taken so many environment steps.
    /// Called before each gradient. Each learner counts for itself: what follows a schedule in [`Self::apply`] takes the
    /// [`Share::env_steps`] of the sum, which is the same for all.
    fn schedule(&mut self, _env_steps: u64) {}

    /// Write the gradient of the losses of `batch`, summed and not normalised, into `gradient`, which has
    /// [`Sizes::learned`] values; what it held before is overwritten. If one [`Half`] alone is learned, the values of
    /// the other half may stay as they are: [`Self::apply`] does not look at them.
    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share;

    /// Absolute temporal-difference errors of the last batch, in its order; empty if the algorithm has none.
    fn errors(&self) -> &[f32] {
        &[]
    }

    /// Apply the gradient that all learners' parts sum to, and complete the metrics in `total`. `gradient` has
    /// [`Sizes::learned`] values and may be changed in place, such as by [`take_mean`]: nobody reads it afterwards.
    ///
    /// All learners have to take the same step, bit for bit. So it may depend on the arguments and on what [`Self::save`]
    /// writes, and not on the rows, random numbers or steps that this learner alone saw. What all learn from their rows,
    /// such as a temperature, is one more value of the gradient.
    ///
    /// Returns the norm before clipping. With a norm that is not finite, since a part of the gradient is not, training has
    /// diverged: the learner is replaced by one that begins at the last published state, and the run ends if that happens
    /// again and again.
    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32;

    /// Write everything needed to go on later into `state`, which has [`Sizes::state`] values.
    fn save(&self, state: &mut [f32]);

    /// Go on from a state that [`Self::save`] wrote, in this process or another.
    fn restore(&mut self, state: &[f32]);

    /// Normalise batches, and what is published, with these statistics from now on.
    fn normalise_with(&mut self, _statistics: &Statistics) {}

    /// This learning as one that two processes can share by halves; `None` if the algorithm has no halves.
    fn halved(&mut self) -> Option<&mut dyn Halved> {
        None
    }
}
