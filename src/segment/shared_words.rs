//! Copies between shared words and this process's own memory.
//!
//! Bytes that another process may be writing are never behind `&` or `&mut`: they are `AtomicU64` words, read and
//! written with Relaxed ordering, one at a time or, if there are enough of them, as `copy` does. A version word
//! around such a copy makes it meaningful; its Acquire and Release are stated where it is checked (`board`,
//! `replay::store`, `gradients`).

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::copy::{LEAST_BYTES, between_words, from_words, to_words};
use crate::sync::{AtomicU64, Ordering};

/// Words that `count` 32-bit values take.
pub const fn words_for(count: usize) -> usize {
    count.div_ceil(2)
}

/// Store 32-bit floats, two to a word.
pub fn store_f32(words: &[AtomicU64], values: &[f32]) {
    store_bytes(words, bytemuck::cast_slice(values));
}

/// Load 32-bit floats, two from a word.
pub fn load_f32(words: &[AtomicU64], values: &mut [f32]) {
    load_bytes(words, bytemuck::cast_slice_mut(values));
}

/// Store bytes, eight to a word, the last word padded with zeros.
#[inline]
pub fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    debug_assert!(words.len() >= bytes.len().div_ceil(8));
    let (whole, rest) = bytes.as_chunks::<8>();
    store_words(&words[..whole.len()], whole);
    if !rest.is_empty() {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_le_bytes(padded), Ordering::Relaxed);
    }
}

#[inline]
fn store_words(words: &[AtomicU64], values: &[[u8; 8]]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if values.as_flattened().len() >= LEAST_BYTES {
        return to_words(words, values.as_flattened());
    }
    for (word, &value) in words.iter().zip(values) {
        word.store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
}

/// Load bytes, eight from a word.
#[inline]
pub fn load_bytes(words: &[AtomicU64], bytes: &mut [u8]) {
    debug_assert!(words.len() >= bytes.len().div_ceil(8));
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LEAST_BYTES {
        return from_words(words, bytes);
    }
    let (whole, rest) = bytes.as_chunks_mut::<8>();
    for (word, chunk) in words.iter().zip(whole.iter_mut()) {
        *chunk = word.load(Ordering::Relaxed).to_le_bytes();
    }
    match rest.len() {
        0 => {}
        // An odd number of 32-bit values ends like this, and a copy of a known length is one store.
        4 => rest.copy_from_slice(&low(words[whole.len()].load(Ordering::Relaxed)).to_le_bytes()),
        length => rest.copy_from_slice(&words[whole.len()].load(Ordering::Relaxed).to_le_bytes()[..length]),
    }
}

/// Copy words to as many words.
#[inline]
pub fn copy_words(to: &[AtomicU64], from: &[AtomicU64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if size_of_val(from) >= LEAST_BYTES {
        return between_words(to, from);
    }
    for (to, from) in to.iter().zip(from) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Lower half of a word.
// The truncation is what is wanted.
pub const fn low(word: u64) -> u32 {
    word as u32
}

/// Upper half of a word.
pub const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_survive_the_round_trip_at_even_and_odd_lengths() {
        for length in 0..9usize {
            let words: Vec<AtomicU64> = (0..words_for(length)).map(|_| AtomicU64::new(u64::MAX)).collect();
            let values: Vec<f32> = (0..length).map(|i| i as f32 - 2.5).collect();
            store_f32(&words, &values);
            let mut read = vec![0.0; length];
            load_f32(&words, &mut read);
            assert_eq!(read, values);
        }
    }

    #[test]
    fn bytes_survive_the_round_trip_at_every_length() {
        for length in 0..80usize {
            let words: Vec<AtomicU64> = (0..length.div_ceil(8)).map(|_| AtomicU64::new(u64::MAX)).collect();
            let bytes: Vec<u8> = (0..length).map(|i| i as u8 + 1).collect();
            store_bytes(&words, &bytes);
            let mut read = vec![0; length];
            load_bytes(&words, &mut read);
            assert_eq!(read, bytes);
        }
    }
}
