//! `Swimmer-v5`: three links in a viscous fluid that earn their speed along one axis.
//!
//! Source: R. Coulom, "Reinforcement Learning Using Neural Networks, with Applications to Motor Control", 2002, in the variant
//! of Gymnasium.

use super::model::Sizes;
use super::simulation::Simulation;
use super::task::{Task, show};
use crate::environments::numpy::sum_of_squares;

/// Single precision like the action, so the whole cost is.
const CONTROL_COST: f32 = 1e-4;

pub(super) struct Swimmer;

impl Task<2> for Swimmer {
    const ID: &'static str = "mujoco:Swimmer-v5";
    const MODEL: &'static str = "swimmer.xml";
    const SIZES: Sizes = Sizes { positions: 5, velocities: 5, actions: 2, bodies: 4, sites: 0 };
    const FRAME_SKIP: u32 = 4;
    const OBSERVATION_LEN: usize = 8;
    const ELEVATION_DEGREES: f64 = 90.0;
    const RESET_NOISE: f64 = 0.1;
    const REWARD_THRESHOLD: Option<f64> = Some(360.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        show(observation, [&simulation.positions()[2..], simulation.velocities()].into_iter().flatten().copied());
    }

    fn step(simulation: &mut Simulation, action: &[f32; 2]) -> (f64, bool) {
        let velocity = simulation.advance_forward(action);
        let control_cost = CONTROL_COST * sum_of_squares(action);
        (velocity - f64::from(control_cost), false)
    }
}
