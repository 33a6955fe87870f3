//! The operations of a window whose places have few channels, or whose kernel is nearly as large as the image: along the runs of a patch
//! instead of across the channels.
//!
//! With two channels for the places most of a vector across them would be empty, and a kernel of half the image's side would find margin in
//! three of four pixels. The runs are long there, and the vectors full.
//!
//! Weights and their gradient have a row of taps for each channel of the places.

use pulp::{Simd, WithSimd};

use super::patches::Patches;

/// Channels of the places that share one pass over a run.
const GROUP: usize = 4;

/// The run of `weights` that belongs to a channel of the places.
#[inline(always)]
fn run_of<'a>(weights: &'a [f32], patches: &Patches, channel: usize, run: usize) -> &'a [f32] {
    &weights[(channel * patches.runs.len() + run) * patches.run..][..patches.run]
}

/// Every place adds the kernel, times its values, to an image.
pub(super) struct Spread<'a> {
    pub(super) patches: &'a Patches,
    pub(super) weights: &'a [f32],
    pub(super) places: &'a [f32],
    pub(super) image: &'a mut [f32],
}

impl WithSimd for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Spread { patches, weights, places, image } = self;
        for (source, values) in patches.sources.iter().zip(places.chunks_exact(patches.columns)) {
            for (run, offset) in patches.runs.iter().enumerate() {
                let target = &mut image[source + offset..][..patches.run];
                for (group, values) in values.chunks(GROUP).enumerate() {
                    let weights = |channel| run_of(weights, patches, group * GROUP + channel, run);
                    match *values {
                        [a, b, c, d] => add_multiples(simd, target, [a, b, c, d], std::array::from_fn(weights)),
                        [a, b, c] => add_multiples(simd, target, [a, b, c], std::array::from_fn(weights)),
                        [a, b] => add_multiples(simd, target, [a, b], std::array::from_fn(weights)),
                        [a] => add_multiples(simd, target, [a], std::array::from_fn(weights)),
                        _ => unreachable!("a group has one to four channels"),
                    }
                }
            }
        }
    }
}

/// Adds each patch of an image, times the values of its place, to the gradient of the weights.
pub(super) struct Outer<'a> {
    pub(super) patches: &'a Patches,
    pub(super) image: &'a [f32],
    pub(super) places: &'a [f32],
    pub(super) gradient: &'a mut [f32],
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Outer { patches, image, places, gradient } = self;
        for (source, values) in patches.sources.iter().zip(places.chunks_exact(patches.columns)) {
            for (gradient, &value) in gradient.chunks_exact_mut(patches.taps()).zip(values) {
                for (gradient, offset) in gradient.chunks_exact_mut(patches.run).zip(&patches.runs) {
                    add_multiples(simd, gradient, [value], [&image[source + offset..][..patches.run]]);
                }
            }
        }
    }
}

/// `target += the rows, each times its value`.
#[inline(always)]
fn add_multiples<S: Simd, const ROWS: usize>(simd: S, target: &mut [f32], values: [f32; ROWS], rows: [&[f32]; ROWS]) {
    let whole = target.len() - target.len() % S::F32_LANES;
    let (vectors, rest) = target.split_at_mut(whole);
    let vectors = S::as_mut_simd_f32s(vectors).0;
    let spread: [S::f32s; ROWS] = std::array::from_fn(|row| simd.splat_f32s(values[row]));
    let row_vectors: [&[S::f32s]; ROWS] = std::array::from_fn(|row| &S::as_simd_f32s(rows[row]).0[..vectors.len()]);
    for (index, target) in vectors.iter_mut().enumerate() {
        let mut sum = *target;
        for row in 0..ROWS {
            sum = simd.mul_add_e_f32s(spread[row], row_vectors[row][index], sum);
        }
        *target = sum;
    }
    for (index, target) in rest.iter_mut().enumerate() {
        for row in 0..ROWS {
            *target += values[row] * rows[row][whole + index];
        }
    }
}

/// `places = patch · weightsᵀ + bias` for every patch, then ReLU if wanted.
pub(super) struct Dots<'a> {
    pub(super) patches: &'a Patches,
    pub(super) weights: &'a [f32],
    pub(super) image: &'a [f32],
    /// One for each channel of the places, or empty.
    pub(super) bias: &'a [f32],
    pub(super) activate: bool,
    pub(super) places: &'a mut [f32],
}

impl Dots<'_> {
    #[inline(always)]
    fn group<S: Simd, const CHANNELS: usize>(&mut self, simd: S, place: usize, first: usize) {
        let patches = self.patches;
        let whole = patches.run - patches.run % S::F32_LANES;
        let mut sums = [simd.splat_f32s(0.0); CHANNELS];
        let mut rests = [0.0; CHANNELS];
        for (run, offset) in patches.runs.iter().enumerate() {
            let values = self.image[patches.sources[place] + offset..][..patches.run].split_at(whole);
            for (channel, (sum, rest)) in sums.iter_mut().zip(&mut rests).enumerate() {
                let weights = run_of(self.weights, patches, first + channel, run).split_at(whole);
                for (&value, &weight) in S::as_simd_f32s(values.0).0.iter().zip(S::as_simd_f32s(weights.0).0) {
                    *sum = simd.mul_add_e_f32s(value, weight, *sum);
                }
                *rest += values.1.iter().zip(weights.1).map(|(value, weight)| value * weight).sum::<f32>();
            }
        }
        let target = &mut self.places[place * patches.columns + first..][..CHANNELS];
        for (channel, target) in target.iter_mut().enumerate() {
            let bias = self.bias.get(first + channel).copied().unwrap_or(0.0);
            let value = simd.reduce_sum_f32s(sums[channel]) + rests[channel] + bias;
            *target = if self.activate { super::narrow::relu(value) } else { value };
        }
    }
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.patches.columns;
        for place in 0..self.patches.sources.len() {
            for first in (0..columns).step_by(GROUP) {
                match columns - first {
                    GROUP.. => self.group::<S, GROUP>(simd, place, first),
                    3 => self.group::<S, 3>(simd, place, first),
                    2 => self.group::<S, 2>(simd, place, first),
                    _ => self.group::<S, 1>(simd, place, first),
                }
            }
        }
    }
}
