//! An emulator of a game that is nothing but rules, for tests of what surrounds it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use super::emulator::{Emulator, Ending, Input};
use crate::environments::{EnvironmentError, Moment};

/// A call of one of the emulator's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Load(i32),
    Start,
    Frame(Input),
}

/// A game of 210 x 160 pixels, all of which have a shade that tells the frame. Some frames cost a life or end the game.
pub(super) struct Scripted {
    pub(super) calls: Rc<RefCell<Vec<Call>>>,
    /// Frames of a game, counted from its start, in which a life is lost.
    pub(super) costs_a_life: Vec<u32>,
    pub(super) terminates_at: u32,
    pub(super) truncates_at: u32,
    pub(super) points_per_frame: f64,
    pub(super) frame: u32,
}

pub(super) const LIVES: u32 = 3;

impl Default for Scripted {
    fn default() -> Self {
        let never = u32::MAX;
        Self { calls: Rc::default(), costs_a_life: Vec::new(), terminates_at: never, truncates_at: never, points_per_frame: 1.0, frame: 0 }
    }
}

impl Scripted {
    /// The shade of the screen after so many frames. Odd frames are darker than those before them, as where games flicker.
    pub(super) fn shade(frame: u32) -> u8 {
        (frame % 100 + if frame.is_multiple_of(2) { 100 } else { 0 }) as u8
    }
}

impl Emulator for Scripted {
    type Fault = Infallible;

    fn screen_size(&self) -> [usize; 2] {
        [210, 160]
    }

    fn actions(&self) -> usize {
        4
    }

    fn has_fire(&self) -> bool {
        true
    }

    fn load(&mut self, seed: i32) -> Result<(), Infallible> {
        self.calls.borrow_mut().push(Call::Load(seed));
        Ok(())
    }

    fn start(&mut self) -> Result<(), Infallible> {
        self.calls.borrow_mut().push(Call::Start);
        self.frame = 0;
        Ok(())
    }

    fn frame(&mut self, input: Input) -> Result<f64, Infallible> {
        self.calls.borrow_mut().push(Call::Frame(input));
        self.frame += 1;
        Ok(self.points_per_frame)
    }

    fn ending(&self) -> Result<Ending, Infallible> {
        Ok(Ending { terminated: self.frame >= self.terminates_at, truncated: self.frame >= self.truncates_at })
    }

    fn lives(&self) -> Result<u32, Infallible> {
        let lost = self.costs_a_life.iter().filter(|&&frame| frame <= self.frame).count() as u32;
        Ok(if self.frame >= self.terminates_at { 0 } else { LIVES - lost })
    }

    fn show(&mut self, screen: &mut [u8]) -> Result<(), Infallible> {
        screen.fill(Self::shade(self.frame));
        Ok(())
    }

    fn error(fault: Infallible, _: &str, _: Moment) -> EnvironmentError {
        match fault {}
    }
}
