//! What an agent observes, where the environment itself draws nothing: bars of numbers, or an image's own pixels.

use std::borrow::Cow;

use super::canvas::{BLUE, Canvas, GREY, PAPER, RED};
use super::{Picture, screen};
use crate::environments::ObservationSpace;
use crate::values::Values;

/// Width and height of a picture of bars.
const SIZE: [u32; 2] = [400, 240];
/// The most bars of a picture: of more numbers, the first have one.
const MOST_BARS: usize = 64;
/// Rows and columns that a small image is enlarged to, at least.
const LEAST_SIDE: usize = 160;
/// Rows or columns beyond which a small image is not enlarged.
const MOST_SIDE: usize = 640;

/// What an agent observes, for people to look at where the environment draws nothing: an image's own pixels, else bars of the first
/// numbers. `observation` is one of `space`.
pub fn bars(space: &ObservationSpace, observation: Values<'_>) -> Picture {
    match (shades(space, observation), space.shape.as_slice()) {
        (Some(planes), &[channels, rows, columns]) if channels == 3 * space.stack => image(&planes, [rows, columns], [2, 1, 0]),
        (Some(planes), &[.., rows, columns]) => image(&planes, [rows, columns], [0; 3]),
        _ => match observation {
            Values::U8(bytes) => drawn(bytes.iter().map(|&byte| f64::from(byte) / 255.0)),
            Values::F32(values) => drawn(values.iter().map(|&value| squashed(f64::from(value)))),
        },
    }
}

/// The planes of an image, pixel after pixel: bytes, or floats that are bound to lie within 0 and 255, or within 0 and 1. Frames that are
/// rows of numbers are no image, however many are stacked.
fn shades<'a>(space: &ObservationSpace, observation: Values<'a>) -> Option<Cow<'a, [u8]>> {
    if space.shape.len() < 2 + usize::from(space.stack > 1) || space.is_empty() {
        return None;
    }
    match observation {
        Values::U8(bytes) => Some(Cow::Borrowed(bytes)),
        Values::F32(values) => {
            let white = [255.0, 1.0].into_iter().find(|&white| space.has_bounds(0.0, white))?;
            Some(values.iter().map(|&value| (value / white * 255.0).round() as u8).collect())
        }
    }
}

/// The newest image in `planes`, which ends with the last plane. `before_last` says how many planes before the last its red, green and
/// blue lie.
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
    fn floats_within_the_bounds_of_shades_are_drawn_as_bytes_are() {
        let bytes = [200_u8, 100, 50, 1, 2, 255];
        for stack in [1, 2] {
            let seen = ObservationSpace { stack, ..ObservationSpace::bytes(&[3 * stack, 2 / stack, 1]) };
            let picture = bars(&seen, Values::U8(&bytes));
            for white in [1.0, 255.0] {
                let floats = ObservationSpace { element: ValueType::F32, high: vec![white; 6], ..seen.clone() };
                let values = bytes.map(|byte| f32::from(byte) / 255.0 * white);
                assert_eq!(bars(&floats, Values::F32(&values)), picture, "{stack} frames of floats up to {white}");
            }
        }
    }

    #[test]
    fn numbers_that_are_stacked_are_no_image() {
        let space = ObservationSpace { stack: 2, element: ValueType::F32, high: vec![1.0; 4], ..ObservationSpace::bytes(&[2, 2]) };
        assert_eq!(bars(&space, Values::F32(&[0.5; 4])), drawn([squashed(0.5); 4].into_iter()));
    }

    #[test]
    fn whatever_is_observed_is_drawn() {
        let space = ObservationSpace { shape: vec![3], ..ObservationSpace::bytes(&[3]) };
        bars(&space, Values::F32(&[f32::NAN, f32::INFINITY, f32::MAX]));
        bars(&space, Values::F32(&[]));
        bars(&space, Values::F32(&[0.5; 1000]));
    }
}
