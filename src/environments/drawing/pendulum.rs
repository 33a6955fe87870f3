//! The pendulum.

use super::Picture;
use super::canvas::{Canvas, INK, PALE, PAPER, RED};

/// Half of what is seen, in lengths of the pendulum.
const SEEN: f64 = 2.2;
const SIDE: u32 = 500;

/// The pendulum; its angle of zero is upright and grows to the left.
pub(in crate::environments) fn pendulum(angle: f64) -> Picture {
    let middle = SIDE as f32 / 2.0;
    let mut canvas = Canvas::new([SIDE; 2], PAPER, [middle; 2], (f64::from(SIDE) / (2.0 * SEEN)) as f32);
    canvas.disc([0.0, 0.0], 1.02, PALE);
    canvas.disc([0.0, 0.0], 1.0, PAPER);
    canvas.line(&[[0.0, 0.0], [-angle.sin(), angle.cos()]], 0.2, RED);
    canvas.disc([0.0, 0.0], 0.06, INK);
    canvas.into_picture()
}
