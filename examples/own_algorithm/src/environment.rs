//! A corridor with its exit at one end. The agent sees its position and the exit's, and has to walk there, left or
//! right. The reward is 1 at the exit, where the episode ends, and -0.01 for every step before.

use shoal::prelude::*;

/// Id of the environment in a configuration.
pub const ID: &str = "Corridor-v0";
/// Length of a step, in corridors.
const STEP: f64 = 0.125;

/// One corridor, from 0 on the left to 1 on the right.
#[derive(Default)]
pub struct Corridor {
    position: f64,
    exit: f64,
}

impl Corridor {
    fn show(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.position as f32, self.exit as f32]);
    }
}

impl Dynamics for Corridor {
    type Action = usize;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            time_limit_steps: Some(50),
            reward_threshold: Some(0.95),
            ..EnvironmentSpec::new(ID, ObservationSpace::vector([0.0, 0.0], [1.0, 1.0]), ActionSpace::Discrete { n: 3 })
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        self.position = random.uniform(0.3, 0.7);
        self.exit = random.uniform(0.0, 2.0).floor();
        self.show(observation);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        self.position = match action {
            0 => (self.position - STEP).max(0.0),
            1 => (self.position + STEP).min(1.0),
            _ => self.position,
        };
        self.show(observation);
        if self.position == self.exit { (1.0, true) } else { (-0.01, false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_rules_of_environments() {
        conformance::check(|| Ok(Box::new(Native::new(Corridor::default())))).unwrap();
    }
}
