//! `HumanoidStandup-v5`: the humanoid on its back, paid for the height it reaches. Its episodes never terminate.
//!
//! Source: as the humanoid's, in the variant of Gymnasium.

use super::humanoid::{self, contact_cost, control_cost};
use super::model::Sizes;
use super::simulation::Simulation;
use super::task::Task;

pub(super) struct HumanoidStandup;

impl Task<17> for HumanoidStandup {
    const ID: &'static str = "mujoco:HumanoidStandup-v5";
    const MODEL: &'static str = "humanoidstandup.xml";
    const SIZES: Sizes = humanoid::SIZES;
    const FRAME_SKIP: u32 = 5;
    const OBSERVATION_LEN: usize = humanoid::OBSERVATION_LEN;
    const ACTION_BOUND: f32 = humanoid::ACTION_BOUND;
    const ELEVATION_DEGREES: f64 = 30.0;
    const RESET_NOISE: f64 = humanoid::RESET_NOISE;
    const REWARD_THRESHOLD: Option<f64> = None;

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        humanoid::observe(simulation, observation);
    }

    fn step(simulation: &mut Simulation, action: &[f32; 17]) -> (f64, bool) {
        simulation.advance_with_contact_forces(action);
        let height_reward = simulation.positions()[2] / simulation.timestep_seconds();
        (height_reward - control_cost(simulation) - contact_cost(simulation) + 1.0, false)
    }
}
