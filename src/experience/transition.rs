//! The fields of a transition that off-policy algorithms share, and how the flags are packed.

use crate::replay::{Element, Field, Schema};

/// Observation in which the transition starts.
pub const OBSERVATION: usize = 0;
/// Action taken there.
pub const ACTION: usize = 1;
/// Discounted sum of the rewards.
pub const REWARD: usize = 2;
/// Discount of what follows.
pub const DISCOUNT: usize = 3;
/// [`flags`].
pub const FLAGS: usize = 4;
/// Observation in which it ends.
pub const NEXT_OBSERVATION: usize = 5;

/// The fields that hold observations.
pub(super) const OBSERVATIONS: &[usize] = &[OBSERVATION, NEXT_OBSERVATION];
/// The fields that hold rewards.
pub(super) const REWARDS: &[usize] = &[REWARD];

const TERMINATED: i32 = 1;
const TRUNCATED: i32 = 2;

/// Fields of a transition with a discrete action.
pub fn discrete(observation_length: usize) -> Schema {
    schema(observation_length, Field::new("action", Element::I32, 1))
}

/// Fields of a transition with a continuous action, every element within [-1, 1].
pub fn continuous(observation_length: usize, action_length: usize) -> Schema {
    schema(observation_length, Field::new("action", Element::F32, action_length))
}

fn schema(observation_length: usize, action: Field) -> Schema {
    Schema::new(vec![
        Field::new("observation", Element::F32, observation_length),
        action,
        Field::new("reward", Element::F32, 1),
        Field::new("discount", Element::F32, 1),
        Field::new("flags", Element::I32, 1),
        Field::new("next_observation", Element::F32, observation_length),
    ])
}

/// Terminated in bit 0, truncated in bit 1: two facts to the very end.
pub fn flags(terminated: bool, truncated: bool) -> i32 {
    (i32::from(terminated) * TERMINATED) | (i32::from(truncated) * TRUNCATED)
}

/// Whether the problem ended with the transition, so that nothing follows. A truncated one is followed by more.
pub fn is_terminated(flags: i32) -> bool {
    flags & TERMINATED != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_name_the_fields() {
        for schema in [discrete(3), continuous(3, 2)] {
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
