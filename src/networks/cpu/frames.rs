//! Where the values of an image lie: PyTorch lays channel after channel, the products of [`super::patches`] need the
//! channels of a pixel side by side. Bytes become floats in the same pass.

use pulp::Arch;

use crate::values::{BYTE_SCALE, Values};

/// One image of `input` with the channels of each pixel side by side.
pub(super) fn load(arch: Arch, input: Values<'_>, row: usize, channels: usize, image: &mut [f32]) {
    let length = image.len();
    match input {
        Values::F32(values) => arch.dispatch(|| interleave(&values[row * length..][..length], channels, image, |value| value)),
        Values::U8(values) => {
            arch.dispatch(|| interleave(&values[row * length..][..length], channels, image, |value| f32::from(value) * BYTE_SCALE));
        }
    }
}

/// Bytes as floats, in the order in which they lie.
pub(super) fn convert(arch: Arch, bytes: &[u8], floats: &mut [f32]) {
    arch.dispatch(|| floats.iter_mut().zip(bytes).for_each(|(float, &byte)| *float = f32::from(byte) * BYTE_SCALE));
}

/// Images with the channels of each pixel side by side, from channel after channel.
pub(super) fn unflatten(arch: Arch, rows: &[f32], channels: usize, length: usize, images: &mut [f32]) {
    for (row, image) in rows.chunks_exact(length).zip(images.chunks_exact_mut(length)) {
        arch.dispatch(|| interleave(row, channels, image, |value| value));
    }
}

/// The opposite of [`unflatten`].
pub(super) fn flatten(arch: Arch, images: &[f32], channels: usize, length: usize, rows: &mut [f32]) {
    let pixels = length / channels;
    for (image, row) in images.chunks_exact(length).zip(rows.chunks_exact_mut(length)) {
        arch.dispatch(|| interleave(image, pixels, row, |value| value));
    }
}

/// Transposes a matrix of `count` rows into `columns`.
#[inline(always)]
fn interleave<T: Copy>(rows: &[T], count: usize, columns: &mut [f32], convert: impl Fn(T) -> f32) {
    let length = rows.len() / count;
    // Stacks of four frames are what agents see; side by side, their loop becomes shuffles.
    if count == 4 {
        let (upper, lower) = rows.split_at(2 * length);
        let ((first, second), (third, fourth)) = (upper.split_at(length), lower.split_at(length));
        let values = first.iter().zip(second).zip(third).zip(fourth);
        for (column, (((first, second), third), fourth)) in columns.chunks_exact_mut(4).zip(values) {
            column.copy_from_slice(&[convert(*first), convert(*second), convert(*third), convert(*fourth)]);
        }
        return;
    }
    for (index, row) in rows.chunks_exact(length).enumerate() {
        for (column, value) in columns.chunks_exact_mut(count).zip(row) {
            column[index] = convert(*value);
        }
    }
}
