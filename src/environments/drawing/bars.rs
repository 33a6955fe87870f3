//! What an agent observes, where the environment itself draws nothing: bars of numbers, or an image's own pixels.

use super::canvas::{BLUE, Canvas, GREY, PAPER, RED};
use super::{Picture, screen};
use crate::environments::ObservationSpace;
use crate::values::Values;

/// Width and height of a picture of bars.
const SIZE: [u32; 2] = [400, 240];
/// Numbers that have a bar; of more, the first.
const MOST_BARS: usize = 64;
/// Rows and columns that a small image is enlarged to, at least.
const LEAST_SIDE: usize = 160;
/// Rows or columns that it is not enlarged beyond.
const MOST_SIDE: usize = 640;

/// What an agent observes, for people to look at where the environment draws nothing: an image's own pixels, else bars of the first
/// numbers. `observation` is one of `space`.
pub fn bars(space: &ObservationSpace, observation: Values<'_>) -> Picture {
    match (observation, space.shape.as_slice()) {
        // The newest of the planes is the last.
        (Values::U8(bytes), &[.., rows, columns]) if rows * columns > 0 => {
            // Never so large that one long side makes it enormous.
            let block = (LEAST_SIDE / rows.min(columns)).min(MOST_SIDE / rows.max(columns)).max(1);
            screen(&bytes[bytes.len() - rows * columns..], [rows, columns], [block, block])
        }
        (Values::U8(bytes), _) => drawn(bytes.iter().map(|&byte| f64::from(byte) / 255.0)),
        (Values::F32(values), _) => drawn(values.iter().map(|&value| squashed(f64::from(value)))),
    }
}

/// Within -1 and 1, whatever the unit: what grows without bound still moves.
fn squashed(value: f64) -> f64 {
    if value.is_finite() { value / (1.0 + value.abs()) } else { 0.0 }
}

fn drawn(heights: impl Iterator<Item = f64>) -> Picture {
    let heights: Vec<f64> = heights.take(MOST_BARS).collect();
    let [width, height] = SIZE.map(f64::from);
    let mut canvas = Canvas::new(SIZE, PAPER, [0.0, (height / 2.0) as f32], 1.0);
    canvas.line(&[[0.0, 0.0], [width, 0.0]], 1.0, GREY);
    let room = width / heights.len().max(1) as f64;
    for (index, bar) in heights.iter().enumerate() {
        let top = bar * (height / 2.0 - 8.0);
        let colour = if *bar < 0.0 { RED } else { BLUE };
        canvas.rectangle([index as f64 * room + 0.1 * room, top.min(0.0)], [0.8 * room, top.abs()], colour);
    }
    canvas.into_picture()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bars_upwards_and_downwards_and_images_are_themselves() {
        let space = ObservationSpace { shape: vec![2], ..ObservationSpace::bytes(&[2]) };
        let picture = bars(&space, Values::F32(&[9.0, -9.0]));
        assert_eq!((picture.width, picture.height), (400, 240));
        assert_eq!((picture.pixel(100, 60), picture.pixel(100, 180)), (BLUE, PAPER));
        assert_eq!((picture.pixel(300, 60), picture.pixel(300, 180)), (PAPER, RED));
        let image = ObservationSpace::bytes(&[2, 1, 2]);
        let picture = bars(&image, Values::U8(&[1, 2, 30, 40]));
        assert_eq!((picture.pixel(0, 0), picture.pixel(picture.width - 1, 0)), ([30; 3], [40; 3]));
    }

    #[test]
    fn whatever_is_observed_is_drawn() {
        let space = ObservationSpace { shape: vec![3], ..ObservationSpace::bytes(&[3]) };
        bars(&space, Values::F32(&[f32::NAN, f32::INFINITY, f32::MAX]));
        bars(&space, Values::F32(&[]));
        bars(&space, Values::F32(&[0.5; 1000]));
    }
}
