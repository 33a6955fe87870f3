//! A window that is moved over its image in both directions: each place sees a patch of the image, and each pixel a
//! patch of the places.
//!
//! The channels of the places, or of the pixels, fill the vectors.

use pulp::Arch;

use super::convolution::{Convolution, Scratch};
use super::patches::{Patches, Product, accumulate};
use crate::networks::specification::Window;

/// A window with its weights, packed for the machine at hand.
pub(super) struct ByPlaces {
    window: Window,
    lanes: usize,
    /// Patches of the image, one for each place.
    patches: Patches,
    matrix: Vec<f32>,
    /// For the way back: pixels with the same remainders by the stride get their values from the
    /// same part of the kernel.
    phases: Vec<Phase>,
    /// Rows of zeros above the places, and columns of zeros left of them: patches of a phase may reach there.
    margin: usize,
    /// Height and width of the places with zeros on all sides.
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

impl ByPlaces {
    /// Plans where everything lies with vectors of `lanes` values. Allocates no matrices: they may be large, and
    /// another way be better.
    pub(super) fn new(lanes: usize, window: Window) -> Self {
        let Window { image: [channels, height, width], places: [columns, down, across], kernel, stride } = window;
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
        let mut found = Self { window, lanes, patches, matrix: Vec::new(), phases: Vec::new(), margin, padded };
        found.phases = (0..stride.min(height))
            .flat_map(|row| (0..stride.min(width)).map(move |column| (row, column)))
            .map(|(row, column)| found.phase(row, column))
            .collect();
        found
    }

    /// Adds room for the packed weights.
    pub(super) fn with_matrices(mut self) -> Self {
        self.matrix = vec![0.0; self.patches.packed_length(self.lanes)];
        for Phase { patches, matrix, .. } in &mut self.phases {
            *matrix = vec![0.0; patches.packed_length(self.lanes)];
        }
        self
    }

    /// Vector operations for one image: on the way to the places, and on the way back.
    pub(super) fn operations(&self) -> [usize; 2] {
        let back = self.phases.iter().map(|phase| phase.patches.operations(self.lanes)).sum();
        [self.patches.operations(self.lanes), back]
    }

    /// The phase of the pixels with these remainders, still without its matrix.
    fn phase(&self, row: usize, column: usize) -> Phase {
        let Window { image: [channels, height, width], places: [depth, ..], kernel, stride } = self.window;
        // A place further up or left sees the pixel further down or right in its kernel, so the
        // kernel is read backwards.
        let backwards = |remainder: usize| (remainder..kernel).step_by(stride).rev().collect::<Vec<_>>();
        let (kernel_rows, kernel_columns) = (backwards(row), backwards(column));
        let first = |pixel: usize, taps: usize| pixel / stride + self.margin + 1 - taps;
        let pixels = || (row..height).step_by(stride).flat_map(|y| (column..width).step_by(stride).map(move |x| (y, x)));
        let source = |(y, x)| (first(y, kernel_rows.len()) * self.padded[1] + first(x, kernel_columns.len())) * depth;
        // Pixels that no part of the kernel reaches get nothing, and nothing may be read for them.
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

    /// Calls `visit` with the index of each weight as PyTorch stores it, and with its tap and column in the matrix.
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
}

impl Convolution for ByPlaces {
    fn pack_to_places(&mut self, weight: &[f32]) {
        let mut matrix = std::mem::take(&mut self.matrix);
        self.each_weight(|index, tap, column| matrix[self.patches.packed_index(tap, column, self.lanes)] = weight[index]);
        self.matrix = matrix;
    }

    fn pack_to_image(&mut self, weight: &[f32]) {
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

    fn to_places(&self, arch: Arch, image: &[f32], bias: &[f32], activate: bool, places: &mut [f32]) {
        arch.dispatch(Product { patches: &self.patches, matrix: &self.matrix, image, bias, activate, output: places });
    }

    fn to_image(&self, arch: Arch, places: &[f32], bias: &[f32], activate: bool, image: &mut [f32], Scratch { padded, .. }: &mut Scratch) {
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

    fn gradient_length(&self) -> usize {
        self.matrix.len()
    }

    fn accumulate(&self, arch: Arch, image: &[f32], places: &[f32], scratch: &mut Scratch) {
        accumulate(arch, &self.patches, image, places, &mut scratch.rows, &mut scratch.gradient);
    }

    fn weight_gradient(&self, Scratch { gradient, .. }: &Scratch, weight_gradient: &mut [f32]) {
        self.each_weight(|index, tap, column| weight_gradient[index] = gradient[self.patches.packed_index(tap, column, self.lanes)]);
    }
}
