//! What the games need of an emulator of the Atari 2600.

use crate::environments::{EnvironmentError, Moment};

/// What is held for one emulated frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing.
    Nothing,
    /// The button alone; only for games that have this action.
    Fire,
    /// The action of this number among those that the game knows.
    Action(usize),
}

/// Whether a game is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ending {
    /// It was lost or won.
    pub(super) terminated: bool,
    /// It has taken as many frames as a game may.
    pub(super) truncated: bool,
}

impl Ending {
    pub(super) fn is_over(self) -> bool {
        self.terminated || self.truncated
    }
}

/// An Atari 2600 with one game in it.
pub(super) trait Emulator {
    /// What can go wrong; afterwards the game is of no more use until it is reset.
    type Fault;

    /// Rows and columns of the screen.
    fn screen_size(&self) -> [usize; 2];

    /// How many actions the game knows (ALE's minimal action set).
    fn actions(&self) -> usize;

    /// Whether pressing the button alone is one of them.
    fn has_fire(&self) -> bool;

    /// Plug the game in anew, with random numbers from `seed`.
    fn load(&mut self, seed: i32) -> Result<(), Self::Fault>;

    /// Start a game; its random numbers go on.
    fn start(&mut self) -> Result<(), Self::Fault>;

    /// Emulate one frame. Returns the points made in it.
    fn frame(&mut self, input: Input) -> Result<f64, Self::Fault>;

    /// Whether the game is over.
    fn ending(&self) -> Result<Ending, Self::Fault>;

    /// Lives that are left; 0 in a game that has none.
    fn lives(&self) -> Result<u32, Self::Fault>;

    /// Write the screen in shades of grey, rows x columns.
    fn show(&mut self, screen: &mut [u8]) -> Result<(), Self::Fault>;

    /// `fault` in words for the user of the environment `id`.
    fn error(fault: Self::Fault, id: &str, during: Moment) -> EnvironmentError;
}
