//! What the tasks differ in, and what they have in common.

use std::marker::PhantomData;

use super::drawing;
use super::model::{self, Sizes};
use super::simulation::{Noise, Simulation};
use crate::environments::native::Dynamics;
use crate::environments::{ActionSpace, EnvironmentError, EnvironmentSpec, Generator, ObservationSpace, Picture};

/// Steps after which an episode is truncated, in all tasks.
const TIME_LIMIT_STEPS: u32 = 1000;

/// A task whose action has `ACTIONS` values, all within the same bounds.
pub(super) trait Task<const ACTIONS: usize> {
    /// Name in the registry.
    const ID: &'static str;
    /// File of the simulated body, in Gymnasium's folder of models.
    const MODEL: &'static str;
    /// Sizes that the model has to have.
    const SIZES: Sizes;
    /// Simulation steps of one environment step.
    const FRAME_SKIP: u32;
    /// Values of one observation.
    const OBSERVATION_LEN: usize;
    /// Largest absolute value of an action. The simulation clips what exceeds it; a control cost counts it in full.
    const ACTION_BOUND: f32 = 1.0;
    /// Elevation from which pictures show the body, in degrees above the horizon.
    const ELEVATION_DEGREES: f64 = 15.0;
    /// Scale of the noise by which an episode's first positions and velocities differ from the model's: the largest difference,
    /// or the standard deviation if the noise is normal.
    const RESET_NOISE: f64;
    /// Distribution of the noise of an episode's first velocities; that of the positions is uniform in every task.
    const VELOCITY_NOISE: Noise = Noise::Uniform;
    /// Mean return at which the task counts as solved, where its authors named one.
    const REWARD_THRESHOLD: Option<f64>;

    /// Show the state.
    fn observe(simulation: &Simulation, observation: &mut [f32]);

    /// Advance by one step. The result is the reward, and whether the episode terminated.
    fn step(simulation: &mut Simulation, action: &[f32; ACTIONS]) -> (f64, bool);
}

/// What is fixed about a task.
pub(super) fn spec<T: Task<ACTIONS>, const ACTIONS: usize>() -> EnvironmentSpec {
    let action = ActionSpace::Box { low: vec![-T::ACTION_BOUND; ACTIONS], high: vec![T::ACTION_BOUND; ACTIONS] };
    EnvironmentSpec {
        time_limit_steps: Some(TIME_LIMIT_STEPS),
        reward_threshold: T::REWARD_THRESHOLD,
        ..EnvironmentSpec::new(T::ID, ObservationSpace::unbounded(T::OBSERVATION_LEN), action)
    }
}

/// A task with a simulation to play it in.
pub(super) struct Simulated<T, const ACTIONS: usize> {
    simulation: Simulation,
    task: PhantomData<T>,
}

impl<T: Task<ACTIONS>, const ACTIONS: usize> Simulated<T, ACTIONS> {
    /// # Errors
    /// As [`model::load`].
    pub(super) fn load() -> Result<Self, EnvironmentError> {
        let model = model::load(T::ID, T::MODEL, &T::SIZES)?;
        Ok(Self { simulation: Simulation::new(model, T::FRAME_SKIP), task: PhantomData })
    }
}

impl<T: Task<ACTIONS>, const ACTIONS: usize> Dynamics for Simulated<T, ACTIONS> {
    type Action = [f32; ACTIONS];
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        spec::<T, ACTIONS>()
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        self.simulation.restart(random, T::RESET_NOISE, T::VELOCITY_NOISE);
        T::observe(&self.simulation, observation);
    }

    fn step(&mut self, action: Self::Action, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let result = T::step(&mut self.simulation, &action);
        T::observe(&self.simulation, observation);
        result
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::draw(&self.simulation, T::ELEVATION_DEGREES))
    }
}

/// Write an observation; Gymnasium's is double precision, ours single.
///
/// # Panics
/// If there are not exactly as many values as the observation holds.
pub(super) fn show(observation: &mut [f32], values: impl IntoIterator<Item = f64>) {
    let mut places = observation.iter_mut();
    for value in values {
        *places.next().expect("the observation holds every value") = value as f32;
    }
    assert!(places.next().is_none(), "every value of the observation is written");
}
