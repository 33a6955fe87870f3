//! Stacks the last few observations of an environment, one of which alone does not tell enough: a picture of a moving ball,
//! for instance.

use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace, Step};
use crate::values::{ValueBuffer, ValuesMut};

/// Show the last `frames` observations of `environment` instead of one, the oldest first, along a first dimension; an observation that has
/// three dimensions already grows along its first. An episode begins with as many copies of its first observation, as in Gymnasium's
/// `FrameStackObservation`. One frame returns the environment unchanged.
///
/// (Mnih et al. 2015, "Human-level control through deep reinforcement learning", which stacks four.)
pub(super) fn stacked(environment: Box<dyn Environment>, frames: usize) -> Box<dyn Environment> {
    if frames <= 1 {
        return environment;
    }
    let spec = stacked_spec(environment.spec(), frames);
    let last = spec.observation.zeros();
    Box::new(Stacked { environment, spec, frames: last })
}

/// The spec of an environment with `spec` once its last `frames` observations are stacked.
pub(super) fn stacked_spec(spec: &EnvironmentSpec, frames: usize) -> EnvironmentSpec {
    if frames <= 1 {
        return EnvironmentSpec { frame_stack: 1, ..spec.clone() };
    }
    let one = &spec.observation;
    let shape = match one.shape.as_slice() {
        [channels, rest @ ..] if rest.len() >= 2 => [&[frames * channels], rest].concat(),
        shape => [&[frames], shape].concat(),
    };
    let observation = ObservationSpace {
        element: one.element,
        shape,
        stack: frames * one.stack,
        is_sliding: one.stack == 1,
        low: one.low.repeat(frames),
        high: one.high.repeat(frames),
    };
    EnvironmentSpec { observation, frame_stack: 1, ..spec.clone() }
}

struct Stacked {
    environment: Box<dyn Environment>,
    spec: EnvironmentSpec,
    /// The last observations, the oldest first.
    frames: ValueBuffer,
}

impl Stacked {
    /// Length of one frame.
    fn length(&self) -> usize {
        self.environment.spec().observation.len()
    }
}

impl Environment for Stacked {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, mut observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        let length = self.length();
        self.environment.reset(seed, self.frames.row_mut(0, length))?;
        match &mut self.frames {
            ValueBuffer::F32(values) => repeat_first(values, length),
            ValueBuffer::U8(values) => repeat_first(values, length),
        }
        observation.copy_from(self.frames.values());
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, mut observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let length = self.length();
        // Written where the oldest frame is, which then goes last: a refused action must leave the others as they are, and it does, since
        // a refusal writes nothing.
        let step = self.environment.step(action, self.frames.row_mut(0, length))?;
        match &mut self.frames {
            ValueBuffer::F32(values) => values.rotate_left(length),
            ValueBuffer::U8(values) => values.rotate_left(length),
        }
        observation.copy_from(self.frames.values());
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }
}

/// Fill `values` with copies of their first `length`.
fn repeat_first<T: Copy>(values: &mut [T], length: usize) {
    let (first, others) = values.split_at_mut(length);
    others.chunks_exact_mut(length).for_each(|frame| frame.copy_from_slice(first));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{conformance, registry};

    #[test]
    fn an_observation_is_the_last_frames_and_an_episode_begins_with_copies_of_its_first() -> Result<(), EnvironmentError> {
        let mut plain = registry::make("CartPole-v1")?;
        let mut environment = stacked(registry::make("CartPole-v1")?, 3);
        assert_eq!((environment.spec().observation.shape.as_slice(), environment.spec().observation.stack), (&[3, 4][..], 3));
        let (mut one, mut three) = (plain.spec().observation.zeros(), environment.spec().observation.zeros());
        plain.reset(Some(3), one.values_mut())?;
        environment.reset(Some(3), three.values_mut())?;
        let mut seen = vec![one.clone(), one.clone(), one.clone()];
        for step in 0..9 {
            for (offset, frame) in seen[seen.len() - 3..].iter().enumerate() {
                assert_eq!(three.values().row(offset, 4), frame.values(), "frame {offset} before step {step}");
            }
            plain.step(Action::Discrete(step % 2), one.values_mut())?;
            environment.step(Action::Discrete(step % 2), three.values_mut())?;
            seen.push(one.clone());
        }
        Ok(())
    }

    #[test]
    fn channels_are_stacked_and_one_frame_changes_nothing() {
        let colour = EnvironmentSpec { observation: ObservationSpace::bytes(&[3, 8, 9]), ..registry::spec("CartPole-v1").unwrap() };
        assert_eq!(stacked_spec(&colour, 4).observation.shape, [12, 8, 9]);
        assert_eq!(stacked_spec(&colour, 1).observation, colour.observation);
    }

    #[test]
    fn a_stacked_environment_keeps_the_rules_of_environments() {
        conformance::check(|| Ok(stacked(registry::make("CartPole-v1")?, 4))).unwrap();
    }
}
