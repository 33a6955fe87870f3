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
        (Values::U8(bytes), &[channels, rows, columns]) if channels == 3 * space.stack && rows * columns > 0 => {
            image(bytes, [rows, columns], [2, 1, 0])
        }
        (Values::U8(bytes), &[.., rows, columns]) if rows * columns > 0 => image(bytes, [rows, columns], [0; 3]),
        // Of floats nobody knows how many planes are one frame.
        (Values::F32(values), &[.., rows, columns]) if space.is_image() => {
            let bytes: Vec<u8> = values.iter().map(|&value| value as u8).collect();
            image(&bytes, [rows, columns], [0; 3])
        }
        (Values::U8(bytes), _) => drawn(bytes.iter().map(|&byte| f64::from(byte) / 255.0)),
        (Values::F32(values), _) => drawn(values.iter().map(|&value| squashed(f64::from(value)))),
    }
}

/// The newest of the `planes`, which is the last: red, green and blue are those that lie so far before it.
fn image(planes: &[u8], [rows, columns]: [usize; 2], before_last: [usize; 3]) -> Picture {
    // Never so large that one long side makes it enormous.
    let block = (LEAST_SIDE / rows.min(columns)).min(MOST_SIDE / rows.max(columns)).max(1);
    let colours = before_last.map(|before| {
        let end = planes.len() - before * rows * columns;
        screen(&planes[end - rows * columns..end], [rows, columns], [block, block])
    });
    let bytes = (0..colours[0].bytes.len()).map(|index| colours[index % 3].bytes[index]).collect();
    Picture { width: colours[0].width, height: colours[0].height, bytes }
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
    use crate::values::ValueType;

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
        let floats = ObservationSpace { element: ValueType::F32, ..image };
        assert!(bars(&floats, Values::F32(&[1.0, 2.0, 30.0, 40.0])).bytes == picture.bytes, "it is the same image");
    }

    #[test]
    fn an_image_of_three_channels_has_their_colours() {
        let image = ObservationSpace::bytes(&[3, 1, 1]);
        assert_eq!(bars(&image, Values::U8(&[200, 100, 50])).pixel(0, 0), [200, 100, 50]);
        let stacked = ObservationSpace { stack: 2, ..ObservationSpace::bytes(&[6, 1, 1]) };
        assert_eq!(bars(&stacked, Values::U8(&[1, 2, 3, 200, 100, 50])).pixel(0, 0), [200, 100, 50]);
        let grey = ObservationSpace { stack: 3, ..image };
        assert_eq!(bars(&grey, Values::U8(&[1, 2, 50])).pixel(0, 0), [50; 3], "three frames are no colours");
    }

    #[test]
    fn whatever_is_observed_is_drawn() {
        let space = ObservationSpace { shape: vec![3], ..ObservationSpace::bytes(&[3]) };
        bars(&space, Values::F32(&[f32::NAN, f32::INFINITY, f32::MAX]));
        bars(&space, Values::F32(&[]));
        bars(&space, Values::F32(&[0.5; 1000]));
    }
}
