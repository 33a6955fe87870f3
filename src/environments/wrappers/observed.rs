//! What an agent observes of an environment: how many of its observations at once, and whether as bytes.

use super::floats::{as_floats, spec_as_floats};
use super::stacked::{stacked, stacked_spec};
use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, Step};
use crate::values::ValuesMut;

/// How an agent observes an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservationOptions {
    /// Frames that one observation of the environment consists of already, along its first dimension.
    pub frames_per_observation: usize,
    /// How many observations are stacked; `None` leaves it to [`EnvironmentSpec::frame_stack`].
    pub frame_stack: Option<usize>,
    /// Whether bytes are seen as floats.
    pub as_floats: bool,
}

impl ObservationOptions {
    /// What the agent sees of an environment with `spec`.
    ///
    /// # Errors
    /// [`EnvironmentError::FramesDoNotDivide`] if an observation does not consist of
    /// [`frames_per_observation`](Self::frames_per_observation) frames.
    pub fn spec(&self, spec: &EnvironmentSpec) -> Result<EnvironmentSpec, EnvironmentError> {
        let spec = stacked_spec(&self.divided(spec)?, self.stack_of(spec));
        Ok(if self.as_floats { spec_as_floats(&spec) } else { spec })
    }

    /// `environment` as the agent sees it.
    ///
    /// # Errors
    /// As [`Self::spec`].
    pub fn of(&self, environment: Box<dyn Environment>) -> Result<Box<dyn Environment>, EnvironmentError> {
        let frames = self.stack_of(environment.spec());
        let spec = self.divided(environment.spec())?;
        let divided: Box<dyn Environment> =
            if spec.observation == environment.spec().observation { environment } else { Box::new(Divided { environment, spec }) };
        let stacked = stacked(divided, frames);
        Ok(if self.as_floats { as_floats(stacked) } else { stacked })
    }

    fn stack_of(&self, spec: &EnvironmentSpec) -> usize {
        self.frame_stack.unwrap_or(spec.frame_stack)
    }

    /// `spec` with `frames_per_observation` frames in an observation, whatever the environment itself says of them.
    fn divided(&self, spec: &EnvironmentSpec) -> Result<EnvironmentSpec, EnvironmentError> {
        let frames = self.frames_per_observation;
        let length = spec.observation.shape.first().copied().unwrap_or(1);
        if !length.is_multiple_of(frames) {
            return Err(EnvironmentError::FramesDoNotDivide { id: spec.id.clone(), frames, shape: spec.observation.shape.clone() });
        }
        let mut spec = spec.clone();
        spec.observation.stack = frames;
        spec.observation.is_sliding = frames == 1;
        Ok(spec)
    }
}

/// An environment with another spec, which says of how many frames an observation consists.
struct Divided {
    environment: Box<dyn Environment>,
    spec: EnvironmentSpec,
}

impl Environment for Divided {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        self.environment.step(action, observation)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ObservationSpace, registry};
    use crate::values::ValueType;

    fn image(shape: &[usize]) -> EnvironmentSpec {
        EnvironmentSpec {
            observation: ObservationSpace::bytes(shape),
            frame_stack: 4,
            ..registry::spec("CartPole-v1").expect("it is native")
        }
    }

    /// An environment that is never stepped.
    struct Still(EnvironmentSpec);

    impl Environment for Still {
        fn spec(&self) -> &EnvironmentSpec {
            &self.0
        }

        fn reset(&mut self, _: Option<u64>, _: ValuesMut<'_>) -> Result<(), EnvironmentError> {
            unreachable!("nobody resets it")
        }

        fn step(&mut self, _: Action<'_>, _: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
            unreachable!("nobody steps it")
        }
    }

    #[test]
    fn what_an_environment_says_of_its_frames_itself_does_not_count() {
        let mut spec = image(&[4, 84, 84]);
        (spec.observation.stack, spec.observation.is_sliding) = (4, false);
        for (frames_per_observation, is_sliding) in [(1, true), (2, false)] {
            let options = ObservationOptions { frames_per_observation, frame_stack: Some(1), as_floats: false };
            let seen = options.spec(&spec).unwrap().observation;
            assert_eq!((seen.stack, seen.is_sliding), (frames_per_observation, is_sliding));
            let environment = options.of(Box::new(Still(spec.clone()))).unwrap();
            assert_eq!(environment.spec().observation, seen, "a plan and an actor see the same");
        }
    }

    #[test]
    fn frames_are_those_that_an_observation_has_times_those_that_are_stacked() {
        let options = ObservationOptions { frames_per_observation: 1, frame_stack: None, as_floats: false };
        let seen = options.spec(&image(&[84, 84])).unwrap();
        assert_eq!((seen.observation.shape, seen.observation.stack), (vec![4, 84, 84], 4));
        let options = ObservationOptions { frames_per_observation: 4, frame_stack: Some(1), as_floats: false };
        let seen = options.spec(&image(&[4, 84, 84])).unwrap();
        assert_eq!((seen.observation.shape, seen.observation.stack), (vec![4, 84, 84], 4));
        let seen = ObservationOptions { as_floats: true, ..options }.spec(&image(&[4, 84, 84])).unwrap();
        assert_eq!((seen.observation.element, seen.observation.stack), (ValueType::F32, 1));
    }

    #[test]
    fn frames_that_do_not_divide_an_observation_are_refused() {
        let options = ObservationOptions { frames_per_observation: 3, frame_stack: None, as_floats: false };
        let refusal = options.spec(&image(&[4, 84, 84])).unwrap_err().to_string();
        assert!(refusal.contains("[4, 84, 84]") && refusal.contains("3 frames"), "{refusal}");
        let refusal = options.spec(&image(&[])).unwrap_err().to_string();
        assert!(refusal.contains("[]") && refusal.contains("3 frames"), "a single number is not frames: {refusal}");
    }
}
