//! The fields of a fragment: consecutive steps of one environment, across ends of episodes, with the frames that they
//! show stored once.
//!
//! Frame number `stack - 1 + t` is the newest that was seen before step `t`. The frames before number `stack - 1`
//! complete the first observation, and the last frame was seen after the last step. An observation is put
//! together from its newest frame, the frames before that, and its age in the episode: an episode begins with
//! copies of its first frame.

use super::transition::action_lanes;
use crate::environments::EnvironmentSpec;
use crate::replay::{Element, Field, Schema};
use crate::values::{ValueType, Values, ValuesMut};

/// The frames, one after another.
pub const FRAMES: usize = 0;
/// What was done in each step.
pub const ACTIONS: usize = 1;
/// Reward of each step.
pub const REWARDS: usize = 2;
/// How each step ended, as in [`super::transition`].
pub const FLAGS: usize = 3;
/// Logarithm of the probability, or density, with which each action was drawn.
pub const LOG_PROBABILITIES: usize = 4;
/// Steps of its episode before each step.
pub const AGES: usize = 5;
/// Steps in the fragment.
pub const LENGTH: usize = 6;
/// Number of updates in the parameters that chose the first action.
pub const PARAMETER_UPDATES: usize = 7;

/// Names of the fields, in the order of their numbers.
pub const FIELDS: [&str; 8] = ["frames", "actions", "rewards", "flags", "log_probabilities", "ages", "length", "parameter_updates"];

/// Sizes of the fragments of one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentShape {
    /// Most steps.
    pub steps: usize,
    /// Type of the numbers of an observation.
    pub element: ValueType,
    /// Numbers of one frame.
    pub frame_length: usize,
    /// Lengths of a frame's dimensions.
    frame_shape: Vec<usize>,
    /// Frames of one observation.
    pub stack: usize,
    /// 32-bit lanes of one action.
    pub action_lanes: usize,
    /// Type of an action's lanes.
    action: Element,
}

impl FragmentShape {
    /// Fragments of at most `steps` steps in `environment`. Observations share frames only if these are bytes,
    /// and it is known how they follow each other. Floats may be scaled after a batch was drawn, each by its
    /// place in the observation.
    pub fn new(steps: usize, environment: &EnvironmentSpec) -> Self {
        let observation = &environment.observation;
        let is_shared = observation.element == ValueType::U8 && observation.is_sliding;
        let stack = if is_shared { observation.stack } else { 1 };
        let (action, action_lanes) = action_lanes(&environment.action);
        let mut frame_shape = observation.shape.clone();
        if let Some(first) = frame_shape.first_mut() {
            *first /= stack;
        }
        Self { steps, element: observation.element, frame_length: observation.len() / stack, frame_shape, stack, action_lanes, action }
    }

    /// The fields of a row.
    pub fn schema(&self) -> Schema {
        let element = Element::from(self.element);
        let shape: Vec<usize> = [self.frames()].into_iter().chain(self.frame_shape.iter().copied()).collect();
        let numbers = |position: usize, element, length| Field::new(FIELDS[position], element, length);
        Schema::new(vec![
            numbers(FRAMES, element, self.frames() * self.frame_length).shaped(&shape),
            numbers(ACTIONS, self.action, self.steps * self.action_lanes).shaped(&[self.steps, self.action_lanes]),
            numbers(REWARDS, Element::F32, self.steps),
            numbers(FLAGS, Element::I32, self.steps),
            numbers(LOG_PROBABILITIES, Element::F32, self.steps),
            numbers(AGES, Element::I32, self.steps),
            numbers(LENGTH, Element::I32, 1),
            numbers(PARAMETER_UPDATES, Element::I64, 1),
        ])
    }

    /// Most frames of a fragment.
    pub fn frames(&self) -> usize {
        self.steps + self.stack
    }

    /// Numbers of one observation.
    pub fn observation_length(&self) -> usize {
        self.stack * self.frame_length
    }

    /// Bytes of one frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame_length * self.element.size_bytes()
    }

    /// Write the observation before step `step` of a fragment into `observation`. `age` counts the steps
    /// of the episode before it.
    pub fn write_observation(&self, frames: Values<'_>, step: usize, age: usize, observation: ValuesMut<'_>) {
        match (frames, observation) {
            (Values::F32(frames), ValuesMut::F32(observation)) => self.stack_up(frames, step, age, observation),
            (Values::U8(frames), ValuesMut::U8(observation)) => self.stack_up(frames, step, age, observation),
            _ => panic!("an observation of another type than its frames"),
        }
    }

    fn stack_up<T: Copy>(&self, frames: &[T], step: usize, age: usize, observation: &mut [T]) {
        let newest = step + self.stack - 1;
        for (back, place) in observation.chunks_exact_mut(self.frame_length).rev().enumerate() {
            let frame = newest - back.min(age);
            place.copy_from_slice(&frames[frame * self.frame_length..][..self.frame_length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ObservationOptions, ObservationSpace, registry};

    #[test]
    fn observations_are_put_together_from_frames_and_their_age_in_the_episode() {
        let observation = ObservationSpace { stack: 3, ..ObservationSpace::bytes(&[3, 1, 2]) };
        let environment = EnvironmentSpec { observation, ..registry::spec("CartPole-v1").unwrap() };
        let shape = FragmentShape::new(4, &environment);
        assert_eq!((shape.frames(), shape.observation_length(), shape.action_lanes), (7, 6, 1));
        let frames: Vec<u8> = (0..14).collect();
        let seen = |step, age| {
            let mut observation = [99; 6];
            shape.write_observation(Values::U8(&frames), step, age, (&mut observation).into());
            observation.map(|value| value / 2)
        };
        assert_eq!(seen(0, 70), [0, 0, 1, 1, 2, 2], "an episode that began before");
        assert_eq!(seen(2, 70), [2, 2, 3, 3, 4, 4]);
        assert_eq!(seen(2, 0), [4, 4, 4, 4, 4, 4], "one that begins here");
        assert_eq!(seen(3, 1), [4, 4, 4, 4, 5, 5], "one that has begun a step before");
    }

    #[test]
    fn observations_of_an_environment_that_stacks_frames_itself_are_kept_whole() {
        let alone = EnvironmentSpec { observation: ObservationSpace::bytes(&[2, 3]), ..registry::spec("CartPole-v1").unwrap() };
        let stack_of = |frames_per_observation, frame_stack| {
            let options = ObservationOptions { frames_per_observation, frame_stack: Some(frame_stack), as_floats: false };
            let seen = options.spec(&alone).unwrap();
            (seen.observation.stack, FragmentShape::new(4, &seen).stack)
        };
        assert_eq!(stack_of(1, 3), (3, 3), "stacked by Shoal alone");
        // Nobody knows how its frames follow on each other: the newest may come first, or all of them may be new.
        assert_eq!(stack_of(2, 1), (2, 1));
        assert_eq!(stack_of(2, 3), (6, 1));
    }
}
