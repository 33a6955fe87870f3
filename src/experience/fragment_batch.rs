//! A batch of fragments, step by step.

use super::fragment::{ACTIONS, AGES, FLAGS, FRAMES, FragmentShape, LENGTH, LOG_PROBABILITIES, REWARDS};
use super::transition::is_terminated;
use crate::replay::Batch;
use crate::values::{Values, ValuesMut};

/// A batch of fragments; a step is named by its fragment and its place there.
#[derive(Clone, Copy)]
pub struct FragmentBatch<'b> {
    shape: &'b FragmentShape,
    frames: Values<'b>,
    actions: &'b [u32],
    rewards: &'b [f32],
    flags: &'b [i32],
    log_probabilities: &'b [f32],
    ages: &'b [i32],
    lengths: &'b [i32],
}

impl<'b> FragmentBatch<'b> {
    /// The fragments of `batch`, whose fields are those of [`FragmentShape::schema`].
    pub fn new(batch: &'b Batch, shape: &'b FragmentShape) -> Self {
        Self {
            shape,
            frames: batch.column(FRAMES).as_values(),
            actions: bytemuck::cast_slice(batch.column(ACTIONS).bytes()),
            rewards: batch.column(REWARDS).as_f32(),
            flags: batch.column(FLAGS).as_i32(),
            log_probabilities: batch.column(LOG_PROBABILITIES).as_f32(),
            ages: batch.column(AGES).as_i32(),
            lengths: batch.column(LENGTH).as_i32(),
        }
    }

    /// Steps of a fragment.
    pub fn length(&self, fragment: usize) -> usize {
        usize::try_from(self.lengths[fragment]).unwrap_or(0).clamp(1, self.shape.steps)
    }

    /// Write the observation before a step into `observation`; if `step` is the length of the fragment, the
    /// one after its last step.
    pub fn write_observation(&self, fragment: usize, step: usize, observation: ValuesMut<'_>) {
        let at = fragment * self.shape.steps + step;
        // The observation after the last step is one step older, or begins another episode; nobody
        // asks for its value then.
        let age = if step < self.length(fragment) {
            self.ages[at]
        } else {
            self.ages[at - 1] + i32::from(!self.is_terminated(fragment, step - 1))
        };
        let frames = self.frames.row(fragment, self.shape.frames() * self.shape.frame_length);
        self.shape.write_observation(frames, step, usize::try_from(age).unwrap_or(0), observation);
    }

    /// The action of a step, in 32-bit lanes.
    pub fn action(&self, fragment: usize, step: usize) -> &'b [u32] {
        let lanes = self.shape.action_lanes;
        &self.actions[(fragment * self.shape.steps + step) * lanes..][..lanes]
    }

    /// The reward of a step.
    pub fn reward(&self, fragment: usize, step: usize) -> f32 {
        self.rewards[fragment * self.shape.steps + step]
    }

    /// Logarithm of the probability, or density, with which the action was drawn.
    pub fn log_probability(&self, fragment: usize, step: usize) -> f32 {
        self.log_probabilities[fragment * self.shape.steps + step]
    }

    /// Whether the problem ended with a step: nothing follows.
    pub fn is_terminated(&self, fragment: usize, step: usize) -> bool {
        is_terminated(self.flags[fragment * self.shape.steps + step])
    }
}
