//! The board of Catch.

use super::Picture;
use super::canvas::{BLUE, Canvas, INK, ORANGE};

const PIXELS_PER_CELL: u32 = 40;

/// The board with ball and paddle; rows are counted from the top.
pub(in crate::environments) fn catch([rows, columns]: [usize; 2], [ball_row, ball_column]: [usize; 2], paddle_column: usize) -> Picture {
    let size = [columns, rows].map(|cells| cells as u32 * PIXELS_PER_CELL);
    let mut canvas = Canvas::new(size, INK, [0.0, size[1] as f32], PIXELS_PER_CELL as f32);
    canvas.rectangle([paddle_column as f64 + 0.05, 0.1], [0.9, 0.3], BLUE);
    canvas.disc([ball_column as f64 + 0.5, (rows - ball_row) as f64 - 0.5], 0.35, ORANGE);
    canvas.into_picture()
}
