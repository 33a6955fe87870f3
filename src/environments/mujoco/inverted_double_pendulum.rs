//! `InvertedDoublePendulum-v5`: a pole on a pole on a cart, with a continuous force.
//!
//! Source: the cart and pole (A. G. Barto, R. S. Sutton, C. W. Anderson, 1983) with a second pole, in the variant of Gymnasium.

use super::model::Sizes;
use super::simulation::{Noise, Simulation};
use super::task::{Task, show};
use crate::environments::numpy::square;

const HEALTHY_REWARD: f64 = 10.0;
/// Height of the tip below which, and at which, the episode terminates.
const LOWEST_HEIGHT: f64 = 1.0;
/// Height from which the tip's distance is counted.
const BEST_HEIGHT: f64 = 2.0;
/// Velocities and the force on the cart are shown clipped to this.
const LARGEST_SHOWN: f64 = 10.0;

pub(super) struct InvertedDoublePendulum;

fn clipped(value: &f64) -> f64 {
    value.clamp(-LARGEST_SHOWN, LARGEST_SHOWN)
}

impl Task<1> for InvertedDoublePendulum {
    const ID: &'static str = "mujoco:InvertedDoublePendulum-v5";
    const MODEL: &'static str = "inverted_double_pendulum.xml";
    const SIZES: Sizes = Sizes { positions: 3, velocities: 3, actions: 1, bodies: 4, sites: 1 };
    const FRAME_SKIP: u32 = 5;
    const OBSERVATION_LEN: usize = 9;
    const RESET_NOISE: f64 = 0.1;
    const VELOCITY_NOISE: Noise = Noise::Normal;
    const REWARD_THRESHOLD: Option<f64> = Some(9100.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        let (cart, angles) = simulation.positions().split_at(1);
        let sines = angles.iter().map(|angle| angle.sin());
        let cosines = angles.iter().map(|angle| angle.cos());
        let velocities = simulation.velocities().iter().map(clipped);
        let force_on_cart = simulation.constraint_forces()[..1].iter().map(clipped);
        show(observation, cart.iter().copied().chain(sines).chain(cosines).chain(velocities).chain(force_on_cart));
    }

    fn step(simulation: &mut Simulation, action: &[f32; 1]) -> (f64, bool) {
        simulation.advance(action);
        let [x, _, height] = simulation.site_positions()[0];
        let terminated = height <= LOWEST_HEIGHT;
        let distance_penalty = 0.01 * square(x) + square(height - BEST_HEIGHT);
        let velocities = simulation.velocities();
        let velocity_penalty = 0.001 * square(velocities[1]) + 0.005 * square(velocities[2]);
        let healthy_reward = if terminated { 0.0 } else { HEALTHY_REWARD };
        (healthy_reward - distance_penalty - velocity_penalty, terminated)
    }
}
