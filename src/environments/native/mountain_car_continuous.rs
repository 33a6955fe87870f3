//! `MountainCarContinuous-v0`: the mountain car with a continuous engine whose use costs.
//!
//! Source: A. W. Moore, 1990, in the variant of Gymnasium. Its precision changes while it runs: the state is double precision
//! after a reset and single precision from the first step on, and an action is a double once it has been clipped, because
//! clipping replaces NumPy's float by Python's. Each mixture is rounded here where NumPy rounds it.

use super::Dynamics;
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GOAL_POSITION: f64 = 0.45;
const POWER: f64 = 0.0015;
const GRAVITY: f64 = 0.0025;

/// Position and velocity, in the precision they have at the moment.
enum State {
    AfterReset { position: f64 },
    Running { position: f32, velocity: f32 },
}

pub(super) struct MountainCarContinuous {
    state: State,
}

impl Default for MountainCarContinuous {
    fn default() -> Self {
        Self { state: State::AfterReset { position: 0.0 } }
    }
}

/// Change of the velocity in one step, in the precision of the action.
enum Acceleration {
    /// The action lay within the bounds and stayed single precision.
    Single(f32),
    /// The action was clipped to a bound, which is double precision.
    Double(f64),
}

impl Acceleration {
    fn new(action: f32, slope: f64) -> Self {
        let gravity = GRAVITY * slope;
        if (-1.0..=1.0).contains(&action) {
            Self::Single(action * POWER as f32 - gravity as f32)
        } else {
            Self::Double(f64::from(action).clamp(-1.0, 1.0) * POWER - gravity)
        }
    }
}

/// The first step after a reset: everything in double precision, rounded when it is stored.
fn first_step(position: f64, action: f32) -> (f32, f32, bool) {
    let velocity = match Acceleration::new(action, (3.0 * position).cos()) {
        Acceleration::Single(change) => f64::from(change),
        Acceleration::Double(change) => change,
    };
    let mut velocity = velocity.clamp(-MAX_SPEED, MAX_SPEED);
    let position = (position + velocity).clamp(MIN_POSITION, MAX_POSITION);
    if position == MIN_POSITION && velocity < 0.0 {
        velocity = 0.0;
    }
    (position as f32, velocity as f32, position >= GOAL_POSITION && velocity >= 0.0)
}

/// Every other step: the state is single precision, and so is what is added to it.
fn later_step(position: f32, velocity: f32, action: f32) -> (f32, f32, bool) {
    let change = match Acceleration::new(action, f64::from(3.0 * position).cos()) {
        Acceleration::Single(change) => change,
        Acceleration::Double(change) => change as f32,
    };
    let mut velocity = (velocity + change).clamp(-MAX_SPEED as f32, MAX_SPEED as f32);
    let position = (position + velocity).clamp(MIN_POSITION as f32, MAX_POSITION as f32);
    if position == MIN_POSITION as f32 && velocity < 0.0 {
        velocity = 0.0;
    }
    (position, velocity, position >= GOAL_POSITION as f32 && velocity >= 0.0)
}

impl Dynamics for MountainCarContinuous {
    type Action = f32;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        let low = [MIN_POSITION as f32, -MAX_SPEED as f32];
        let high = [MAX_POSITION as f32, MAX_SPEED as f32];
        let action = ActionSpace::Box { low: vec![-1.0], high: vec![1.0] };
        EnvironmentSpec {
            time_limit_steps: Some(999),
            reward_threshold: Some(90.0),
            ..EnvironmentSpec::new("MountainCarContinuous-v0", ObservationSpace::vector(low, high), action)
        }
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
        let position = random.uniform(-0.6, -0.4);
        self.state = State::AfterReset { position };
        observation.copy_from_slice(&[position as f32, 0.0]);
    }

    fn step(&mut self, action: f32, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        let (position, velocity, terminated) = match self.state {
            State::AfterReset { position } => first_step(position, action),
            State::Running { position, velocity } => later_step(position, velocity, action),
        };
        self.state = State::Running { position, velocity };
        observation.copy_from_slice(&[position, velocity]);

        // The cost is that of the action as given, not as clipped. A single-precision square is exact in double precision.
        let action = f64::from(action);
        let goal_reward = if terminated { 100.0 } else { 0.0 };
        (goal_reward - action * action * 0.1, terminated)
    }

    fn picture(&self) -> Option<Picture> {
        let position = match self.state {
            State::AfterReset { position } => position,
            State::Running { position, .. } => f64::from(position),
        };
        Some(drawing::mountain_car(position, GOAL_POSITION))
    }
}
