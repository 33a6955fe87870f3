//! Makes an environment slow: each of its steps takes some microseconds longer (`environment.step_delay_us`).
//!
//! This shows how a run behaves when stepping is the bottleneck, without a slow simulator.

use std::thread;
use std::time::Duration;

use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, Step};
use crate::values::ValuesMut;

/// Make every step of `environment` sleep for `step_delay_us` microseconds; zero returns it unchanged.
///
/// The processor is free during the sleep, as it is when the simulator runs elsewhere. Linux lets a sleep end about 60
/// microseconds late (its default timer slack and the wake-up), so shorter delays are longer than they say.
/// In a [`VectorEnvironment`](crate::environments::VectorEnvironment) the delays of its environments add up, because they step one
/// after another.
pub fn delayed(environment: Box<dyn Environment>, step_delay_us: u64) -> Box<dyn Environment> {
    if step_delay_us == 0 {
        return environment;
    }
    Box::new(Delayed { environment, step_delay: Duration::from_micros(step_delay_us) })
}

struct Delayed {
    environment: Box<dyn Environment>,
    step_delay: Duration,
}

impl Environment for Delayed {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let step = self.environment.step(action, observation)?;
        thread::sleep(self.step_delay);
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }
}
