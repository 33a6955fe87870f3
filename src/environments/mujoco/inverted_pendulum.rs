//! `InvertedPendulum-v5`: a pole on a cart, with a continuous force.
//!
//! Source: A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike Adaptive Elements That Can Solve Difficult Learning Control
//! Problems", 1983, in the variant of Gymnasium.

use super::model::Sizes;
use super::simulation::Simulation;
use super::task::{Task, show};

const LARGEST_ANGLE: f64 = 0.2;

pub(super) struct InvertedPendulum;

impl Task<1> for InvertedPendulum {
    const ID: &'static str = "mujoco:InvertedPendulum-v5";
    const MODEL: &'static str = "inverted_pendulum.xml";
    const SIZES: Sizes = Sizes { positions: 2, velocities: 2, actions: 1, bodies: 3, sites: 0 };
    const FRAME_SKIP: u32 = 2;
    const OBSERVATION_LEN: usize = 4;
    const ACTION_BOUND: f32 = 3.0;
    const RESET_NOISE: f64 = 0.01;
    const REWARD_THRESHOLD: Option<f64> = Some(950.0);

    fn observe(simulation: &Simulation, observation: &mut [f32]) {
        show(observation, [simulation.positions(), simulation.velocities()].into_iter().flatten().copied());
    }

    fn step(simulation: &mut Simulation, action: &[f32; 1]) -> (f64, bool) {
        simulation.advance(action);
        let (positions, velocities) = (simulation.positions(), simulation.velocities());
        let finite = positions.iter().chain(velocities).all(|value| value.is_finite());
        let stands = finite && positions[1].abs() <= LARGEST_ANGLE;
        (if stands { 1.0 } else { 0.0 }, !stands)
    }
}
