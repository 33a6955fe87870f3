//! Native tasks, a file each: classic control, and games that are seen as images. What `gymnasium.make` puts around the equations of a
//! task is here: seeding, order of calls, validation of actions and the time limit.
//!
//! A task implements [`Dynamics`], and [`Native`] makes it an [`Environment`]. Programs can add tasks of their own so.

mod acrobot;
mod cart_pole;
mod catch;
mod mountain_car;
mod mountain_car_continuous;
mod pendulum;
mod rally;

use super::origin::Entry;
use super::progress::Progress;
use super::{Action, Environment, EnvironmentError, EnvironmentSpec, Generator, Picture, Step};
use crate::values::{Value, ValuesMut};

const fn entry<D: Dynamics + Default + 'static>(id: &'static str) -> Entry {
    Entry { id, software: &[], spec: || Ok(D::spec()), make: || Ok(Box::new(Native::new(D::default()))) }
}

/// All native tasks, in alphabetical order.
pub(super) static ENTRIES: [Entry; 7] = [
    entry::<acrobot::Acrobot>("Acrobot-v1"),
    entry::<cart_pole::CartPole>("CartPole-v1"),
    entry::<catch::Catch>("Catch-v0"),
    entry::<mountain_car::MountainCar>("MountainCar-v0"),
    entry::<mountain_car_continuous::MountainCarContinuous>("MountainCarContinuous-v0"),
    entry::<pendulum::Pendulum>("Pendulum-v1"),
    entry::<rally::Rally>("Rally-v0"),
];

/// The equations of one task.
pub trait Dynamics {
    /// What a step takes: an action that has been validated.
    type Action: NativeAction;
    /// What an observation consists of: floats or bytes.
    type Value: Value;

    /// What is fixed about the task.
    fn spec() -> EnvironmentSpec;

    /// Draw an initial state and show it: write its observation, which has as many values as the spec says. The numbers of
    /// `random` go on from reset to step and to later episodes; a copy of it would repeat some.
    fn reset(&mut self, random: &mut Generator, observation: &mut [Self::Value]);

    /// Advance by one step and show the new state. The result is the reward, and whether the episode terminated;
    /// [`Native`] sees to the time limit.
    fn step(&mut self, action: Self::Action, random: &mut Generator, observation: &mut [Self::Value]) -> (f64, bool);

    /// Draw the state, for people to look at; `None` where nobody has written how. Not asked before the first reset.
    fn picture(&self) -> Option<Picture> {
        None
    }
}

/// How a task reads an action that its space accepts.
pub trait NativeAction: Sized {
    /// The action, if it is of this kind.
    fn read(action: Action<'_>) -> Option<Self>;
}

/// The index of a discrete action.
impl NativeAction for usize {
    fn read(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Discrete(index) => Some(index),
            Action::Continuous(_) => None,
        }
    }
}

/// The only value of a one-dimensional continuous action.
impl NativeAction for f32 {
    fn read(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Continuous(&[value]) => Some(value),
            _ => None,
        }
    }
}

/// All values of a continuous action.
impl<const ACTIONS: usize> NativeAction for [f32; ACTIONS] {
    fn read(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Continuous(values) => values.try_into().ok(),
            Action::Discrete(_) => None,
        }
    }
}

/// A task with everything that makes it an environment: random numbers from seeds, the order of calls, the check of every action
/// against its space, and the time limit of its spec.
pub struct Native<D> {
    spec: EnvironmentSpec,
    time_limit_steps: u32,
    dynamics: D,
    random: Option<Generator>,
    progress: Progress,
}

impl<D: Dynamics> Native<D> {
    /// The environment of `dynamics`, before its first reset.
    pub fn new(dynamics: D) -> Self {
        let spec = D::spec();
        let time_limit_steps = spec.time_limit_steps.unwrap_or(u32::MAX);
        Self { spec, time_limit_steps, dynamics, random: None, progress: Progress::BeforeFirstReset }
    }
}

impl<D: Dynamics> Environment for Native<D> {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        if let Some(seed) = seed {
            self.random = Some(Generator::from_seed(seed));
        }
        let random = self.random.get_or_insert_with(Generator::from_operating_system);
        self.dynamics.reset(random, D::Value::of(observation));
        self.progress = Progress::Running { elapsed_steps: 0 };
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let elapsed_steps = self.progress.next_step(&self.spec)?;
        let native = match D::Action::read(action) {
            Some(native) if self.spec.action.accepts(action) => native,
            _ => return Err(self.spec.invalid_action(action)),
        };
        let random = self.random.get_or_insert_with(Generator::from_operating_system);
        let (reward, terminated) = self.dynamics.step(native, random, D::Value::of(observation));
        let step = Step { reward, terminated, truncated: elapsed_steps >= self.time_limit_steps };
        self.progress = Progress::after_step(elapsed_steps, step.ended());
        Ok(step)
    }

    fn picture(&self) -> Result<Picture, EnvironmentError> {
        if let Progress::BeforeFirstReset = self.progress {
            return Err(self.spec.needs_reset("before its first reset"));
        }
        self.dynamics.picture().ok_or_else(|| EnvironmentError::NoPicture { id: self.spec.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ObservationSpace, registry};

    /// Shows a random number at the start of an episode and after each of its five steps.
    struct Noise;

    impl Dynamics for Noise {
        type Action = usize;
        type Value = f32;

        fn spec() -> EnvironmentSpec {
            let spec = registry::spec("CartPole-v1").unwrap();
            EnvironmentSpec { observation: ObservationSpace::unbounded(1), time_limit_steps: Some(5), ..spec }
        }

        fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
            observation[0] = random.uniform(0.0, 1.0) as f32;
        }

        fn step(&mut self, _: usize, random: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
            observation[0] = random.uniform(0.0, 1.0) as f32;
            (0.0, false)
        }
    }

    #[test]
    fn what_is_random_in_steps_follows_from_the_seed_and_repeats_in_no_later_episode() {
        let shown = || {
            let mut environment = Native::new(Noise);
            let mut shown = Vec::new();
            for seed in [Some(7), None, None] {
                let mut observation = [0.0_f32];
                environment.reset(seed, (&mut observation).into()).unwrap();
                shown.push(observation[0]);
                for _ in 0..5 {
                    environment.step(Action::Discrete(0), (&mut observation).into()).unwrap();
                    shown.push(observation[0]);
                }
            }
            shown
        };
        let mut numbers = shown();
        assert_eq!(numbers, shown());
        numbers.sort_by(f32::total_cmp);
        numbers.dedup();
        assert_eq!(numbers.len(), 3 * 6);
    }
}
