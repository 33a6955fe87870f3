//! Products of the patches of an image with a matrix, without ever writing the patches down.
//!
//! With the channels of a pixel side by side, a patch is a few runs, each of values that lie one after the other in the
//! image. One value at a time is spread over a vector and multiplied with the weights of as many columns. A tile of
//! patches shares each load of the weights, and its sums stay in registers from the first run to the last.

use pulp::{Arch, Simd, WithSimd};

/// Patches of one image, and the matrix that they are multiplied with.
pub(super) struct Patches {
    /// Where each patch begins in the image.
    pub(super) sources: Vec<usize>,
    /// Which row of the output belongs to each patch.
    pub(super) targets: Vec<usize>,
    /// Where each run begins, counted from the beginning of the patch.
    pub(super) runs: Vec<usize>,
    /// Values of a run.
    pub(super) run: usize,
    /// Columns of the matrix, and of the output.
    pub(super) columns: usize,
}

impl Patches {
    /// Values of a patch: rows of the matrix.
    pub(super) fn taps(&self) -> usize {
        self.runs.len() * self.run
    }

    /// Length of a matrix that is packed for vectors of `lanes`.
    pub(super) fn packed_length(&self, lanes: usize) -> usize {
        self.columns.next_multiple_of(lanes) * self.taps()
    }

    /// Vector operations of a product of all patches with the matrix.
    pub(super) fn operations(&self, lanes: usize) -> usize {
        self.sources.len() * self.packed_length(lanes) / lanes
    }

    /// Index in a packed matrix: a vector of columns is followed by the same columns of the next tap.
    #[inline(always)]
    pub(super) fn packed_index(&self, tap: usize, column: usize, lanes: usize) -> usize {
        (column / lanes * self.taps() + tap) * lanes + column % lanes
    }

    /// Index of the first tap of each column in a packed matrix; the taps of a column are `lanes` apart.
    pub(super) fn packed_starts(&self, lanes: usize) -> Vec<usize> {
        (0..self.columns).map(|column| self.packed_index(0, column, lanes)).collect()
    }
}

/// The number of floats in a vector of the machine at hand.
pub(super) struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        S::F32_LANES
    }
}

/// `output[target] = patch · matrix + bias` for every patch, then ReLU if wanted.
pub(super) struct Product<'a> {
    pub(super) patches: &'a Patches,
    /// The matrix, packed.
    pub(super) matrix: &'a [f32],
    pub(super) image: &'a [f32],
    /// As long as the output has columns, or empty.
    pub(super) bias: &'a [f32],
    pub(super) activate: bool,
    pub(super) output: &'a mut [f32],
}

impl Product<'_> {
    #[inline(always)]
    fn tile<S: Simd, const PATCHES: usize, const VECTORS: usize>(&mut self, simd: S, first: usize, vector: usize) {
        let (patches, taps) = (self.patches, self.patches.taps());
        let sources: &[usize] = &patches.sources[first..first + PATCHES];
        let matrix = S::as_simd_f32s(self.matrix).0;
        let matrix: [&[S::f32s]; VECTORS] = std::array::from_fn(|v| &matrix[(vector + v) * taps..][..taps]);
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; PATCHES];
        for (index, offset) in patches.runs.iter().enumerate() {
            let rows: [&[f32]; PATCHES] = std::array::from_fn(|patch| &self.image[sources[patch] + offset..][..patches.run]);
            let weights: [&[S::f32s]; VECTORS] = std::array::from_fn(|v| &matrix[v][index * patches.run..][..patches.run]);
            for tap in 0..patches.run {
                let weights: [S::f32s; VECTORS] = std::array::from_fn(|v| weights[v][tap]);
                for (sums, row) in sums.iter_mut().zip(&rows) {
                    let value = simd.splat_f32s(row[tap]);
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = simd.mul_add_e_f32s(value, weight, *sum);
                    }
                }
            }
        }
        let zero = simd.splat_f32s(0.0);
        for (patch, sums) in sums.into_iter().enumerate() {
            let row = &mut self.output[patches.targets[first + patch] * patches.columns..][..patches.columns];
            for (v, sum) in sums.into_iter().enumerate() {
                let columns = (vector + v) * S::F32_LANES..patches.columns.min((vector + v + 1) * S::F32_LANES);
                let mut value = sum;
                if !self.bias.is_empty() {
                    value = simd.add_f32s(value, simd.partial_load_f32s(&self.bias[columns.clone()]));
                }
                if self.activate {
                    value = simd.select_f32s(simd.less_than_f32s(value, zero), zero, value);
                }
                simd.partial_store_f32s(&mut row[columns], value);
            }
        }
    }

    #[inline(always)]
    fn columns<S: Simd, const PATCHES: usize, const VECTORS: usize>(&mut self, simd: S, vector: usize) {
        let (count, mut first) = (self.patches.sources.len(), 0);
        while first < count {
            first += match count - first {
                left if left >= PATCHES => {
                    self.tile::<S, PATCHES, VECTORS>(simd, first, vector);
                    PATCHES
                }
                // One by one, each of these patches would load all weights again.
                3.. => {
                    self.tile::<S, 3, VECTORS>(simd, first, vector);
                    3
                }
                _ => {
                    self.tile::<S, 1, VECTORS>(simd, first, vector);
                    1
                }
            };
        }
    }
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // Tiles as large as the registers allow, with one left for the spread value and some for the weights.
        let vectors = self.patches.columns.div_ceil(S::F32_LANES);
        let mut vector = 0;
        while vector < vectors {
            vector += match vectors - vector {
                4.. if S::REGISTER_COUNT >= 32 => {
                    self.columns::<S, 6, 4>(simd, vector);
                    4
                }
                3 if S::REGISTER_COUNT >= 32 => {
                    self.columns::<S, 7, 3>(simd, vector);
                    3
                }
                2.. if S::REGISTER_COUNT >= 32 => {
                    self.columns::<S, 10, 2>(simd, vector);
                    2
                }
                2.. => {
                    self.columns::<S, 6, 2>(simd, vector);
                    2
                }
                _ => {
                    self.columns::<S, 10, 1>(simd, vector);
                    1
                }
            };
        }
    }
}

/// Adds `patchᵀ · row` to `gradient`, which is packed like the matrix, for every patch and its row of the output's
/// gradient; these rows lie in the order of the patches. `whole_rows` is a buffer.
pub(super) fn accumulate(arch: Arch, patches: &Patches, image: &[f32], rows: &[f32], whole_rows: &mut Vec<f32>, gradient: &mut [f32]) {
    let whole = patches.columns.next_multiple_of(arch.dispatch(Lanes));
    let rows = if whole == patches.columns {
        rows
    } else {
        let padded = super::sized(whole_rows, rows.len() / patches.columns * whole);
        for (padded, row) in padded.chunks_exact_mut(whole).zip(rows.chunks_exact(patches.columns)) {
            padded[..patches.columns].copy_from_slice(row);
            padded[patches.columns..].fill(0.0);
        }
        padded
    };
    arch.dispatch(Accumulate { patches, image, rows, gradient });
}

/// What [`accumulate`] does.
struct Accumulate<'a> {
    patches: &'a Patches,
    image: &'a [f32],
    /// With zeros up to a whole number of vectors.
    rows: &'a [f32],
    gradient: &'a mut [f32],
}

impl Accumulate<'_> {
    #[inline(always)]
    fn tile<S: Simd, const TAPS: usize, const VECTORS: usize>(&mut self, simd: S, run: usize, tap: usize, vector: usize) {
        let patches = self.patches;
        let vectors = patches.columns.div_ceil(S::F32_LANES);
        let offset = patches.runs[run] + tap;
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; TAPS];
        let rows = S::as_simd_f32s(self.rows).0;
        for (source, row) in patches.sources.iter().zip(rows.chunks_exact(vectors)) {
            let values = &self.image[source + offset..][..TAPS];
            let row = &row[vector..][..VECTORS];
            for (sums, value) in sums.iter_mut().zip(values) {
                let value = simd.splat_f32s(*value);
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = simd.mul_add_e_f32s(value, *row, *sum);
                }
            }
        }
        let gradient = S::as_mut_simd_f32s(self.gradient).0;
        for (t, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                let target = &mut gradient[(vector + v) * patches.taps() + run * patches.run + tap + t];
                *target = simd.add_f32s(*target, sum);
            }
        }
    }

    #[inline(always)]
    fn columns<S: Simd, const TAPS: usize, const VECTORS: usize>(&mut self, simd: S, vector: usize) {
        let length = self.patches.run;
        let tiled = length - length % TAPS;
        for run in 0..self.patches.runs.len() {
            for tap in (0..tiled).step_by(TAPS) {
                self.tile::<S, TAPS, VECTORS>(simd, run, tap, vector);
            }
            for tap in tiled..length {
                self.tile::<S, 1, VECTORS>(simd, run, tap, vector);
            }
        }
    }
}

impl WithSimd for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let vectors = self.patches.columns.div_ceil(S::F32_LANES);
        let mut vector = 0;
        while vector < vectors {
            vector += match vectors - vector {
                2.. if S::REGISTER_COUNT >= 32 => {
                    self.columns::<S, 8, 2>(simd, vector);
                    2
                }
                2.. => {
                    self.columns::<S, 4, 2>(simd, vector);
                    2
                }
                _ if S::REGISTER_COUNT >= 32 => {
                    self.columns::<S, 16, 1>(simd, vector);
                    1
                }
                _ => {
                    self.columns::<S, 8, 1>(simd, vector);
                    1
                }
            };
        }
    }
}
