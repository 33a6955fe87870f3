//! The two links of the acrobot.

use super::Picture;
use super::canvas::{BLUE, Canvas, GREY, INK, ORANGE, PAPER};

/// Half of what is seen, in lengths of a link.
const SEEN: f64 = 2.2;
const SIDE: u32 = 500;

/// The links, with the line at `goal_height` above the pivot. An angle of zero hangs down; the second is relative to the first link.
pub(in crate::environments) fn acrobot([angle_1, angle_2]: [f64; 2], goal_height: f64) -> Picture {
    let middle = SIDE as f32 / 2.0;
    let mut canvas = Canvas::new([SIDE; 2], PAPER, [middle; 2], (f64::from(SIDE) / (2.0 * SEEN)) as f32);
    canvas.line(&[[-SEEN, goal_height], [SEEN, goal_height]], 0.02, GREY);
    let pivot = [0.0, 0.0];
    let joint = [angle_1.sin(), -angle_1.cos()];
    let tip = [joint[0] + (angle_1 + angle_2).sin(), joint[1] - (angle_1 + angle_2).cos()];
    canvas.line(&[pivot, joint], 0.18, BLUE);
    canvas.line(&[joint, tip], 0.18, ORANGE);
    for axle in [pivot, joint] {
        canvas.disc(axle, 0.06, INK);
    }
    canvas.into_picture()
}
