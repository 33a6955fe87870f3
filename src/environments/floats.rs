//! An environment of bytes for those who learn from floats.

use super::{Action, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace, Step};
use crate::values::{Value, ValueBuffer, ValueType, ValuesMut};

/// Show the bytes of `environment` as floats from 0 to 255; one that shows floats is returned unchanged.
pub(super) fn as_floats(environment: Box<dyn Environment>) -> Box<dyn Environment> {
    if environment.spec().observation.element == ValueType::F32 {
        return environment;
    }
    let (spec, bytes) = (spec_as_floats(environment.spec()), environment.spec().observation.zeros());
    Box::new(Floats { environment, spec, bytes })
}

/// What `spec` becomes. Frames of floats are not shared.
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
