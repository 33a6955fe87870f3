//! The court of Rally, sharper than the agent sees it.

use super::Picture;
use super::canvas::{BLUE, Canvas, Colour, GREY, INK, ORANGE, Point, RED};

/// Pixels of the picture per pixel of the screen.
const SCALE: f64 = 10.0;

/// A block of the screen, in its pixels; rows are counted downwards.
#[derive(Clone, Copy)]
pub(in crate::environments) struct Block {
    pub(in crate::environments) column: f64,
    pub(in crate::environments) row: f64,
    pub(in crate::environments) width: f64,
    pub(in crate::environments) height: f64,
}

impl Block {
    /// As the canvas counts: lower left corner, then width and height.
    fn on_canvas(self) -> (Point, Point) {
        ([self.column, -self.row - self.height], [self.width, self.height])
    }
}

/// What is on the screen of a game.
pub(in crate::environments) struct Scene {
    pub(in crate::environments) screen: u32,
    /// Rows above the court.
    pub(in crate::environments) court_top: f64,
    pub(in crate::environments) ball: Block,
    pub(in crate::environments) agent: Block,
    pub(in crate::environments) opponent: Block,
    pub(in crate::environments) agent_points: Vec<Block>,
    pub(in crate::environments) opponent_points: Vec<Block>,
}

impl Scene {
    pub(in crate::environments) fn draw(&self) -> Picture {
        let side = f64::from(self.screen);
        let mut canvas = Canvas::new([(side * SCALE) as u32; 2], INK, [0.0; 2], SCALE as f32);
        canvas.line(&[[0.0, -self.court_top], [side, -self.court_top]], 0.3, GREY);
        canvas.line(&[[side / 2.0, -self.court_top], [side / 2.0, -side]], 0.1, GREY);
        let mut blocks = |blocks: &[Block], colour: Colour| {
            for block in blocks {
                let (corner, size) = block.on_canvas();
                canvas.rectangle(corner, size, colour);
            }
        };
        blocks(&[self.agent], BLUE);
        blocks(&self.agent_points, BLUE);
        blocks(&[self.opponent], RED);
        blocks(&self.opponent_points, RED);
        let ([left, bottom], [width, height]) = self.ball.on_canvas();
        canvas.disc([left + width / 2.0, bottom + height / 2.0], width / 2.0, ORANGE);
        canvas.into_picture()
    }
}
