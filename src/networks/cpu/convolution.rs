//! A square kernel on an image, in both directions.
//!
//! A convolution takes an image to the places of its kernel; what takes a gradient back from the places to the image is its adjoint, and
//! a transposed convolution is that adjoint used forwards. So both layers, and the gradients of both, are made of three operations:
//! [`Convolution::to_places`], [`Convolution::to_image`] and [`Convolution::accumulate`]. All of them take one image at a time, with
//! the channels of a pixel side by side, so that what they touch stays in the cache.

use pulp::Arch;

use super::super::specification::Window;
use super::narrow::relu;
use super::patches::{Accumulate, Lanes, Patches, Product};
use super::runs::{Dots, Outer, Spread};

/// A window with its weights, packed for the machine at hand.
pub(super) struct Convolution {
    window: Window,
    lanes: usize,
    /// Patches of the image, one for each place.
    patches: Patches,
    matrix: Vec<f32>,
    /// A row of taps for each channel of the places, where one of the two next is set.
    taps: Vec<f32>,
    /// Whether the way to the places goes along the runs, and whether the way back does.
    along_runs: bool,
    back_along_runs: bool,
    /// The way back: pixels that have the same remainders by the stride get their values from the same part of the kernel.
    phases: Vec<Phase>,
    /// Rows of zeros around the places that a patch of a phase may reach into: above and left, then height and width with them.
    margin: usize,
    padded: [usize; 2],
}

/// Pixels whose values come from the same part of the kernel.
struct Phase {
    /// Patches of the places with their margin, one for each pixel.
    patches: Patches,
    matrix: Vec<f32>,
    /// For each row, then each column of a patch: the row or column of the kernel.
    kernel_rows: Vec<usize>,
    kernel_columns: Vec<usize>,
}

/// Buffers of [`Convolution`]'s operations, which grow to the largest seen.
#[derive(Default)]
pub(super) struct Scratch {
    padded: Vec<f32>,
    rows: Vec<f32>,
    gradient: Vec<f32>,
}

impl Convolution {
    pub(super) fn new(arch: Arch, window: Window) -> Self {
        let Window { image: [channels, height, width], places: [columns, down, across], kernel, stride } = window;
        let lanes = arch.dispatch(Lanes);
        let places = || (0..down).flat_map(|y| (0..across).map(move |x| (y, x)));
        let patches = Patches {
            sources: places().map(|(y, x)| (y * width + x) * stride * channels).collect(),
            targets: (0..down * across).collect(),
            runs: (0..kernel).map(|row| row * width * channels).collect(),
            run: kernel * channels,
            columns,
        };
        let margin = kernel.div_ceil(stride) - 1;
        let padded = [(down, height), (across, width)].map(|(places, pixels)| margin + places.max((pixels - 1) / stride + 1));
        // Long runs, and vectors across the channels that would be half empty.
        let along_runs = 2 * columns <= lanes && patches.run >= 2 * lanes;
        let matrix = vec![0.0; if along_runs { 0 } else { patches.packed_length(lanes) }];
        let mut convolution = Self {
            window,
            lanes,
            patches,
            matrix,
            taps: Vec::new(),
            along_runs,
            back_along_runs: false,
            phases: Vec::new(),
            margin,
            padded,
        };
        convolution.phases = (0..stride.min(height))
            .flat_map(|row| (0..stride.min(width)).map(move |column| (row, column)))
            .map(|(row, column)| convolution.phase(row, column))
            .collect();
        // Operations on vectors; what is left of a run behind its last whole vector goes value by value.
        let Patches { runs, run, .. } = &convolution.patches;
        let of_runs = down * across * columns * runs.len() * (run / lanes + run % lanes);
        let of_channels: usize =
            convolution.phases.iter().map(|phase| phase.patches.targets.len() * phase.patches.packed_length(lanes)).sum();
        // What is added along the runs is read and written each time, which sums in registers are not.
        convolution.back_along_runs = 3 * of_runs * lanes <= of_channels;
        if convolution.back_along_runs {
            convolution.phases.clear();
        }
        for Phase { patches, matrix, .. } in &mut convolution.phases {
            matrix.resize(patches.packed_length(lanes), 0.0);
        }
        if along_runs || convolution.back_along_runs {
            convolution.taps = vec![0.0; columns * convolution.patches.taps()];
        }
        convolution
    }

    /// The phase of the pixels with these remainders, still without its matrix.
    fn phase(&self, row: usize, column: usize) -> Phase {
        let Window { image: [channels, height, width], places: [depth, ..], kernel, stride } = self.window;
        // A place that lies further back sees the pixel further down its kernel, so the kernel is read backwards.
        let backwards = |remainder: usize| (remainder..kernel).step_by(stride).rev().collect::<Vec<_>>();
        let (kernel_rows, kernel_columns) = (backwards(row), backwards(column));
        let first = |pixel: usize, taps: usize| pixel / stride + self.margin + 1 - taps;
        let pixels = || (row..height).step_by(stride).flat_map(|y| (column..width).step_by(stride).map(move |x| (y, x)));
        let source = |(y, x)| (first(y, kernel_rows.len()) * self.padded[1] + first(x, kernel_columns.len())) * depth;
        // Without a part of the kernel nothing is added, and nothing may be read.
        let reached = !kernel_rows.is_empty() && !kernel_columns.is_empty();
        let patches = Patches {
            sources: pixels().map(|pixel| if reached { source(pixel) } else { 0 }).collect(),
            targets: pixels().map(|(y, x)| y * width + x).collect(),
            runs: if reached { (0..kernel_rows.len()).map(|row| row * self.padded[1] * depth).collect() } else { Vec::new() },
            run: kernel_columns.len() * depth,
            columns: channels,
        };
        Phase { matrix: Vec::new(), patches, kernel_rows, kernel_columns }
    }

    /// Packs the weights, `[places, channels of the image, kernel, kernel]`, for [`Self::to_places`].
    pub(super) fn pack_to_places(&mut self, weight: &[f32]) {
        if self.along_runs {
            return self.pack_taps(weight);
        }
        let mut matrix = std::mem::take(&mut self.matrix);
        self.each_weight(|index, tap, column| matrix[self.patches.packed_index(tap, column, self.lanes)] = weight[index]);
        self.matrix = matrix;
    }

    /// Packs the weights for [`Self::to_image`].
    pub(super) fn pack_to_image(&mut self, weight: &[f32]) {
        if self.back_along_runs {
            return self.pack_taps(weight);
        }
        let Window { image: [channels, ..], places: [depth, ..], kernel, .. } = self.window;
        for Phase { patches, matrix, kernel_rows, kernel_columns } in &mut self.phases {
            let taps = kernel_rows.iter().flat_map(|row| kernel_columns.iter().map(move |column| row * kernel + column));
            for (pixel, in_kernel) in taps.enumerate() {
                for place in 0..depth {
                    for channel in 0..channels {
                        let value = weight[(place * channels + channel) * kernel * kernel + in_kernel];
                        matrix[patches.packed_index(pixel * depth + place, channel, self.lanes)] = value;
                    }
                }
            }
        }
    }

    /// Packs the weights for the operations along the runs.
    fn pack_taps(&mut self, weight: &[f32]) {
        let (mut taps, row) = (std::mem::take(&mut self.taps), self.patches.taps());
        self.each_weight(|index, tap, column| taps[column * row + tap] = weight[index]);
        self.taps = taps;
    }

    /// Calls `visit` with the index of each weight as PyTorch stores it, and the tap and column of the matrix that it is.
    fn each_weight(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let Window { image: [channels, ..], places: [depth, ..], kernel, .. } = self.window;
        let mut index = 0;
        for place in 0..depth {
            for channel in 0..channels {
                for pixel in 0..kernel * kernel {
                    visit(index, pixel * channels + channel, place);
                    index += 1;
                }
            }
        }
    }

    /// One image to the places of the kernel, with a bias for each channel of the places if it is not empty, then ReLU if wanted.
    pub(super) fn to_places(&self, arch: Arch, image: &[f32], bias: &[f32], activate: bool, places: &mut [f32]) {
        if self.along_runs {
            arch.dispatch(Dots { patches: &self.patches, weights: &self.taps, image, bias, activate, places });
        } else {
            arch.dispatch(Product { patches: &self.patches, matrix: &self.matrix, image, bias, activate, output: places });
        }
    }

    /// The places of the kernel to one image: every place adds the kernel, times its value.
    pub(super) fn to_image(
        &self,
        arch: Arch,
        places: &[f32],
        bias: &[f32],
        activate: bool,
        image: &mut [f32],
        Scratch { padded, .. }: &mut Scratch,
    ) {
        if self.back_along_runs {
            match bias {
                [] => image.fill(0.0),
                bias => image.chunks_exact_mut(bias.len()).for_each(|pixel| pixel.copy_from_slice(bias)),
            }
            arch.dispatch(Spread { patches: &self.patches, weights: &self.taps, places, image: &mut *image });
            if activate {
                arch.dispatch(|| image.iter_mut().for_each(|value| *value = relu(*value)));
            }
            return;
        }
        let [depth, _, across] = self.window.places;
        let [height, width] = self.padded;
        let padded = super::sized(padded, height * width * depth);
        padded.fill(0.0);
        for (row, values) in places.chunks_exact(across * depth).enumerate() {
            let start = ((row + self.margin) * width + self.margin) * depth;
            padded[start..start + values.len()].copy_from_slice(values);
        }
        for Phase { patches, matrix, .. } in &self.phases {
            arch.dispatch(Product { patches, matrix, image: padded, bias, activate, output: &mut *image });
        }
    }

    /// Values that the sums of [`Self::accumulate`] take.
    fn gradient_length(&self) -> usize {
        if self.along_runs { self.taps.len() } else { self.matrix.len() }
    }

    /// Forgets the sums of [`Self::accumulate`].
    pub(super) fn clear(&self, Scratch { gradient, .. }: &mut Scratch) {
        super::sized(gradient, self.gradient_length()).fill(0.0);
    }

    /// Adds one image's part of the gradient of the weights, given values of the places and of the image: one of them entered the layer,
    /// the other is the gradient of what left it.
    pub(super) fn accumulate(&self, arch: Arch, image: &[f32], places: &[f32], Scratch { rows, gradient, .. }: &mut Scratch) {
        let sums = super::sized(gradient, self.gradient_length());
        if self.along_runs {
            return arch.dispatch(Outer { patches: &self.patches, image, places, gradient: sums });
        }
        let columns = self.patches.columns;
        let whole = columns.next_multiple_of(self.lanes);
        let rows = if whole == columns {
            places
        } else {
            let padded = super::sized(rows, places.len() / columns * whole);
            for (padded, row) in padded.chunks_exact_mut(whole).zip(places.chunks_exact(columns)) {
                padded[..columns].copy_from_slice(row);
                padded[columns..].fill(0.0);
            }
            padded
        };
        arch.dispatch(Accumulate { patches: &self.patches, image, rows, gradient: sums });
    }

    /// The sums of [`Self::accumulate`] as PyTorch stores the weights.
    pub(super) fn weight_gradient(&self, Scratch { gradient, .. }: &Scratch, weight_gradient: &mut [f32]) {
        let taps = self.patches.taps();
        self.each_weight(|index, tap, column| {
            let place = if self.along_runs { column * taps + tap } else { self.patches.packed_index(tap, column, self.lanes) };
            weight_gradient[index] = gradient[place];
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(length: usize) -> Vec<f32> {
        (0..length).map(|index| (index as f32 * 0.7).sin()).collect()
    }

    /// What all operations give with one instruction set.
    fn results(arch: Arch, window: Window) -> [Vec<f32>; 3] {
        let [image, places] = [window.image, window.places].map(|shape| numbers(shape.iter().product()));
        let weight = numbers(window.image[0] * window.places[0] * window.kernel * window.kernel);
        let (mut to_places, mut to_image, mut gradient) = (places.clone(), image.clone(), weight.clone());
        let (mut convolution, mut scratch) = (Convolution::new(arch, window), Scratch::default());
        convolution.pack_to_places(&weight);
        convolution.pack_to_image(&weight);
        convolution.to_places(arch, &image, &numbers(window.places[0]), true, &mut to_places);
        convolution.to_image(arch, &places, &[], false, &mut to_image, &mut scratch);
        convolution.clear(&mut scratch);
        convolution.accumulate(arch, &image, &places, &mut scratch);
        convolution.weight_gradient(&scratch, &mut gradient);
        [to_places, to_image, gradient]
    }

    #[test]
    fn the_instructions_of_this_machine_give_what_plain_ones_give_up_to_rounding() {
        // Channels that fill no vector, one, and several of every length; a kernel smaller than the stride.
        // Few channels for the places, and a kernel nearly as large as the image.
        let few = [(4, 2, 8, 1), (40, 1, 3, 2), (3, 70, 14, 1), (5, 3, 13, 1)];
        for (channels, depth, kernel, stride) in
            [(4, 16, 4, 2), (3, 5, 3, 1), (16, 64, 4, 2), (33, 97, 2, 3), (1, 1, 5, 4)].into_iter().chain(few)
        {
            let side = |pixels: usize| (pixels - kernel) / stride + 1;
            let window = Window { image: [channels, 17, 14], places: [depth, side(17), side(14)], kernel, stride };
            let expected = results(Arch::Scalar, window);
            for (found, expected) in results(Arch::new(), window).iter().zip(&expected) {
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                assert!(found.iter().zip(expected).all(close), "{window:?}");
            }
        }
    }
}
