//! A saved policy that acts on observations which somebody else brings.

use rand::SeedableRng;
use thiserror::Error;

use super::super::configured_environment;
use super::saved::check_code;
use super::{PlayError, SavedPolicy};
use crate::algorithms::{ActionBatch, Policy, Random};
use crate::catalogue::Catalogue;
use crate::checkpoint::{PolicySpaces, PolicyWeights};
use crate::environments::{Actions, EnvironmentSpec, ObservationOptions, ObservationSpace};
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
    /// The environment of the policy in `saved`, as its file says. If that does not say it, the environment is examined: one in Python in
    /// a process of its own, which takes a while.
    ///
    /// # Errors
    /// The environment would have to be examined, and is not in `catalogue`, cannot be, or is code that the weights alone name.
    pub fn of(catalogue: &Catalogue, saved: &SavedPolicy) -> Result<Self, PlayError> {
        let PolicyWeights { spec: network, metadata, .. } = &saved.weights;
        if let Some(spaces) = metadata.spaces.as_ref().filter(|spaces| spaces.fit(network)) {
            return Ok(Self { spec: spec_of(&metadata.environment, spaces), frames: spaces.frames });
        }
        let request = configured_environment::evaluation_request(&saved.config)?;
        let examined = check_code(&saved.config, saved.may_run_code).and_then(|()| catalogue.environments().examine(&request));
        let examined = examined.map_err(|source| PlayError::Unsaid { path: saved.path.clone(), source })?;
        let options = configured_environment::observation_options(catalogue, &saved.config);
        let spec = options.spec(&examined.spec)?;
        // Frames are not told apart any more in floats.
        let frames = ObservationOptions { as_floats: false, ..options }.spec(&examined.spec)?.observation.stack;
        Ok(Self { spec, frames })
    }
}

/// The spec of the environment called `id` that a policy with these `spaces` sees. What else it says, nobody needs who only acts.
fn spec_of(id: &str, spaces: &PolicySpaces) -> EnvironmentSpec {
    let PolicySpaces { observation, frames, action, action_arrays } = spaces;
    let shape = &observation.shape;
    let whole = match observation.element {
        ValueType::U8 => ObservationSpace::bytes(shape),
        ValueType::F32 => ObservationSpace { shape: shape.clone(), ..ObservationSpace::unbounded(shape.iter().product()) },
    };
    let observation = ObservationSpace { stack: *frames, ..whole };
    let (time_limit_steps, reward_threshold) = (None, None);
    let (id, action, action_arrays) = (id.to_owned(), action.clone(), action_arrays.clone());
    EnvironmentSpec { id, observation, action, time_limit_steps, reward_threshold, frame_stack: 1, action_arrays }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::WeightsMetadata;
    use crate::config::Config;
    use crate::environments::{self, ActionArrays, ActionSpace};
    use crate::networks::{Head, InputSpec, NetworkSpec};

    fn saved(environment: &str, spaces: Option<PolicySpaces>) -> SavedPolicy {
        let spec = NetworkSpec::perceptron(4, &[8], Head::Linear { outputs: 2 });
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: environment.into(), spaces, ..WeightsMetadata::default() };
        let weights = PolicyWeights { parameters: spec.initialise(1), spec, metadata };
        let mut config = Config::for_environment(environment);
        (config.network.hidden, config.network.dueling) = (vec![8], false);
        SavedPolicy { path: "policy.safetensors".into(), checkpoint: None, instead_of_best: false, weights, config, may_run_code: true }
    }

    #[test]
    fn a_policy_acts_without_its_environment_if_its_file_says_what_that_shows_and_takes() {
        let catalogue = Catalogue::default();
        let spaces = PolicySpaces::of(&environments::spec("CartPole-v1").unwrap()).unwrap();
        let known = saved("Gone-v0", Some(spaces.clone()));
        let environment = ObservedEnvironment::of(&catalogue, &known).unwrap();
        assert_eq!((environment.frames, &*environment.spec.observation.shape), (1, &[4][..]));
        let mut policy = ActingPolicy::new(&catalogue, &known, &environment.spec, 1, 0).unwrap();
        assert!(matches!(policy.choose(Values::F32(&[0.0; 4]), false), Ok(Actions::Discrete([0 | 1]))));

        let switches = |number| ActionArrays { counts: vec![2; number], start: vec![0; number], shape: vec![number], dtype: "int8".into() };
        let of_arrays = saved("Gone-v0", Some(PolicySpaces { action_arrays: Some(switches(1)), ..spaces.clone() }));
        assert_eq!(ObservedEnvironment::of(&catalogue, &of_arrays).unwrap().spec.action_arrays, Some(switches(1)));

        let others = [
            None,
            Some(PolicySpaces { action: ActionSpace::Discrete { n: 3 }, ..spaces.clone() }),
            Some(PolicySpaces { frames: 0, ..spaces.clone() }),
            Some(PolicySpaces { action_arrays: Some(switches(2)), ..spaces.clone() }),
            Some(PolicySpaces { action_arrays: Some(ActionArrays { shape: vec![2], ..switches(1) }), ..spaces.clone() }),
            Some(PolicySpaces { action: ActionSpace::Box { low: vec![0.0], high: vec![] }, ..spaces.clone() }),
            Some(PolicySpaces { observation: InputSpec { element: ValueType::F32, shape: vec![usize::MAX, 4] }, ..spaces }),
        ];
        for spaces in others {
            let refusal = ObservedEnvironment::of(&catalogue, &saved("Gone-v0", spaces.clone())).unwrap_err().to_string();
            let is_told = refusal.starts_with("policy.safetensors does not say what its policy observes") && refusal.contains("`Gone-v0`");
            assert!(is_told, "{spaces:?}: {refusal}");
            assert_eq!(ObservedEnvironment::of(&catalogue, &saved("CartPole-v1", spaces)).unwrap().spec.observation.len(), 4);
        }
    }

    #[test]
    fn the_frames_of_bytes_that_are_seen_as_floats_are_asked_of_the_environment() {
        let bytes = EnvironmentSpec { observation: ObservationSpace::bytes(&[4, 8, 8]), ..environments::spec("CartPole-v1").unwrap() };
        let seen = |as_floats| ObservationOptions { frames_per_observation: 4, frame_stack: Some(1), as_floats }.spec(&bytes).unwrap();
        assert_eq!(PolicySpaces::of(&seen(false)).unwrap().frames, 4);
        assert_eq!(PolicySpaces::of(&seen(true)), None);
    }
}
