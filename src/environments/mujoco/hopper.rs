//! `Hopper-v5`: a planar leg that earns its speed while it stands upright.
//!
//! Source: T. Erez, Y. Tassa, E. Todorov, "Infinite-Horizon Model Predictive Control for Periodic Tasks with Contacts", 2011, in
//! the variant of Gymnasium.

use super::model::Sizes;
use super::simulation::Simulation;
use super::task::{Task, show};
use crate::environments::numpy::sum_of_squares;

/// Single precision like the action, so the whole cost is.
const CONTROL_COST: f32 = 1e-3;
const HEALTHY_REWARD: f64 = 1.0;
const LOWEST_HEIGHT: f64 = 0.7;
const LARGEST_ANGLE: f64 = 0.2;
/// Bound of all other positions and of the velocities.
const LARGEST_STATE: f64 = 100.0;
/// Velocities are shown clipped to this.
const LARGEST_SHOWN_VELOCITY: f64 = 10.0;

pub(super) struct Hopper;

/// Whether it stands: high enough, upright, and nothing about it is extreme. NaN is no health.
fn is_healthy(simulation: &Simulation) -> bool {
    let (positions, velocities) = (simulation.positions(), simulation.velocities());
    let moderate = |value: &f64| value.abs() < LARGEST_STATE;
    let (height, angle) = (positions[1], positions[2]);
    let upright = height > LOWEST_HEIGHT && height < f64::INFINITY && angle.abs() < LARGEST_ANGLE;
    upright && positions[2..].iter().all(moderate) && velocities.iter().all(moderate)
}

/// Show all positions but that along its way, and the velocities.
pub(super) fn observe(simulation: &Simulation, observation: &mut [f32]) {
    let velocities = simulation.velocities().iter().map(|velocity| velocity.clamp(-LARGEST_SHOWN_VELOCITY, LARGEST_SHOWN_VELOCITY));
    show(observation, simulation.positions()[1..].iter().copied().chain(velocities));
}

impl Task<3> for Hopper {
    const ID: &'static str = "mujoco:Hopper-v5";
    const MODEL: &'static str = "hopper.xml";
    const SIZES: Sizes = Sizes { positions: 6, velocities: 6, actions: 3, bodies: 5, sites: 0 };
    const FRAME_SKIP: u32 = 4;
    const OBSERVATION_LEN: usize = 11;
    const RESET_NOISE: f64 = 0.005;
    const REWARD_THRESHOLD: Option<f64> = Some(3800.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        observe(simulation, observation);
    }

    fn step(simulation: &mut Simulation, action: &[f32; 3]) -> (f64, bool) {
        let velocity = simulation.advance_forward(action);
        let healthy = is_healthy(simulation);
        let control_cost = CONTROL_COST * sum_of_squares(action);
        let reward = velocity + if healthy { HEALTHY_REWARD } else { 0.0 } - f64::from(control_cost);
        (reward, !healthy)
    }
}
