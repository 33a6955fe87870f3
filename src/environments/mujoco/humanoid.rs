//! `Humanoid-v5`: a body of thirteen parts that earns its speed while it stands.
//!
//! Source: Y. Tassa, T. Erez, E. Todorov, "Synthesis and Stabilization of Complex Behaviors through Online Trajectory
//! Optimization", 2012, in the variant of Gymnasium.

use super::model::Sizes;
use super::simulation::Simulation;
use super::task::{Task, show};
use crate::environments::numpy::{sum, sum_of_squares};

/// Sizes of the humanoid, in both tasks that have it.
pub(super) const SIZES: Sizes = Sizes { positions: 24, velocities: 23, actions: 17, bodies: 14, sites: 0 };
/// Values of one observation.
pub(super) const OBSERVATION_LEN: usize = 348;
/// Largest absolute value of an action.
pub(super) const ACTION_BOUND: f32 = 0.4;
/// Noise of a reset.
pub(super) const RESET_NOISE: f64 = 0.01;
/// Double precision, because the cost is that of the simulator's copy of the action.
const CONTROL_COST: f64 = 0.1;
const CONTACT_COST: f64 = 5e-7;
const LARGEST_CONTACT_COST: f64 = 10.0;
const FORWARD_REWARD: f64 = 1.25;
const HEALTHY_REWARD: f64 = 5.0;
const LOWEST_HEIGHT: f64 = 1.0;
const LARGEST_HEIGHT: f64 = 2.0;
/// Degrees of freedom that no actuator moves: those of the whole.
const FREE_VELOCITIES: usize = 6;

pub(super) struct Humanoid;

/// Show positions, velocities, inertias and velocities of the bodies, and the forces on them.
pub(super) fn observe(simulation: &Simulation, observation: &mut [f32]) {
    let groups = [
        &simulation.positions()[2..],
        simulation.velocities(),
        simulation.inertias()[1..].as_flattened(),
        simulation.body_velocities()[1..].as_flattened(),
        &simulation.actuator_forces()[FREE_VELOCITIES..],
        simulation.contact_forces()[1..].as_flattened(),
    ];
    show(observation, groups.into_iter().flatten().copied());
}

/// Cost of the last action.
pub(super) fn control_cost(simulation: &Simulation) -> f64 {
    CONTROL_COST * sum_of_squares(simulation.controls())
}

/// Cost of the forces from outside, which is limited.
pub(super) fn contact_cost(simulation: &Simulation) -> f64 {
    (CONTACT_COST * sum_of_squares(simulation.contact_forces().as_flattened())).min(LARGEST_CONTACT_COST)
}

/// First coordinate of the centre of mass.
fn centre_x(simulation: &Simulation) -> f64 {
    let (masses, places) = simulation.masses();
    let moment = masses.iter().zip(places).fold(0.0, |moment, (mass, place)| moment + mass * place[0]);
    moment / sum(masses, |mass| mass)
}

impl Task<17> for Humanoid {
    const ID: &'static str = "mujoco:Humanoid-v5";
    const MODEL: &'static str = "humanoid.xml";
    const SIZES: Sizes = SIZES;
    const FRAME_SKIP: u32 = 5;
    const OBSERVATION_LEN: usize = OBSERVATION_LEN;
    const ACTION_BOUND: f32 = ACTION_BOUND;
    const ELEVATION_DEGREES: f64 = 20.0;
    const RESET_NOISE: f64 = RESET_NOISE;
    const REWARD_THRESHOLD: Option<f64> = None;

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        observe(simulation, observation);
    }

    fn step(simulation: &mut Simulation, action: &[f32; 17]) -> (f64, bool) {
        let x_before = centre_x(simulation);
        simulation.advance_with_contact_forces(action);
        let velocity = (centre_x(simulation) - x_before) / simulation.step_seconds();
        let height = simulation.positions()[2];
        let healthy = LOWEST_HEIGHT < height && height < LARGEST_HEIGHT;
        let rewards = FORWARD_REWARD * velocity + if healthy { HEALTHY_REWARD } else { 0.0 };
        (rewards - (control_cost(simulation) + contact_cost(simulation)), !healthy)
    }
}
