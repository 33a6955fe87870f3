//! The car between its hills.

use super::Picture;
use super::canvas::{Canvas, GREEN, GREY, INK, ORANGE, PAPER, Point, RED};

const SIZE: [u32; 2] = [600, 400];
/// Ends of the track.
const LEFT: f64 = -1.2;
const RIGHT: f64 = 0.6;
/// Straight pieces of which the hills are made.
const PIECES: u32 = 100;

fn height(x: f64) -> f64 {
    0.45 * (3.0 * x).sin() + 0.55
}

/// The car at `position` and the flag at `goal`.
pub(in crate::environments) fn mountain_car(position: f64, goal: f64) -> Picture {
    let pixels_per_unit = f64::from(SIZE[0]) / (RIGHT - LEFT);
    let mut canvas = Canvas::new(SIZE, PAPER, [(-LEFT * pixels_per_unit) as f32, SIZE[1] as f32], pixels_per_unit as f32);
    let surface: Vec<Point> =
        (0..=PIECES).map(|piece| LEFT + (RIGHT - LEFT) * f64::from(piece) / f64::from(PIECES)).map(|x| [x, height(x)]).collect();
    let hills = [&surface[..], &[[RIGHT, 0.0], [LEFT, 0.0]]].concat();
    canvas.polygon(&hills, GREEN);
    canvas.line(&surface, 0.008, GREY);

    let top = height(goal) + 0.16;
    canvas.line(&[[goal, height(goal)], [goal, top]], 0.008, INK);
    canvas.polygon(&[[goal, top], [goal, top - 0.06], [goal + 0.08, top - 0.03]], RED);

    // Along the slope and away from it: the car stands on the ground with its wheels.
    let slope = (1.35 * (3.0 * position).cos()).atan();
    let (sine, cosine) = slope.sin_cos();
    let at = |along: f64, above: f64| [position + along * cosine - above * sine, height(position) + along * sine + above * cosine];
    canvas.polygon(&[at(-0.06, 0.02), at(0.06, 0.02), at(0.06, 0.06), at(0.03, 0.08), at(-0.04, 0.08), at(-0.06, 0.06)], ORANGE);
    for wheel in [-0.035, 0.035] {
        canvas.disc(at(wheel, 0.02), 0.02, INK);
    }
    canvas.into_picture()
}
