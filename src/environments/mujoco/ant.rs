//! `Ant-v5`: a quadruped that earns its speed along one axis and feels the ground.
//!
//! Source: J. Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016, in the variant
//! of Gymnasium.

use super::model::Sizes;
use super::simulation::{Noise, Simulation};
use super::task::{Task, show};
use crate::environments::numpy::{sum, sum_of_squares};

/// Single precision like the action, so the whole cost is.
const CONTROL_COST: f32 = 0.5;
const CONTACT_COST: f64 = 5e-4;
/// Largest absolute value of a contact force, as it is observed and charged for; larger ones are clipped.
const LARGEST_CONTACT_FORCE: f64 = 1.0;
const HEALTHY_REWARD: f64 = 1.0;
const LOWEST_HEIGHT: f64 = 0.2;
const LARGEST_HEIGHT: f64 = 1.0;
/// Number of the body whose speed is earned.
const TORSO: usize = 1;

pub(super) struct Ant;

fn clipped(force: f64) -> f64 {
    force.clamp(-LARGEST_CONTACT_FORCE, LARGEST_CONTACT_FORCE)
}

fn is_healthy(simulation: &Simulation) -> bool {
    let (positions, velocities) = (simulation.positions(), simulation.velocities());
    let finite = positions.iter().chain(velocities).all(|value| value.is_finite());
    finite && (LOWEST_HEIGHT..=LARGEST_HEIGHT).contains(&positions[2])
}

impl Task<8> for Ant {
    const ID: &'static str = "mujoco:Ant-v5";
    const MODEL: &'static str = "ant.xml";
    const SIZES: Sizes = Sizes { positions: 15, velocities: 14, actions: 8, bodies: 14, sites: 0 };
    const FRAME_SKIP: u32 = 5;
    const OBSERVATION_LEN: usize = 105;
    const ELEVATION_DEGREES: f64 = 30.0;
    const RESET_NOISE: f64 = 0.1;
    const VELOCITY_NOISE: Noise = Noise::Normal;
    const REWARD_THRESHOLD: Option<f64> = Some(6000.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        let state = [&simulation.positions()[2..], simulation.velocities()].into_iter().flatten().copied();
        let contact_forces = simulation.contact_forces()[1..].as_flattened().iter().map(|&force| clipped(force));
        show(observation, state.chain(contact_forces));
    }

    fn step(simulation: &mut Simulation, action: &[f32; 8]) -> (f64, bool) {
        // The place of the body lags behind the coordinates by a simulation step, on both sides of the difference.
        let x_before = simulation.body_positions()[TORSO][0];
        simulation.advance_with_contact_forces(action);
        let velocity = (simulation.body_positions()[TORSO][0] - x_before) / simulation.step_seconds();
        let healthy = is_healthy(simulation);
        let control_cost = CONTROL_COST * sum_of_squares(action);
        let squared = |force| clipped(force) * clipped(force);
        let contact_cost = CONTACT_COST * sum(simulation.contact_forces().as_flattened(), squared);
        let reward = velocity + if healthy { HEALTHY_REWARD } else { 0.0 } - (f64::from(control_cost) + contact_cost);
        (reward, !healthy)
    }
}
