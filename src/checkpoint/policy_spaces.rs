//! What a policy observes and does, as its file says it: whoever acts with it needs no environment for that.

use serde::{Deserialize, Serialize};

use crate::environments::{ActionArrays, ActionSpace, EnvironmentSpec, ObservationSpace};
use crate::networks::{InputSpec, NetworkSpec};
use crate::values::ValueType;

/// What a policy observes and does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicySpaces {
    /// One observation.
    pub observation: InputSpec,
    /// How many frames an observation consists of, along its first dimension.
    pub frames: usize,
    /// Its actions, as the environment takes them.
    pub action: ActionSpace,
    /// The arrays for which the indices of its actions stand, if its environment takes arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_arrays: Option<ActionArrays>,
}

impl PolicySpaces {
    /// Those of an agent that sees an environment as `spec` says. `None` for bytes that are seen as floats: their frames are not told apart
    /// in `spec` ([`ObservationSpace::stack`]).
    pub fn of(spec: &EnvironmentSpec) -> Option<Self> {
        let ObservationSpace { element, shape, stack, .. } = &spec.observation;
        let are_bytes_as_floats = *element == ValueType::F32 && spec.observation.has_bounds(0.0, 255.0);
        let observation = InputSpec { element: *element, shape: shape.clone() };
        let (action, action_arrays) = (spec.action.clone(), spec.action_arrays.clone());
        (!are_bytes_as_floats).then_some(Self { observation, frames: *stack, action, action_arrays })
    }

    /// Whether a `network` can have as many inputs and outputs as this takes.
    pub fn fit(&self, network: &NetworkSpec) -> bool {
        let inputs = self.observation.shape.iter().try_fold(1_usize, |values, &length| values.checked_mul(length));
        let outputs = match (&self.action, &self.action_arrays) {
            (ActionSpace::Discrete { n }, None) => *n,
            (ActionSpace::Discrete { n }, Some(arrays)) if arrays.combinations() == Some(*n) => *n,
            (ActionSpace::Box { low, high }, None) if low.len() == high.len() => low.len(),
            _ => return false,
        };
        let first = self.observation.shape.first().copied().unwrap_or(1);
        let has_whole_frames = self.frames > 0 && first.is_multiple_of(self.frames);
        inputs == Some(network.inputs()) && has_whole_frames && (1..=network.outputs()).contains(&outputs)
    }
}
