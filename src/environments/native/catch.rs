//! `Catch-v0`: a ball falls, and the paddle at the bottom has to be under it. The smallest task that is learned from an image.
//!
//! The rules are those of `bsuite` 0.3.5 (I. Osband et al., "Behaviour suite for reinforcement learning", 2020): a board of 10 rows and
//! 5 columns, zeros but for the ball and the paddle. An episode starts with the ball in a random column of the first row and the
//! paddle in the middle of the last. In each step the paddle moves one column (action 0 left, 1 not at all, 2 right; the walls stop
//! it), then the ball falls one row. In the ninth step it reaches the last row, and the episode terminates with a reward of +1 if the
//! paddle is there, else -1; all other rewards are 0. Here a pixel that is lit is 255 instead of 1, and the column of the ball is
//! `floor(5 * random())` of NumPy's generator.

use super::Dynamics;
use crate::environments::{ActionSpace, EnvironmentSpec, Generator, ObservationSpace, Picture, drawing};

const ROWS: usize = 10;
const COLUMNS: usize = 5;
const LAST_ROW: usize = ROWS - 1;
const LIT: u8 = 255;

#[derive(Default)]
pub(super) struct Catch {
    ball_row: usize,
    ball_column: usize,
    paddle_column: usize,
}

impl Catch {
    fn observe(&self, observation: &mut [u8]) {
        observation.fill(0);
        observation[self.ball_row * COLUMNS + self.ball_column] = LIT;
        observation[LAST_ROW * COLUMNS + self.paddle_column] = LIT;
    }
}

impl Dynamics for Catch {
    type Action = usize;
    type Value = u8;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec::new("Catch-v0", ObservationSpace::bytes(&[ROWS, COLUMNS]), ActionSpace::Discrete { n: 3 })
    }

    fn reset(&mut self, random: &mut Generator, observation: &mut [u8]) {
        *self = Self { ball_row: 0, ball_column: random.index(COLUMNS), paddle_column: COLUMNS / 2 };
        self.observe(observation);
    }

    fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [u8]) -> (f64, bool) {
        self.paddle_column = (self.paddle_column + action).saturating_sub(1).min(COLUMNS - 1);
        self.ball_row += 1;
        self.observe(observation);

        let terminated = self.ball_row == LAST_ROW;
        let reward = match (terminated, self.paddle_column == self.ball_column) {
            (false, _) => 0.0,
            (true, true) => 1.0,
            (true, false) => -1.0,
        };
        (reward, terminated)
    }

    fn picture(&self) -> Option<Picture> {
        Some(drawing::catch([ROWS, COLUMNS], [self.ball_row, self.ball_column], self.paddle_column))
    }
}
