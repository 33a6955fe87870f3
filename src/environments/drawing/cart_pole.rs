//! The cart and its pole.

use super::Picture;
use super::canvas::{BLUE, Canvas, GREY, INK, ORANGE, PAPER};

/// The part of the track that is seen, in metres: as far to either side as an episode goes.
const SEEN_M: f64 = 4.8;
const SIZE: [u32; 2] = [600, 400];
const POLE_M: f64 = 1.0;

/// The cart at `position_m`, and the pole, whose angle of zero is upright and grows to the right.
pub(in crate::environments) fn cart_pole(position_m: f64, angle: f64) -> Picture {
    let mut canvas = Canvas::new(SIZE, PAPER, [300.0, 300.0], (f64::from(SIZE[0]) / SEEN_M) as f32);
    let x = position_m;
    canvas.line(&[[-SEEN_M, -0.21], [SEEN_M, -0.21]], 0.02, GREY);
    for wheel in [x - 0.12, x + 0.12] {
        canvas.disc([wheel, -0.14], 0.06, GREY);
    }
    canvas.rectangle([x - 0.2, -0.12], [0.4, 0.24], INK);
    let axle = [x, 0.06];
    canvas.line(&[axle, [x + POLE_M * angle.sin(), axle[1] + POLE_M * angle.cos()]], 0.08, ORANGE);
    canvas.disc(axle, 0.035, BLUE);
    canvas.into_picture()
}
