//! An animated GIF: every browser and every chat plays it.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use gif::{Encoder, EncodingError, Frame, Repeat};

use super::format::{Animation, check_size};
use crate::environments::Picture;

/// The most colours of a picture in a GIF, one of which may be transparent.
const MOST_COLOURS: usize = 256;
/// The upper bits of each of red, green and blue, which are kept: with all eight, smooth edges would have too many colours.
const KEPT_BITS: u8 = 0b1111_1000;
/// Speed, from 1 (best) to 30, of the search for a palette if a picture still has more than [`MOST_COLOURS`].
const QUANTISATION_SPEED: i32 = 10;

/// A GIF that is being written; viewers play it in a loop.
pub(super) struct Gif<W: Write> {
    encoder: Encoder<BufWriter<W>>,
    last: Picture,
}

impl<W: Write> Gif<W> {
    /// Begin with `picture`, which is seen for so many hundredths of a second.
    pub(super) fn begin(writer: W, picture: Picture, hundredths: u16) -> io::Result<Self> {
        if picture.width.max(picture.height) > usize::from(u16::MAX) || picture.width.min(picture.height) == 0 {
            return Err(io::Error::other(format!("no GIF has {} x {} pixels", picture.width, picture.height)));
        }
        let picture = with_few_colours(picture);
        let mut encoder = Encoder::new(BufWriter::new(writer), word(picture.width), word(picture.height), &[]).map_err(as_io)?;
        encoder.set_repeat(Repeat::Infinite).map_err(as_io)?;
        let all = Area { left: 0, top: 0, right: picture.width, bottom: picture.height };
        encoder.write_frame(&frame(&picture, None, all, hundredths)).map_err(as_io)?;
        Ok(Self { encoder, last: picture })
    }
}

impl<W: Write> Animation for Gif<W> {
    /// Only what has changed is written.
    fn add(&mut self, picture: Picture, hundredths: u16) -> io::Result<()> {
        check_size([self.last.width, self.last.height], &picture)?;
        let picture = with_few_colours(picture);
        let area = changed(&self.last, &picture);
        self.encoder.write_frame(&frame(&picture, Some(&self.last), area, hundredths)).map_err(as_io)?;
        self.last = picture;
        Ok(())
    }

    fn end(self: Box<Self>) -> io::Result<()> {
        self.encoder.into_inner().map_err(as_io)?.flush()
    }
}

fn as_io(error: EncodingError) -> io::Error {
    match error {
        EncodingError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Sides of a GIF and places in it are words of two bytes.
fn word(pixels: usize) -> u16 {
    u16::try_from(pixels).expect("larger pictures are refused")
}

fn with_few_colours(mut picture: Picture) -> Picture {
    // The upper bits fill the lower ones, so that white stays white.
    picture.bytes.iter_mut().for_each(|value| *value = *value & KEPT_BITS | *value >> 5);
    picture
}

/// Columns from `left` to before `right`, rows from `top` to before `bottom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

/// The smallest area outside of which two pictures of one size are equal; one pixel if they are equal everywhere.
fn changed(before: &Picture, after: &Picture) -> Area {
    let mut area: Option<Area> = None;
    let rows = before.bytes.chunks_exact(before.width * 3).zip(after.bytes.chunks_exact(after.width * 3));
    for (row, (before, after)) in rows.enumerate().filter(|(_, (before, after))| before != after) {
        let differs = |(before, after): (&[u8], &[u8])| before != after;
        let mut pixels = before.chunks_exact(3).zip(after.chunks_exact(3));
        let left = pixels.clone().position(differs).unwrap_or(0);
        let right = pixels.rposition(differs).unwrap_or(0) + 1;
        let first = Area { left, top: row, right, bottom: row };
        let Area { left: leftmost, right: rightmost, .. } = *area.get_or_insert(first);
        area = area.map(|area| Area { left: left.min(leftmost), right: right.max(rightmost), bottom: row + 1, ..area });
    }
    area.unwrap_or(Area { left: 0, top: 0, right: 1, bottom: 1 })
}

/// The `area` of `picture`. Pixels that equal those of `before` become transparent if there are few enough colours, which compresses
/// better.
fn frame(picture: &Picture, before: Option<&Picture>, area: Area, hundredths: u16) -> Frame<'static> {
    let mut pixels = Vec::with_capacity((area.right - area.left) * (area.bottom - area.top) * 4);
    for row in area.top..area.bottom {
        for column in area.left..area.right {
            let colour = picture.pixel(column, row);
            let is_new = before.is_none_or(|before| before.pixel(column, row) != colour);
            pixels.extend(if is_new { [colour[0], colour[1], colour[2], u8::MAX] } else { [0; 4] });
        }
    }
    // The search for a palette would take transparency for a colour, and make pixels transparent whose colour is nearest to it.
    if before.is_some() && has_too_many_colours(&pixels) {
        return frame(picture, None, area, hundredths);
    }
    let (width, height) = (word(area.right - area.left), word(area.bottom - area.top));
    let frame = Frame::from_rgba_speed(width, height, &mut pixels, QUANTISATION_SPEED);
    Frame { left: word(area.left), top: word(area.top), delay: hundredths, ..frame }
}

/// Whether `pixels`, of four bytes each, have so many colours that a palette is searched for.
fn has_too_many_colours(pixels: &[u8]) -> bool {
    let mut colours = HashSet::new();
    pixels.chunks_exact(4).any(|pixel| colours.insert(pixel) && colours.len() > MOST_COLOURS)
}

#[cfg(test)]
mod tests {
    use gif::{ColorOutput, DecodeOptions};
    use proptest::prelude::*;

    use super::*;

    const WIDTH: usize = 7;
    const HEIGHT: usize = 5;

    /// What a viewer has on its screen of that many columns and rows after each picture, and how long each is seen.
    fn played(bytes: &[u8], [columns, rows]: [usize; 2]) -> Vec<(Vec<u8>, u16)> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        let mut decoder = options.read_info(bytes).expect("it is a GIF");
        assert_eq!([decoder.width(), decoder.height()].map(usize::from), [columns, rows]);
        let mut screen = vec![0; columns * rows * 3];
        let mut seen = Vec::new();
        while let Some(frame) = decoder.read_next_frame().expect("a whole picture") {
            for (index, pixel) in frame.buffer.chunks_exact(4).enumerate().filter(|(_, pixel)| pixel[3] != 0) {
                let (column, row) = (index % frame.width as usize, index / frame.width as usize);
                let first = ((frame.top as usize + row) * columns + frame.left as usize + column) * 3;
                screen[first..first + 3].copy_from_slice(&pixel[..3]);
            }
            seen.push((screen.clone(), frame.delay));
        }
        seen
    }

    #[test]
    fn what_is_played_is_what_was_added() {
        // Few pixels differ between pictures, as in a video; each is one of few colours.
        let colours = [[0, 0, 0], [255, 255, 255], [217, 83, 60], [58, 124, 196]];
        let change = (0..WIDTH * HEIGHT, 0..colours.len());
        proptest!(|(changes in prop::collection::vec(prop::collection::vec(change, 0..4), 1..12))| {
            let mut picture = Picture { width: WIDTH, height: HEIGHT, bytes: vec![200; WIDTH * HEIGHT * 3] };
            let mut added = vec![with_few_colours(picture.clone()).bytes];
            let mut file = Vec::new();
            let mut animation = Box::new(Gif::begin(&mut file, picture.clone(), 7).expect("memory takes everything"));
            for changes in &changes {
                for &(pixel, colour) in changes {
                    picture.bytes[pixel * 3..][..3].copy_from_slice(&colours[colour]);
                }
                animation.add(picture.clone(), 9).expect("memory takes everything");
                added.push(with_few_colours(picture.clone()).bytes);
            }
            animation.end().expect("memory takes everything");
            let played = played(&file, [WIDTH, HEIGHT]);
            prop_assert_eq!(played.len(), added.len());
            for (index, (played, added)) in played.iter().zip(&added).enumerate() {
                prop_assert_eq!(&played.0, added, "picture {}", index);
                prop_assert_eq!(played.1, if index == 0 { 7 } else { 9 });
            }
        });
    }

    #[test]
    fn nothing_of_the_last_picture_shows_through_one_of_many_colours() {
        const SIDE: usize = 200;
        const BEFORE: [u8; 3] = [255, 0, 255];
        let mut picture = Picture { width: SIDE, height: SIDE, bytes: BEFORE.repeat(SIDE * SIDE) };
        let mut file = Vec::new();
        let mut animation = Box::new(Gif::begin(&mut file, picture.clone(), 7).expect("memory takes everything"));
        // To the one black pixel among 512 bright colours nothing that the search finds is as near as what is transparent.
        for (index, pixel) in picture.bytes.chunks_exact_mut(3).enumerate() {
            let (column, row) = (index % SIDE, index / SIDE);
            pixel.copy_from_slice(&match (column, row) {
                (100, 100) => [0; 3],
                (1, 1) => BEFORE,
                _ => [column, row, column / 8 + row / 8].map(|level| 192 + 8 * (level % 8) as u8),
            });
        }
        animation.add(picture.clone(), 9).expect("memory takes everything");
        animation.end().expect("memory takes everything");
        let (screen, _) = &played(&file, [SIDE, SIDE])[1];
        let pixels = screen.chunks_exact(3).zip(picture.bytes.chunks_exact(3));
        assert_eq!(pixels.filter(|(seen, meant)| *seen == BEFORE && *meant != BEFORE).count(), 0);
    }

    #[test]
    fn colours_stay_within_a_few_shades_and_white_stays_white() {
        let picture = Picture { width: 256, height: 1, bytes: (0..=255).flat_map(|shade| [shade; 3]).collect() };
        let few = with_few_colours(picture.clone());
        assert!(few.bytes.iter().zip(&picture.bytes).all(|(few, many)| few.abs_diff(*many) <= 7));
        assert_eq!((few.pixel(0, 0), few.pixel(255, 0)), ([0; 3], [255; 3]));
    }
}
