//! An environment that shows bytes, and its screen.

use shoal::environments::{Action, Environment, Step, make};
use shoal::values::ValuesMut;

pub(crate) struct Game {
    environment: Box<dyn Environment>,
    /// What is shown.
    pub(crate) screen: Vec<u8>,
}

impl Game {
    pub(crate) fn new(id: &str) -> Self {
        let environment = make(id).expect("the game is native");
        // Neither 0 nor 255: what is not written would be seen.
        let screen = vec![7; environment.spec().observation.len()];
        Self { environment, screen }
    }

    pub(crate) fn reset(&mut self, seed: Option<u64>) {
        self.environment.reset(seed, ValuesMut::U8(&mut self.screen)).expect("a native game can be reset");
    }

    pub(crate) fn step(&mut self, action: usize) -> Step {
        self.environment.step(Action::Discrete(action), ValuesMut::U8(&mut self.screen)).expect("the episode goes on")
    }
}
