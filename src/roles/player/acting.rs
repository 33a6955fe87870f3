//! A saved policy that acts on observations which somebody else brings.

use rand::SeedableRng;
use thiserror::Error;

use super::super::environments;
use super::{PlayError, SavedPolicy};
use crate::algorithms::{ActionBatch, Policy, Random};
use crate::catalogue::Catalogue;
use crate::environments::{Actions, EnvironmentSpec, ObservationOptions};
use crate::values::{ValueType, Values};

/// Why a policy cannot act on observations.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObservationError {
    /// The observations are of another type.
    #[error("the policy observes {expected:?}, not {found:?}")]
    Type {
        /// What it was trained on.
        expected: ValueType,
        /// What was brought.
        found: ValueType,
    },
    /// The values are no whole number of observations.
    #[error("an observation of {environment} has {expected} values {shape:?}, and {found} are no multiple of that")]
    Length {
        /// Environment.
        environment: String,
        /// Values of one observation.
        expected: usize,
        /// How they are arranged.
        shape: Vec<usize>,
        /// Values that were brought.
        found: usize,
    },
}

/// A policy with room for its outputs and actions.
pub struct ActingPolicy {
    environment: EnvironmentSpec,
    /// Frames that an observation consists of.
    frames: usize,
    policy: Box<dyn Policy>,
    /// How much its algorithm explored in the first environment when the policy was saved.
    exploration: f32,
    outputs: Vec<f32>,
    actions: ActionBatch,
    rows: usize,
    random: Random,
}

impl ActingPolicy {
    /// The policy in `saved`, for observations as its agent had them: stacked, and as floats, if the agent's were. Exploration draws
    /// from `seed`.
    ///
    /// # Errors
    /// The environment or the algorithm is not in `catalogue`, the environment cannot be examined, or the network does not fit it.
    pub fn new(catalogue: &Catalogue, saved: &SavedPolicy, seed: u64) -> Result<Self, PlayError> {
        let examined = catalogue.environments().examine(&environments::request(&saved.config))?;
        let options = environments::observation_options(catalogue, &saved.config);
        let environment = options.spec(&examined.spec)?;
        // Frames are not told apart any more in floats.
        let frames = ObservationOptions { as_floats: false, ..options }.spec(&examined.spec)?.observation.stack;
        let algorithm = catalogue.algorithms().build(&saved.config, &environment)?;
        let policy = saved.policy_of(&*algorithm)?;
        let exploration = algorithm.exploration(0, 1, saved.weights.metadata.environment_steps);
        let actions = ActionBatch::new(&environment.action, 0);
        Ok(Self { environment, frames, policy, exploration, outputs: Vec::new(), actions, rows: 0, random: Random::seed_from_u64(seed) })
    }

    /// What it observes and does.
    pub fn environment(&self) -> &EnvironmentSpec {
        &self.environment
    }

    /// Frames that an observation consists of, along its first dimension.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The actions for rows of observations as the environment takes them: the best, or drawn as its algorithm `explores`.
    ///
    /// # Errors
    /// The observations are of another type or size than those that it was trained on.
    pub fn choose(&mut self, observations: Values<'_>, explores: bool) -> Result<Actions<'_>, ObservationError> {
        let space = &self.environment.observation;
        let found = observations.value_type();
        if found != space.element {
            return Err(ObservationError::Type { expected: space.element, found });
        }
        if !observations.len().is_multiple_of(space.len()) {
            return Err(ObservationError::Length {
                environment: self.environment.id.clone(),
                expected: space.len(),
                shape: space.shape.clone(),
                found: observations.len(),
            });
        }
        let rows = observations.len() / space.len();
        if rows != self.rows {
            self.rows = rows;
            self.outputs.resize(rows * self.policy.outputs(), 0.0);
            self.actions = ActionBatch::new(&self.environment.action, rows);
        }
        let exploration = if explores { self.exploration } else { 0.0 };
        self.policy.infer(observations, rows, &mut self.outputs);
        for (row, outputs) in self.outputs.chunks_exact(self.policy.outputs()).enumerate() {
            self.policy.choose(outputs, exploration, &mut self.random, self.actions.row_mut(row));
        }
        Ok(self.actions.for_environments())
    }
}
