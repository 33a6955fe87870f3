//! `MountainCar-v0`: a car too weak to climb a hill has to swing up from the other side.
//!
//! Source: A. W. Moore, "Efficient memory-based learning for robot control", 1990.

use super::Dynamics;
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GOAL_POSITION: f64 = 0.5;
const FORCE: f64 = 0.001;
const GRAVITY: f64 = 0.0025;

#[derive(Default)]
pub(super) struct MountainCar {
    position: f64,
    velocity: f64,
}

impl MountainCar {
    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.position as f32, self.velocity as f32]);
    }
}

impl Dynamics for MountainCar {
    type Action = usize;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        let low = [MIN_POSITION as f32, -MAX_SPEED as f32];
        let high = [MAX_POSITION as f32, MAX_SPEED as f32];
        EnvironmentSpec {
            time_limit_steps: Some(200),
            reward_threshold: Some(-110.0),
            ..EnvironmentSpec::new("MountainCar-v0", ObservationSpace::vector(low, high), ActionSpace::Discrete { n: 3 })
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        *self = Self { position: random.uniform(-0.6, -0.4), velocity: 0.0 };
        self.observe(observation);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let direction = action as f64 - 1.0;
        self.velocity += direction * FORCE + (3.0 * self.position).cos() * -GRAVITY;
        self.velocity = self.velocity.clamp(-MAX_SPEED, MAX_SPEED);
        self.position = (self.position + self.velocity).clamp(MIN_POSITION, MAX_POSITION);
        if self.position == MIN_POSITION && self.velocity < 0.0 {
            self.velocity = 0.0;
        }
        self.observe(observation);

        let terminated = self.position >= GOAL_POSITION && self.velocity >= 0.0;
        (-1.0, terminated)
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::mountain_car(self.position, GOAL_POSITION))
    }
}
