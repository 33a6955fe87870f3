//! Shows an environment of bytes as one of floats, to algorithms that learn from floats.

use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace, Step};
use crate::values::{Value, ValueBuffer, ValueType, ValuesMut};

/// Show the bytes of `environment` as floats from 0 to 255; one that shows floats is returned unchanged.
pub(super) fn as_floats(environment: Box<dyn Environment>) -> Box<dyn Environment> {
    if environment.spec().observation.element == ValueType::F32 {
        return environment;
    }
    let spec = spec_as_floats(environment.spec());
    let bytes = environment.spec().observation.zeros();
    Box::new(Floats { environment, spec, bytes })
}

/// The observation space of `environment`, or of the bytes behind it if it shows bytes as floats: only bytes are told
/// apart into frames ([`ObservationSpace::stack`]).
pub fn behind_floats(environment: &dyn Environment) -> &ObservationSpace {
    let seen = &environment.spec().observation;
    let behind = environment.wrapped().map(|wrapped| &wrapped.spec().observation);
    behind.filter(|behind| behind.element != seen.element).unwrap_or(seen)
}

/// `spec` with its bytes seen as floats. A replay does not share frames of floats, so they count as one frame.
pub(super) fn spec_as_floats(spec: &EnvironmentSpec) -> EnvironmentSpec {
    let observation = match spec.observation.element {
        ValueType::F32 => spec.observation.clone(),
        ValueType::U8 => ObservationSpace { element: ValueType::F32, stack: 1, ..spec.observation.clone() },
    };
    EnvironmentSpec { observation, ..spec.clone() }
}

struct Floats {
    environment: Box<dyn Environment>,
    spec: EnvironmentSpec,
    bytes: ValueBuffer,
}

impl Floats {
    fn show(&self, observation: ValuesMut<'_>) {
        let ValueBuffer::U8(bytes) = &self.bytes else { return };
        f32::of(observation).iter_mut().zip(bytes).for_each(|(float, &byte)| *float = f32::from(byte));
    }
}

impl Environment for Floats {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, self.bytes.values_mut())?;
        self.show(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let step = self.environment.step(action, self.bytes.values_mut())?;
        self.show(observation);
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ObservationOptions, make};

    #[test]
    fn frames_of_bytes_that_are_seen_as_floats_are_told_apart() {
        for as_floats in [false, true] {
            let options = ObservationOptions { frames_per_observation: 1, frame_stack: Some(3), as_floats };
            let environment = options.of(make("Rally-v0").unwrap()).unwrap();
            let behind = behind_floats(&*environment);
            assert_eq!((behind.stack, &behind.shape), (3, &environment.spec().observation.shape));
        }
        let floats = ObservationOptions { frames_per_observation: 1, frame_stack: Some(2), as_floats: true };
        assert_eq!(behind_floats(&*floats.of(make("CartPole-v1").unwrap()).unwrap()).stack, 2, "it has no bytes");
    }
}
