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

/// The environment of a saved policy, for observations as its agent had them: stacked, and as floats, if the agent's were.
#[derive(Debug, Clone)]
pub struct ObservedEnvironment {
    /// What the policy observes and does.
    pub spec: EnvironmentSpec,
    /// Frames that an observation consists of, along its first dimension.
    pub frames: usize,
}

impl ObservedEnvironment {
    /// The environment of the policy in `saved`. One in Python is examined in a process of its own, which takes a while.
    ///
    /// # Errors
    /// The environment is not in `catalogue`, or cannot be examined.
    pub fn of(catalogue: &Catalogue, saved: &SavedPolicy) -> Result<Self, PlayError> {
        let examined = catalogue.environments().examine(&environments::request(&saved.config))?;
        let options = environments::observation_options(catalogue, &saved.config);
        let spec = options.spec(&examined.spec)?;
        // Frames are not told apart any more in floats.
        let frames = ObservationOptions { as_floats: false, ..options }.spec(&examined.spec)?.observation.stack;
        Ok(Self { spec, frames })
    }
}

/// A policy with room for its outputs and actions.
pub struct ActingPolicy {
    environment: EnvironmentSpec,
    policy: Box<dyn Policy>,
    /// How much its algorithm explored in the first environment when the policy was saved.
    exploration: f32,
    outputs: Vec<f32>,
    actions: ActionBatch,
    rows: usize,
    random: Random,
}

impl ActingPolicy {
    /// The policy in `saved`, in its `environment`. Exploration draws from `seed`; those of one seed and different `number`s, counted
    /// from 0, draw differently.
    ///
    /// # Errors
    /// The algorithm is not in `catalogue`, or the network does not fit the environment.
    pub fn new(
        catalogue: &Catalogue,
        saved: &SavedPolicy,
        environment: &EnvironmentSpec,
        seed: u64,
        number: usize,
    ) -> Result<Self, PlayError> {
        let algorithm = catalogue.algorithms().build(&saved.config, environment)?;
        let policy = saved.policy_of(&*algorithm)?;
        let exploration = algorithm.exploration(0, 1, saved.weights.metadata.environment_steps);
        let actions = ActionBatch::new(&environment.action, 0);
        let mut random = Random::seed_from_u64(seed);
        (0..number).for_each(|_| random.jump());
        Ok(Self { environment: environment.clone(), policy, exploration, outputs: Vec::new(), actions, rows: 0, random })
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
