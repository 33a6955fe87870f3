//! A window whose kernel is nearly as wide as its image, and whose places have few channels: a whole row of the image
//! is taken as one pixel, a whole row of places as one place, and the window only moves down.
//!
//! The matrix between such rows has each weight once for every place across, shifted with the place, and zeros
//! elsewhere. With a kernel of half the image's width every other product is with a zero; but vectors are full, or
//! nearly so, and no patch reaches over the edge. The decoder of an auto-encoder is made of such kernels.

use pulp::Arch;

use super::convolution::{Convolution, Scratch};
use super::elementwise;
use super::patches::{Patches, Product, accumulate};
use crate::networks::specification::Window;

/// A window with its weights, packed for the machine at hand.
pub(super) struct ByRows {
    window: Window,
    lanes: usize,
    /// The rows of the image under each row of places.
    patches: Patches,
    matrix: Vec<f32>,
    starts: Vec<usize>,
    /// For the way back: what each row of places adds to the rows of the image under it.
    spread: Patches,
    spread_matrix: Vec<f32>,
    spread_starts: Vec<usize>,
}

impl ByRows {
    pub(super) fn new(lanes: usize, window: Window) -> Self {
        let [patches, spread] = both_ways(&window);
        let [matrix, spread_matrix] = [&patches, &spread].map(|patches| vec![0.0; patches.packed_length(lanes)]);
        let [starts, spread_starts] = [&patches, &spread].map(|patches| patches.packed_starts(lanes));
        Self { window, lanes, patches, matrix, starts, spread, spread_matrix, spread_starts }
    }

    /// Values of the larger of the two matrices.
    pub(super) fn matrix_length(lanes: usize, window: &Window) -> usize {
        let [patches, spread] = both_ways(window).map(|patches| patches.packed_length(lanes));
        patches.max(spread)
    }

    /// Vector operations for one image of `window`: on the way to the places, and on the way back.
    pub(super) fn operations(lanes: usize, window: &Window) -> [usize; 2] {
        let [patches, spread] = both_ways(window);
        // On the way back, the product of each row of places is then added to the image.
        let added = spread.sources.len() * spread.columns.div_ceil(lanes);
        [patches.operations(lanes), spread.operations(lanes) + added]
    }

    /// Calls `visit` with the index of each weight as PyTorch stores it, and with each pair of a value of a patch and a
    /// value of a row of places that the weight connects.
    fn each_weight(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let Window { image: [channels, ..], places: [depth, _, across], kernel, stride } = self.window;
        let mut index = 0;
        for place in 0..depth {
            for channel in 0..channels {
                for row in 0..kernel {
                    for column in 0..kernel {
                        for x in 0..across {
                            let tap = row * image_row(&self.window) + (x * stride + column) * channels + channel;
                            visit(index, tap, x * depth + place);
                        }
                        index += 1;
                    }
                }
            }
        }
    }
}

impl Convolution for ByRows {
    fn pack_to_places(&mut self, weight: &[f32]) {
        let mut matrix = std::mem::take(&mut self.matrix);
        self.each_weight(|index, tap, value| matrix[self.starts[value] + tap * self.lanes] = weight[index]);
        self.matrix = matrix;
    }

    fn pack_to_image(&mut self, weight: &[f32]) {
        let mut matrix = std::mem::take(&mut self.spread_matrix);
        self.each_weight(|index, tap, value| matrix[self.spread_starts[tap] + value * self.lanes] = weight[index]);
        self.spread_matrix = matrix;
    }

    fn to_places(&self, arch: Arch, image: &[f32], bias: &[f32], activate: bool, places: &mut [f32]) {
        arch.dispatch(Product { patches: &self.patches, matrix: &self.matrix, image, bias: &[], activate: false, output: &mut *places });
        if !bias.is_empty() {
            arch.dispatch(|| elementwise::add_bias(places, bias));
        }
        activate_if(activate, arch, places);
    }

    fn to_image(
        &self,
        arch: Arch,
        places: &[f32],
        bias: &[f32],
        activate: bool,
        image: &mut [f32],
        Scratch { padded: parts, .. }: &mut Scratch,
    ) {
        let Self { spread, spread_matrix: matrix, .. } = self;
        let parts = super::sized(parts, spread.sources.len() * spread.columns);
        arch.dispatch(Product { patches: spread, matrix, image: places, bias: &[], activate: false, output: &mut *parts });
        match bias {
            [] => image.fill(0.0),
            bias => image.chunks_exact_mut(bias.len()).for_each(|pixel| pixel.copy_from_slice(bias)),
        }
        arch.dispatch(|| {
            for (part, first) in parts.chunks_exact(spread.columns).zip(&self.patches.sources) {
                image[*first..][..part.len()].iter_mut().zip(part).for_each(|(value, part)| *value += part);
            }
        });
        activate_if(activate, arch, image);
    }

    fn gradient_length(&self) -> usize {
        self.matrix.len()
    }

    fn accumulate(&self, arch: Arch, image: &[f32], places: &[f32], scratch: &mut Scratch) {
        accumulate(arch, &self.patches, image, places, &mut scratch.rows, &mut scratch.gradient);
    }

    fn weight_gradient(&self, Scratch { gradient, .. }: &Scratch, weight_gradient: &mut [f32]) {
        weight_gradient.fill(0.0);
        self.each_weight(|index, tap, value| weight_gradient[index] += gradient[self.starts[value] + tap * self.lanes]);
    }
}

/// The rows of the image under each row of places, each a patch of the image; and the rows of places,
/// each a patch of its own.
fn both_ways(window: &Window) -> [Patches; 2] {
    let Window { places: [_, down, _], kernel, stride, .. } = *window;
    let image_values = image_row(window);
    let place_values = place_row(window);
    let rows = |first, run, columns| Patches {
        sources: (0..down).map(|row| row * first).collect(),
        targets: (0..down).collect(),
        runs: vec![0],
        run,
        columns,
    };
    [rows(stride * image_values, kernel * image_values, place_values), rows(place_values, place_values, kernel * image_values)]
}

/// Values of a row of the image.
fn image_row(window: &Window) -> usize {
    window.image[0] * window.image[2]
}

/// Values of a row of places.
fn place_row(window: &Window) -> usize {
    window.places[0] * window.places[2]
}

fn activate_if(activate: bool, arch: Arch, values: &mut [f32]) {
    if activate {
        arch.dispatch(|| elementwise::activate(values));
    }
}
