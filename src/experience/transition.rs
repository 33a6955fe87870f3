//! The fields of a transition that off-policy algorithms share, and how the flags are packed.

use crate::environments::{ActionSpace, EnvironmentSpec};
use crate::replay::{Element, Field, Schema};

/// Observation in which the transition starts.
pub const OBSERVATION: usize = 0;
/// Action taken in that observation.
pub const ACTION: usize = 1;
/// Discounted sum of the rewards.
pub const REWARD: usize = 2;
/// Discount of what follows.
pub const DISCOUNT: usize = 3;
/// How the transition ended, as [`flags`].
pub const FLAGS: usize = 4;
/// Observation in which the transition ends.
pub const NEXT_OBSERVATION: usize = 5;

/// The fields that hold observations.
pub(super) const OBSERVATIONS: &[usize] = &[OBSERVATION, NEXT_OBSERVATION];
/// The fields that hold rewards.
pub(super) const REWARDS: &[usize] = &[REWARD];

/// Bytes from which a frame that is not stacked is stored once for the two transitions that have it.
const LEAST_FRAME_BYTES: usize = 512;

const TERMINATED: i32 = 1;
const TRUNCATED: i32 = 2;

/// Fields of a transition in `environment`. Every element of a continuous action is within [-1, 1].
pub fn schema(environment: &EnvironmentSpec) -> Schema {
    let observation = &environment.observation;
    let (action, lanes) = action_lanes(&environment.action);
    let element = Element::from(observation.element);
    let length = observation.len();
    let stack = observation.stack;
    // Even a frame that is not stacked is in two transitions. A large one is worth storing once, with its name in both.
    let is_shared = stack > 1 || element == Element::U8 && length >= LEAST_FRAME_BYTES;
    let field = |name| match is_shared {
        false => Field::new(name, element, length).shaped(&observation.shape),
        true => Field::stacked(name, element, length / stack, stack).shaped(&observation.shape),
    };
    Schema::new(vec![
        field("observation"),
        Field::new("action", action, lanes),
        Field::new("reward", Element::F32, 1),
        Field::new("discount", Element::F32, 1),
        Field::new("flags", Element::I32, 1),
        field("next_observation"),
    ])
}

/// The type of an action's 32-bit lanes in a row, and how many there are.
pub(super) fn action_lanes(action: &ActionSpace) -> (Element, usize) {
    match action {
        ActionSpace::Discrete { .. } => (Element::I32, 1),
        ActionSpace::Box { low, .. } => (Element::F32, low.len()),
    }
}

/// How a step ended, in two bits: terminated in bit 0, truncated in bit 1.
pub fn flags(terminated: bool, truncated: bool) -> i32 {
    (i32::from(terminated) * TERMINATED) | (i32::from(truncated) * TRUNCATED)
}

/// Whether the episode was cut off after the transition.
pub fn is_truncated(flags: i32) -> bool {
    flags & TRUNCATED != 0
}

/// Whether the problem ended with the transition, so that nothing follows. A truncated one is followed by more.
pub fn is_terminated(flags: i32) -> bool {
    flags & TERMINATED != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::registry;

    #[test]
    fn the_constants_name_the_fields() {
        for schema in ["CartPole-v1", "Pendulum-v1"].map(|id| schema(&registry::spec(id).unwrap())) {
            for (name, position) in [
                ("observation", OBSERVATION),
                ("action", ACTION),
                ("reward", REWARD),
                ("discount", DISCOUNT),
                ("flags", FLAGS),
                ("next_observation", NEXT_OBSERVATION),
            ] {
                assert_eq!(schema.position(name), Some(position));
            }
        }
    }

    #[test]
    fn only_termination_ends_the_problem() {
        assert!(is_terminated(flags(true, false)) && is_terminated(flags(true, true)));
        assert!(!is_terminated(flags(false, true)) && !is_terminated(flags(false, false)));
    }
}
