//! An environment that is played and looked at.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shoal::environments::{Action, ActionSpace, Environment, EnvironmentError, EnvironmentSpec, Picture, Step};
use shoal::values::{ValueBuffer, ValuesMut};

pub(crate) struct Played {
    pub(crate) environment: Box<dyn Environment>,
    observation: ValueBuffer,
    random: Pcg64,
}

impl Played {
    /// After a reset with `seed`.
    pub(crate) fn new(environment: Box<dyn Environment>, seed: u64) -> Self {
        let observation = environment.spec().observation.zeros();
        let mut played = Self { environment, observation, random: Pcg64::seed_from_u64(seed) };
        played.reset(Some(seed));
        played
    }

    pub(crate) fn reset(&mut self, seed: Option<u64>) {
        self.environment.reset(seed, self.observation.values_mut()).expect("it can be reset");
    }

    pub(crate) fn step(&mut self, action: Action<'_>) -> Step {
        self.environment.step(action, self.observation.values_mut()).expect("the episode goes on")
    }

    pub(crate) fn step_at_random(&mut self) -> Step {
        match self.environment.spec().action.clone() {
            ActionSpace::Discrete { n } => {
                let index = self.random.random_range(0..n);
                self.step(Action::Discrete(index))
            }
            ActionSpace::Box { low, high } => {
                let values: Vec<f32> = low.iter().zip(&high).map(|(low, high)| self.random.random_range(*low..=*high)).collect();
                self.step(Action::Continuous(&values))
            }
        }
    }

    pub(crate) fn picture(&self) -> Picture {
        let picture = self.environment.picture().expect("it can be drawn");
        assert_eq!(picture.bytes.len(), picture.width * picture.height * 3);
        picture
    }

    /// What is observed, as floats.
    pub(crate) fn observed(&self) -> Vec<f64> {
        match &self.observation {
            ValueBuffer::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            ValueBuffer::U8(values) => values.iter().map(|&value| f64::from(value)).collect(),
        }
    }
}

/// An environment of somebody who drew nothing.
pub(crate) struct Undrawn(pub(crate) Box<dyn Environment>);

impl Environment for Undrawn {
    fn spec(&self) -> &EnvironmentSpec {
        self.0.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.0.reset(seed, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        self.0.step(action, observation)
    }
}
