//! Copies between a row of the store, which is words that others may be writing, and the bytes of fields.
//!
//! What a copy out of a row holds may be torn until the caller has taken the slot word again.

use super::schema::Field;
use crate::segment::shared_words::{high, load_bytes, low, store_bytes};
use crate::sync::{AtomicU64, Ordering};

/// Copy the field's values out of the row at `words`. Not for stacked frames.
#[inline]
pub(super) fn load(field: &Field, words: &[AtomicU64], values: &mut [u8]) {
    let from = &words[field.lane / 2..];
    if field.is_wide {
        return load_bytes(from, values);
    }
    let word = from[0].load(Ordering::Relaxed);
    let lane = if field.lane % 2 == 1 { high(word) } else { low(word) }.to_le_bytes();
    // The usual four bytes are one store; any other number is a copy of a length unknown here.
    if let Ok(values) = <&mut [u8; 4]>::try_from(&mut *values) {
        *values = lane;
    } else {
        values.copy_from_slice(&lane[..values.len()]);
    }
}

/// Copy the field's values, or the names of its frames, into a row that nobody else writes or reads yet.
#[inline]
pub(super) fn store(field: &Field, words: &[AtomicU64], values: &[u8]) {
    assert_eq!(values.len(), field.row_bytes(), "bytes of field `{}`", field.name);
    let to = &words[field.lane / 2..];
    if field.is_wide {
        return store_bytes(to, values);
    }
    // As in `load`: the usual four bytes are no copy of a length unknown here.
    let lane = <[u8; 4]>::try_from(values).unwrap_or_else(|_| {
        let mut lane = [0; 4];
        lane[..values.len()].copy_from_slice(values);
        lane
    });
    store_lane(words, field.lane, u32::from_le_bytes(lane));
}

/// Write one 32-bit lane. A load and a store do: the row has one writer.
#[inline]
fn store_lane(words: &[AtomicU64], lane: usize, bits: u32) {
    let word = &words[lane / 2];
    let old = word.load(Ordering::Relaxed);
    let new = if lane % 2 == 1 { old & 0xffff_ffff | u64::from(bits) << 32 } else { old >> 32 << 32 | u64::from(bits) };
    word.store(new, Ordering::Relaxed);
}
