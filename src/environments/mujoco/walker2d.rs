//! `Walker2d-v5`: two planar legs that earn their speed while they stand upright.
//!
//! Source: the hopper's (T. Erez, Y. Tassa, E. Todorov, 2011) with a second leg, in the variant of Gymnasium.

use super::hopper;
use super::model::Sizes;
use super::simulation::Simulation;
use super::task::Task;
use crate::environments::numpy::sum_of_squares;

/// Single precision like the action, so the whole cost is.
const CONTROL_COST: f32 = 1e-3;
const HEALTHY_REWARD: f64 = 1.0;
const LOWEST_HEIGHT: f64 = 0.8;
const LARGEST_HEIGHT: f64 = 2.0;
const LARGEST_ANGLE: f64 = 1.0;

pub(super) struct Walker2d;

fn is_healthy(simulation: &Simulation) -> bool {
    let (height, angle) = (simulation.positions()[1], simulation.positions()[2]);
    LOWEST_HEIGHT < height && height < LARGEST_HEIGHT && angle.abs() < LARGEST_ANGLE
}

impl Task<6> for Walker2d {
    const ID: &'static str = "mujoco:Walker2d-v5";
    const MODEL: &'static str = "walker2d_v5.xml";
    const SIZES: Sizes = Sizes { positions: 9, velocities: 9, actions: 6, bodies: 8, sites: 0 };
    const FRAME_SKIP: u32 = 4;
    const OBSERVATION_LEN: usize = 17;
    const RESET_NOISE: f64 = 0.005;
    const REWARD_THRESHOLD: Option<f64> = None;

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        hopper::observe(simulation, observation);
    }

    fn step(simulation: &mut Simulation, action: &[f32; 6]) -> (f64, bool) {
        let velocity = simulation.advance_forward(action);
        let healthy = is_healthy(simulation);
        let control_cost = CONTROL_COST * sum_of_squares(action);
        let reward = velocity + if healthy { HEALTHY_REWARD } else { 0.0 } - f64::from(control_cost);
        (reward, !healthy)
    }
}
