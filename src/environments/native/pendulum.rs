//! `Pendulum-v1`: swing a pendulum up and hold it there with a weak motor. Episodes never terminate.
//!
//! The torque stays single precision through its own terms, because NumPy does not widen an array that meets a Python number.

use std::f64::consts::PI;

use super::Dynamics;
use crate::environments::numpy::{square, square_f32};
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f32 = 2.0;
const STEP_SECONDS: f64 = 0.05;
const GRAVITY: f64 = 10.0;
const MASS: f64 = 1.0;
const LENGTH: f64 = 1.0;

#[derive(Default)]
pub(super) struct Pendulum {
    /// Zero is upright. The angle is not wrapped, so it grows while the pendulum turns over.
    angle: f64,
    angular_velocity: f64,
}

impl Pendulum {
    fn observe(&self, observation: &mut [f32]) {
        let (sine, cosine) = self.angle.sin_cos();
        observation.copy_from_slice(&[cosine as f32, sine as f32, self.angular_velocity as f32]);
    }
}

/// The angle within [-pi, pi), with the rounding of Python's `%`.
fn wrap(angle: f64) -> f64 {
    let full_turn = 2.0 * PI;
    let remainder = (angle + PI) % full_turn;
    let positive = if remainder < 0.0 { remainder + full_turn } else { remainder };
    positive - PI
}

impl Dynamics for Pendulum {
    type Action = f32;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        let observation = ObservationSpace::symmetric([1.0, 1.0, MAX_SPEED as f32]);
        let action = ActionSpace::Box { low: vec![-MAX_TORQUE], high: vec![MAX_TORQUE] };
        EnvironmentSpec { time_limit_steps: Some(200), ..EnvironmentSpec::new("Pendulum-v1", observation, action) }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        *self = Self { angle: random.uniform(-PI, PI), angular_velocity: random.uniform(-1.0, 1.0) };
        self.observe(observation);
    }

    fn step(&mut self, action: f32, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let torque = action.clamp(-MAX_TORQUE, MAX_TORQUE);
        let cost = square(wrap(self.angle)) + 0.1 * square(self.angular_velocity) + f64::from(0.001 * square_f32(torque));

        let gravity_term = 3.0 * GRAVITY / (2.0 * LENGTH) * self.angle.sin();
        let torque_term = f64::from((3.0 / (MASS * LENGTH * LENGTH)) as f32 * torque);
        let angular_velocity = self.angular_velocity + (gravity_term + torque_term) * STEP_SECONDS;
        self.angular_velocity = angular_velocity.clamp(-MAX_SPEED, MAX_SPEED);
        self.angle += self.angular_velocity * STEP_SECONDS;
        self.observe(observation);
        (-cost, false)
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::pendulum(self.angle))
    }
}
