//! `Acrobot-v1`: two links hang from a pivot; swing the tip above a line with a motor at the joint between them.
//!
//! Source: R. S. Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", 1996, with
//! the equations of Sutton and Barto's book, integrated by one fourth-order Runge-Kutta step.

use std::f64::consts::PI;

use super::Dynamics;
use crate::environments::numpy::square;
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const STEP_SECONDS: f64 = 0.2;
const LINK_MASS: f64 = 1.0;
const LINK_LENGTH: f64 = 1.0;
/// Distance from a link's upper end to its centre of mass.
const LINK_CENTRE: f64 = 0.5;
const LINK_INERTIA: f64 = 1.0;
const GRAVITY: f64 = 9.8;
/// Height of the line that the tip has to pass, above the pivot.
const GOAL_HEIGHT: f64 = 1.0;
const MAX_SPEED_1: f64 = 4.0 * PI;
const MAX_SPEED_2: f64 = 9.0 * PI;

/// Both angles (zero hangs down, the second relative to the first link), then both angular velocities.
type State = [f64; 4];

#[derive(Default)]
pub(super) struct Acrobot {
    state: State,
}

/// Time derivative of the state under a constant torque.
fn derivative(state: &State, torque: f64) -> State {
    let (m, l, c, i, g) = (LINK_MASS, LINK_LENGTH, LINK_CENTRE, LINK_INERTIA, GRAVITY);
    let [angle_1, angle_2, speed_1, speed_2] = *state;
    let (sine_2, cosine_2) = angle_2.sin_cos();

    let d1 = m * (c * c) + m * (l * l + c * c + 2.0 * l * c * cosine_2) + i + i;
    let d2 = m * (c * c + l * c * cosine_2) + i;
    let phi2 = m * c * g * (angle_1 + angle_2 - PI / 2.0).cos();
    let phi1 = -m * l * c * square(speed_2) * sine_2 - 2.0 * m * l * c * speed_2 * speed_1 * sine_2
        + (m * c + m * l) * g * (angle_1 - PI / 2.0).cos()
        + phi2;
    let acceleration_2 = (torque + d2 / d1 * phi1 - m * l * c * square(speed_1) * sine_2 - phi2) / (m * (c * c) + i - square(d2) / d1);
    let acceleration_1 = -(d2 * acceleration_2 + phi1) / d1;
    [speed_1, speed_2, acceleration_1, acceleration_2]
}

/// One fourth-order Runge-Kutta step, summed in NumPy's order.
fn integrate(state: &State, torque: f64) -> State {
    let ahead = |slope: &State, seconds: f64| -> State { std::array::from_fn(|i| state[i] + seconds * slope[i]) };
    let k1 = derivative(state, torque);
    let k2 = derivative(&ahead(&k1, STEP_SECONDS / 2.0), torque);
    let k3 = derivative(&ahead(&k2, STEP_SECONDS / 2.0), torque);
    let k4 = derivative(&ahead(&k3, STEP_SECONDS), torque);
    std::array::from_fn(|i| state[i] + STEP_SECONDS / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

/// The angle within [-pi, pi], by repeated subtraction as in the original, which rounds otherwise than a remainder.
fn wrap(mut angle: f64) -> f64 {
    while angle > PI {
        angle -= 2.0 * PI;
    }
    while angle < -PI {
        angle += 2.0 * PI;
    }
    angle
}

/// NumPy's single-precision sine and cosine, for angles below pi/4.
///
/// The state is single precision after a reset and nowhere else, and NumPy evaluates single-precision functions with its own
/// polynomials, which round otherwise than the C library in about one angle of a thousand. `mul_add` is part of the result.
fn sin_cos_f32(angle: f32) -> (f32, f32) {
    let squared = angle * angle;
    let polynomial = |coefficients: &[f32]| coefficients.iter().copied().reduce(|sum, next| sum.mul_add(squared, next)).unwrap_or(0.0);
    let cosine = polynomial(&COSINE.map(f32::from_bits));
    let sine = polynomial(&SINE.map(f32::from_bits)).mul_add(angle, angle);
    (sine, cosine)
}

/// Coefficients of the eighth to the zeroth power of the angle, in steps of two, as bits.
const COSINE: [u32; 5] = [0x37cc_730b, 0xbab6_036e, 0x3d2a_aa9e, 0xbf00_0000, 0x3f80_0000];
/// Coefficients of the eighth to the zeroth power of the angle in sin(angle) / angle - 1, in steps of two, as bits.
const SINE: [u32; 5] = [0x363e_9dde, 0xb950_35dd, 0x3c08_88cd, 0xbe2a_aaab, 0x0000_0000];

impl Dynamics for Acrobot {
    type Action = usize;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        let observation = ObservationSpace::symmetric([1.0, 1.0, 1.0, 1.0, MAX_SPEED_1 as f32, MAX_SPEED_2 as f32]);
        EnvironmentSpec {
            time_limit_steps: Some(500),
            reward_threshold: Some(-100.0),
            ..EnvironmentSpec::new("Acrobot-v1", observation, ActionSpace::Discrete { n: 3 })
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        let state: [f32; 4] = std::array::from_fn(|_| random.uniform(-0.1, 0.1) as f32);
        self.state = state.map(f64::from);
        let (sine_1, cosine_1) = sin_cos_f32(state[0]);
        let (sine_2, cosine_2) = sin_cos_f32(state[1]);
        observation.copy_from_slice(&[cosine_1, sine_1, cosine_2, sine_2, state[2], state[3]]);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let torque = action as f64 - 1.0;
        let [angle_1, angle_2, speed_1, speed_2] = integrate(&self.state, torque);
        let (angle_1, angle_2) = (wrap(angle_1), wrap(angle_2));
        let speed_1 = speed_1.clamp(-MAX_SPEED_1, MAX_SPEED_1);
        let speed_2 = speed_2.clamp(-MAX_SPEED_2, MAX_SPEED_2);
        self.state = [angle_1, angle_2, speed_1, speed_2];

        let (sine_1, cosine_1) = angle_1.sin_cos();
        let (sine_2, cosine_2) = angle_2.sin_cos();
        observation.copy_from_slice(&[cosine_1, sine_1, cosine_2, sine_2, speed_1, speed_2].map(|value| value as f32));

        let terminated = -cosine_1 - (angle_2 + angle_1).cos() > GOAL_HEIGHT;
        (if terminated { 0.0 } else { -1.0 }, terminated)
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::acrobot([self.state[0], self.state[1]], GOAL_HEIGHT))
    }
}
