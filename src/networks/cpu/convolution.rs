//! A square kernel on an image, in both directions.
//!
//! A convolution takes an image to the places of its kernel. Its adjoint takes a gradient back from the places to
//! the image, and a transposed convolution is that adjoint used forwards. So both layers, and the gradients of both,
//! are made of three operations: [`Convolution::to_places`], [`Convolution::to_image`] and
//! [`Convolution::accumulate`]. All of them take one image at a time, with the channels of a pixel side by side, so
//! that what they touch stays in the cache.

use pulp::Arch;

use super::by_places::ByPlaces;
use super::by_rows::ByRows;
use super::patches::Lanes;
use crate::networks::specification::Window;

/// Largest matrix for whole rows, in values (32 MiB); a window that needs a larger one goes by its places. Such
/// matrices grow with the third power of the image's side, and three of them are kept. The decoder of four frames of
/// 160 x 160 stays below.
const LARGEST_MATRIX: usize = 1 << 23;

/// A window with its weights, packed for the machine at hand.
pub(super) trait Convolution: Send {
    /// Packs the weights, `[places, channels of the image, kernel, kernel]`, for [`Self::to_places`].
    fn pack_to_places(&mut self, weight: &[f32]);

    /// Packs the weights for [`Self::to_image`].
    fn pack_to_image(&mut self, weight: &[f32]);

    /// One image to the places of the kernel, with a bias for each channel of the places if it is not
    /// empty, then ReLU if wanted.
    fn to_places(&self, arch: Arch, image: &[f32], bias: &[f32], activate: bool, places: &mut [f32]);

    /// The places of the kernel to one image: every place adds the kernel, times the place's value. With a bias for
    /// each channel of the image if it is not empty, then ReLU if wanted.
    fn to_image(&self, arch: Arch, places: &[f32], bias: &[f32], activate: bool, image: &mut [f32], scratch: &mut Scratch);

    /// Values that the sums of [`Self::accumulate`] take.
    fn gradient_length(&self) -> usize;

    /// Forgets the sums of [`Self::accumulate`].
    fn clear(&self, Scratch { gradient, .. }: &mut Scratch) {
        gradient.clear();
        gradient.resize(self.gradient_length(), 0.0);
    }

    /// Adds one image's part of the gradient of the weights, given values of the places and of the image: one of them
    /// entered the layer, the other is the gradient of what left it. Call [`Self::clear`] between two layers.
    fn accumulate(&self, arch: Arch, image: &[f32], places: &[f32], scratch: &mut Scratch);

    /// The sums of [`Self::accumulate`] as PyTorch stores the weights.
    fn weight_gradient(&self, scratch: &Scratch, weight_gradient: &mut [f32]);
}

/// Buffers of a [`Convolution`]'s operations, which grow to the largest seen.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) padded: Vec<f32>,
    pub(super) rows: Vec<f32>,
    pub(super) gradient: Vec<f32>,
}

/// The way that suits `window`: by rows if neither direction loses by it, by places otherwise.
pub(super) fn convolution(arch: Arch, window: Window) -> Box<dyn Convolution> {
    let lanes = arch.dispatch(Lanes);
    let by_places = ByPlaces::new(lanes, window);
    if goes_by_rows(&by_places, lanes, &window) { Box::new(ByRows::new(lanes, window)) } else { Box::new(by_places.with_matrices()) }
}

/// Whether neither direction loses by rows, and the matrix is not too large. Each direction counts by itself,
/// since one may be used without the other: an actor only goes forward, and nobody asks for the gradient of an
/// image that a network sees.
fn goes_by_rows(by_places: &ByPlaces, lanes: usize, window: &Window) -> bool {
    let ([to_places, to_image], [rows_to_places, rows_to_image]) = (by_places.operations(), ByRows::operations(lanes, window));
    rows_to_places <= to_places && rows_to_image < to_image && ByRows::matrix_length(lanes, window) <= LARGEST_MATRIX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(length: usize) -> Vec<f32> {
        (0..length).map(|index| (index as f32 * 0.7).sin()).collect()
    }

    /// What all operations give with one instruction set.
    fn results(arch: Arch, window: Window, mut convolution: Box<dyn Convolution>) -> [Vec<f32>; 3] {
        let [image, places] = [window.image, window.places].map(|shape| numbers(shape.iter().product()));
        let weight = numbers(window.image[0] * window.places[0] * window.kernel * window.kernel);
        let (mut to_places, mut to_image, mut gradient) = (places.clone(), image.clone(), weight.clone());
        let mut scratch = Scratch::default();
        convolution.pack_to_places(&weight);
        convolution.pack_to_image(&weight);
        convolution.to_places(arch, &image, &numbers(window.places[0]), true, &mut to_places);
        convolution.to_image(arch, &places, &numbers(window.image[0]), true, &mut to_image, &mut scratch);
        convolution.clear(&mut scratch);
        convolution.accumulate(arch, &image, &places, &mut scratch);
        convolution.weight_gradient(&scratch, &mut gradient);
        [to_places, to_image, gradient]
    }

    fn window(channels: usize, [height, width]: [usize; 2], depth: usize, kernel: usize, stride: usize) -> Window {
        let side = |pixels: usize| (pixels - kernel) / stride + 1;
        Window { image: [channels, height, width], places: [depth, side(height), side(width)], kernel, stride }
    }

    #[test]
    fn both_ways_give_the_same_with_the_instructions_of_this_machine_and_with_plain_ones_up_to_rounding() {
        // Channels that fill no vector, one, and several of every length; a kernel smaller than the stride.
        // Few channels for the places, and a kernel nearly as large as the image.
        let few = [(4, 2, 8, 1), (40, 1, 3, 2), (3, 70, 14, 1), (5, 3, 13, 1)];
        for (channels, depth, kernel, stride) in
            [(4, 16, 4, 2), (3, 5, 3, 1), (16, 64, 4, 2), (33, 97, 2, 3), (1, 1, 5, 4)].into_iter().chain(few)
        {
            let window = window(channels, [17, 14], depth, kernel, stride);
            let by_places = |arch: Arch| -> Box<dyn Convolution> { Box::new(ByPlaces::new(arch.dispatch(Lanes), window).with_matrices()) };
            let by_rows = |arch: Arch| -> Box<dyn Convolution> { Box::new(ByRows::new(arch.dispatch(Lanes), window)) };
            let expected = results(Arch::Scalar, window, by_places(Arch::Scalar));
            let here = Arch::new();
            for (arch, convolution) in [(here, by_places(here)), (here, by_rows(here)), (Arch::Scalar, by_rows(Arch::Scalar))] {
                for (found, expected) in results(arch, window, convolution).iter().zip(&expected) {
                    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                    assert!(found.iter().zip(expected).all(close), "{window:?}");
                }
            }
        }
    }

    #[test]
    fn decoders_go_by_rows_unless_they_are_huge_and_what_sees_images_does_not() {
        let goes_by_rows = |lanes, window| goes_by_rows(&ByPlaces::new(lanes, window), lanes, &window);
        for (lanes, (side, kernel)) in
            [8, 16].into_iter().flat_map(|lanes| [(42, 22), (84, 43), (160, 81), (256, 129)].map(|decoder| (lanes, decoder)))
        {
            let last = window(4, [side; 2], 2, kernel, 1);
            assert_eq!(goes_by_rows(lanes, last), side <= 160, "a decoder's last layer for {side} x {side} with {lanes} lanes");
        }
        for (channels, side, depth, kernel, stride) in [
            (4, 42, 16, 4, 2),
            (16, 20, 32, 4, 2),
            (4, 84, 32, 8, 4),
            (32, 20, 64, 4, 2),
            (64, 9, 64, 3, 1),
            (4, 10, 16, 3, 1),
            (3, 7, 16, 3, 1),
        ] {
            let first = window(channels, [side; 2], depth, kernel, stride);
            assert!(![8, 16].iter().any(|&lanes| goes_by_rows(lanes, first)), "{channels} x {side} x {side}");
        }
    }
}
