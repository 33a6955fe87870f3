//! Shrinks a grey image as OpenCV's `resize(..., INTER_AREA)` does, byte for byte.
//!
//! A pixel of the small image is the mean of the area that it covers in the large one. OpenCV sums along the rows first, then
//! down the columns, in `f32`; the same sums in the same order give the same bytes, also where a mean lies between two of them.
//! Where both lengths shrink by whole numbers OpenCV has other sums, which are not here: the least
//! `screen_size` keeps clear of them.

/// A large pixel of which a smaller share is covered is left out.
const SMALLEST_SHARE: f64 = 1e-3;

/// How one length is shrunk: each pixel of the small image, and the pixels that it covers.
struct Axis {
    /// For each small pixel the first large one that it reads.
    starts: Vec<usize>,
    /// How many large pixels each small one reads.
    taps: usize,
    /// Small pixels x taps: what part of the mean a large pixel is. Zero for those that are read without being covered.
    weights: Vec<f32>,
}

impl Axis {
    fn new(large: usize, small: usize) -> Self {
        // As OpenCV computes it.
        let scale = 1.0 / (small as f64 / large as f64);
        let covered: Vec<(usize, Vec<f32>)> = (0..small).map(|pixel| cover(large, scale, pixel)).collect();
        let taps = covered.iter().map(|(_, weights)| weights.len()).max().unwrap_or(0);
        let mut axis = Self { starts: Vec::with_capacity(small), taps, weights: vec![0.0; small * taps] };
        for ((first, weights), row) in covered.iter().zip(axis.weights.chunks_exact_mut(taps)) {
            // The last ones read earlier pixels, too, so that all read as many.
            let start = (*first).min(large - taps);
            row[first - start..][..weights.len()].copy_from_slice(weights);
            axis.starts.push(start);
        }
        axis
    }

    /// First large pixel and weights of each small one.
    fn pixels(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.starts.iter().copied().zip(self.weights.chunks_exact(self.taps))
    }
}

/// The first large pixel that the small one covers, and the weights from there on.
fn cover(large: usize, scale: f64, pixel: usize) -> (usize, Vec<f32>) {
    let begin = pixel as f64 * scale;
    let end = begin + scale;
    let area = scale.min(large as f64 - begin);
    let last = (end.floor() as usize).min(large - 1);
    let mut first = (begin.ceil() as usize).min(last);
    let whole = last - first;
    let mut weights = Vec::new();
    if first as f64 - begin > SMALLEST_SHARE {
        weights.push(((first as f64 - begin) / area) as f32);
        first -= 1;
    }
    weights.extend(std::iter::repeat_n((1.0 / area) as f32, whole));
    if end - last as f64 > SMALLEST_SHARE {
        weights.push(((end - last as f64).min(1.0).min(area) / area) as f32);
    }
    (first, weights)
}

/// Shrinks images of one size to squares of another.
pub(super) struct AreaResize {
    columns: usize,
    across: Axis,
    down: Axis,
    /// Small pixels of one large row.
    row: Vec<f32>,
    /// Sums of a small row.
    sums: Vec<f32>,
}

impl AreaResize {
    /// Shrinks from `rows` x `columns` to `size` x `size`, which must not be larger.
    pub(super) fn new(rows: usize, columns: usize, size: usize) -> Self {
        assert!((1..=rows.min(columns)).contains(&size), "{rows} x {columns} pixels cannot be shrunk to {size} x {size}");
        Self { columns, across: Axis::new(columns, size), down: Axis::new(rows, size), row: vec![0.0; size], sums: vec![0.0; size] }
    }

    /// Shrink `image` (rows x columns) into `frame` (size x size).
    pub(super) fn shrink(&mut self, image: &[u8], frame: &mut [u8]) {
        let columns = self.columns;
        let mut summed = None;
        for ((start, weights), small) in self.down.pixels().zip(frame.chunks_exact_mut(self.row.len())) {
            self.sums.fill(0.0);
            for (index, &weight) in (start..).zip(weights).filter(|(_, weight)| **weight != 0.0) {
                let large = &image[index * columns..][..columns];
                // Most rows of a game look like the one above them; then the sums are the same, too.
                let same = summed.is_some_and(|before: usize| before == index || image[before * columns..][..columns] == *large);
                if !same {
                    sum_across(&self.across, large, &mut self.row);
                }
                summed = Some(index);
                for (sum, value) in self.sums.iter_mut().zip(&self.row) {
                    *sum += weight * value;
                }
            }
            for (byte, sum) in small.iter_mut().zip(&self.sums) {
                *byte = nearest(*sum);
            }
        }
    }
}

/// The small pixels of a large row. The usual numbers of taps are known to the compiler, which then writes the sums out.
fn sum_across(across: &Axis, large: &[u8], row: &mut [f32]) {
    match across.taps {
        3 => sum_taps::<3>(across, large, row),
        5 => sum_taps::<5>(across, large, row),
        _ => {
            for (sum, (start, weights)) in row.iter_mut().zip(across.pixels()) {
                *sum = large[start..].iter().zip(weights).fold(0.0, |sum, (&value, weight)| sum + f32::from(value) * weight);
            }
        }
    }
}

fn sum_taps<const TAPS: usize>(across: &Axis, large: &[u8], row: &mut [f32]) {
    let (weights, _) = across.weights.as_chunks::<TAPS>();
    for (sum, (&start, weights)) in row.iter_mut().zip(across.starts.iter().zip(weights)) {
        let pixels: &[u8] = &large[start..start + TAPS];
        *sum = 0.0;
        for tap in 0..TAPS {
            *sum += f32::from(pixels[tap]) * weights[tap];
        }
    }
}

/// The whole number nearest to `value` (0 to 255), the even one of two. The last bits of a number from 2^23 on are units, so the
/// addition rounds; `f32::round_ties_even` is a call on processors without SSE 4.1.
fn nearest(value: f32) -> u8 {
    const UNITS: f32 = (1 << 23) as f32;
    (value + UNITS).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_image_stays_plain() {
        for (rows, size) in [(210, 84), (210, 42), (250, 84), (214, 160), (220, 21)] {
            let mut resize = AreaResize::new(rows, 160, size);
            for value in [0, 1, 127, 128, 254, 255] {
                let mut frame = vec![7; size * size];
                resize.shrink(&vec![value; rows * 160], &mut frame);
                assert!(frame.iter().all(|&byte| byte == value), "{rows} rows to {size}: {value}");
            }
        }
    }

    #[test]
    fn every_large_pixel_counts_as_much_as_its_area() {
        for (large, small) in [(160, 84), (210, 84), (160, 42), (210, 42), (250, 84), (230, 33), (160, 160)] {
            let axis = Axis::new(large, small);
            let mut shares = vec![0.0; large];
            for (start, weights) in axis.pixels() {
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{large} to {small}");
                for (share, weight) in shares[start..].iter_mut().zip(weights) {
                    *share += weight;
                }
            }
            let expected = small as f32 / large as f32;
            assert!(shares.iter().all(|share| (share - expected).abs() < 1e-3), "{large} to {small}: {shares:?}");
        }
    }

    #[test]
    fn a_mean_between_two_bytes_becomes_the_even_one() {
        assert_eq!([0.5, 1.5, 2.5, 253.5, 254.5, 254.500_02, 255.000_02].map(nearest), [0, 2, 2, 254, 254, 255, 255]);
    }

    /// `cv2.resize(image, (3, 3), interpolation=cv2.INTER_AREA)` of OpenCV 5.0.0, with `image[row][column] = (row * 37 + column *
    /// 101) % 256` of 5 x 4 pixels. Whole screens are compared in `tests/python/atari_parity.rs`.
    #[test]
    fn a_small_image_is_shrunk_as_by_opencv() {
        let image: Vec<u8> = (0..5).flat_map(|row| (0..4).map(move |column| (row * 37 + column * 101) as u8)).collect();
        let mut frame = [0; 9];
        AreaResize::new(5, 4, 3).shrink(&image, &mut frame);
        assert_eq!(frame, OPENCV_FRAME);
    }

    const OPENCV_FRAME: [u8; 9] = [40, 166, 101, 99, 123, 109, 158, 157, 155];

    #[test]
    fn rows_that_repeat_are_shrunk_as_if_each_were_new() {
        let mut repeated: Vec<u8> = (0..210 * 160).map(|index| (index / 160 / 3 * 83 + index % 160 * 7) as u8).collect();
        let mut resize = AreaResize::new(210, 160, 84);
        let mut frame = vec![0; 84 * 84];
        resize.shrink(&repeated, &mut frame);
        let before = frame.clone();
        // One pixel of a row that repeats the one above it.
        let (row, column) = (100, 80);
        repeated[row * 160 + column] ^= 0x80;
        resize.shrink(&repeated, &mut frame);
        let changed: Vec<usize> = (0..frame.len()).filter(|&index| frame[index] != before[index]).collect();
        assert_eq!(changed, [row * 84 / 210 * 84 + column * 84 / 160]);
    }
}
