//! `HalfCheetah-v5`: a planar runner that earns its speed and pays for its effort.
//!
//! Source: P. Wawrzyński, "A Cat-Like Robot Real-Time Learning to Run", 2009, in the variant of Gymnasium.

use super::model::Sizes;
use super::simulation::{Noise, Simulation};
use super::task::{Task, show};
use crate::environments::numpy::sum_of_squares;

/// Single precision like the action, so the whole cost is.
const CONTROL_COST: f32 = 0.1;

pub(super) struct HalfCheetah;

impl Task<6> for HalfCheetah {
    const ID: &'static str = "mujoco:HalfCheetah-v5";
    const MODEL: &'static str = "half_cheetah.xml";
    const SIZES: Sizes = Sizes { positions: 9, velocities: 9, actions: 6, bodies: 8, sites: 0 };
    const FRAME_SKIP: u32 = 5;
    const OBSERVATION_LEN: usize = 17;
    const RESET_NOISE: f64 = 0.1;
    const VELOCITY_NOISE: Noise = Noise::Normal;
    const REWARD_THRESHOLD: Option<f64> = Some(4800.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        show(observation, [&simulation.positions()[1..], simulation.velocities()].into_iter().flatten().copied());
    }

    fn step(simulation: &mut Simulation, action: &[f32; 6]) -> (f64, bool) {
        let velocity = simulation.advance_forward(action);
        let control_cost = CONTROL_COST * sum_of_squares(action);
        (velocity - f64::from(control_cost), false)
    }
}
