//! Algorithms: what an actor needs (a [`Policy`]), what a learner needs (a [`Learning`]), and what the supervisor needs to
//! plan a run (an [`Algorithm`]). One file, one algorithm.

pub mod dqn;
pub mod exploration;
pub mod registry;
pub mod transition;

use rand_xoshiro::Xoshiro256PlusPlus;
use thiserror::Error;

use crate::networks::{MlpSpec, NetworkError};
use crate::replay::{Batch, Schema};

/// Random numbers of a process.
pub type Random = Xoshiro256PlusPlus;

/// Why an algorithm cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// No such name in the registry.
    #[error("unknown algorithm `{name}`; known are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The algorithm needs another kind of action.
    #[error("{algorithm} needs discrete actions and `{environment}` has continuous ones; choose another environment")]
    ActionSpace {
        /// Algorithm.
        algorithm: &'static str,
        /// Environment.
        environment: String,
    },
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// An algorithm in an environment: everything that is fixed before a process starts, and what each process builds.
pub trait Algorithm {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Fields of a transition.
    fn schema(&self) -> Schema;

    /// The network whose parameters the learners publish and the actors use.
    fn network(&self) -> &MlpSpec;

    /// What an actor or evaluator acts with.
    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError>;

    /// What a learner learns with; every learner starts from the same parameters, drawn from `seed`.
    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError>;
}

/// Acting: from observations to actions.
pub trait Policy {
    /// Use these parameters from now on.
    fn set_parameters(&mut self, parameters: &[f32]);

    /// Numbers that [`Policy::infer`] gives per observation.
    fn outputs(&self) -> usize;

    /// The network's outputs for `rows` observations: `outputs` has `rows` times [`Policy::outputs`] values.
    fn infer(&mut self, observations: &[f32], rows: usize, outputs: &mut [f32]);

    /// Choose an action from the outputs for one observation; returns it with its value.
    fn choose(&self, outputs: &[f32], exploration_rate: f32, random: &mut Random) -> (i32, f32);

    /// A random action, for the first steps of a run.
    fn random_action(&self, random: &mut Random) -> i32;

    /// Value of a state, given the outputs for it.
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
}

/// What an update did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UpdateReport {
    /// Mean weighted loss.
    pub loss: f64,
    /// Mean value of the chosen actions.
    pub q_mean: f64,
    /// Norm of the gradient before clipping.
    pub gradient_norm: f64,
}

/// Learning: from a batch to a gradient, from a gradient to new parameters. The two are apart because learners add
/// their gradients up in between.
pub trait Learning {
    /// Parameters to act with.
    fn parameters(&self) -> &[f32];

    /// Write the gradient of the summed, unnormalised loss of `batch` into `gradient`.
    fn gradient(&mut self, batch: &Batch, gradient: &mut [f32]) -> PartialUpdate;

    /// Absolute temporal-difference errors of the last batch, in its order.
    fn errors(&self) -> &[f32];

    /// Apply the gradient that all learners' parts sum to. `gradient` is scaled and clipped in place.
    fn apply(&mut self, gradient: &mut [f32], total: PartialUpdate, learning_rate: f32) -> UpdateReport;

    /// Everything needed to go on later: online and target parameters and Adam's two moments, and Adam's step count.
    fn state(&self) -> ([&[f32]; 4], u64);

    /// Go on from such a state.
    fn restore(&mut self, state: [&[f32]; 4], steps: u64);
}
