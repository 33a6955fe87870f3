//! `CartPole-v1`: keep a pole upright on a cart that is pushed to the left or to the right.
//!
//! Source: A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike adaptive elements that can solve difficult learning control
//! problems", 1983, with the corrected equations of R. V. Florian, 2007. The state is kept in double precision and shown in single.

use std::f64::consts::PI;

use super::Dynamics;
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const GRAVITY: f64 = 9.8;
const CART_MASS: f64 = 1.0;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = POLE_MASS + CART_MASS;
const POLE_HALF_LENGTH: f64 = 0.5;
const POLE_MASS_LENGTH: f64 = POLE_MASS * POLE_HALF_LENGTH;
const FORCE: f64 = 10.0;
const STEP_SECONDS: f64 = 0.02;
const POSITION_LIMIT: f64 = 2.4;
/// 12 degrees.
const ANGLE_LIMIT: f64 = 12.0 * 2.0 * PI / 360.0;

#[derive(Default)]
pub(super) struct CartPole {
    position: f64,
    velocity: f64,
    angle: f64,
    angular_velocity: f64,
}

impl CartPole {
    fn observe(&self, observation: &mut [f32]) {
        let state = [self.position, self.velocity, self.angle, self.angular_velocity];
        observation.copy_from_slice(&state.map(|value| value as f32));
    }
}

impl Dynamics for CartPole {
    type Action = usize;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        // Twice the limits, so that the observation that ends an episode still lies inside.
        let high = [POSITION_LIMIT * 2.0, f64::INFINITY, ANGLE_LIMIT * 2.0, f64::INFINITY];
        let observation = ObservationSpace::symmetric(high.map(|bound| bound as f32));
        EnvironmentSpec {
            time_limit_steps: Some(500),
            reward_threshold: Some(475.0),
            ..EnvironmentSpec::new("CartPole-v1", observation, ActionSpace::Discrete { n: 2 })
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        let [position, velocity, angle, angular_velocity] = std::array::from_fn(|_| random.uniform(-0.05, 0.05));
        *self = Self { position, velocity, angle, angular_velocity };
        self.observe(observation);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let force = if action == 1 { FORCE } else { -FORCE };
        let (sine, cosine) = self.angle.sin_cos();
        // `np.square` multiplies, unlike the `**` of the other tasks.
        let drive = (force + POLE_MASS_LENGTH * (self.angular_velocity * self.angular_velocity) * sine) / TOTAL_MASS;
        let angular_acceleration =
            (GRAVITY * sine - cosine * drive) / (POLE_HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
        let acceleration = drive - POLE_MASS_LENGTH * angular_acceleration * cosine / TOTAL_MASS;

        self.position += STEP_SECONDS * self.velocity;
        self.velocity += STEP_SECONDS * acceleration;
        self.angle += STEP_SECONDS * self.angular_velocity;
        self.angular_velocity += STEP_SECONDS * angular_acceleration;
        self.observe(observation);

        let terminated = self.position.abs() > POSITION_LIMIT || self.angle.abs() > ANGLE_LIMIT;
        (1.0, terminated)
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::cart_pole(self.position, self.angle))
    }
}
