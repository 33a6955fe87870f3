//! Copies between shared words and this process's own memory.
//!
//! Bytes that another process may be writing are never behind `&` or `&mut`: they are `AtomicU64` words, read and
//! written one at a time with Relaxed ordering. What makes such a copy meaningful is a version word around it, with
//! its Acquire and Release stated where it is checked (`parameters`, `replay::store`, `gradients`).

use crate::sync::{AtomicU64, Ordering};

/// Words that `count` 32-bit values take.
pub const fn words_for(count: usize) -> usize {
    count.div_ceil(2)
}

/// Store 32-bit floats, two to a word.
pub fn store_f32(words: &[AtomicU64], values: &[f32]) {
    debug_assert!(words.len() >= words_for(values.len()));
    let mut pairs = values.chunks_exact(2);
    for (word, pair) in words.iter().zip(&mut pairs) {
        word.store(u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32, Ordering::Relaxed);
    }
    if let [last] = pairs.remainder() {
        words[values.len() / 2].store(u64::from(last.to_bits()), Ordering::Relaxed);
    }
}

/// Load 32-bit floats, two from a word.
pub fn load_f32(words: &[AtomicU64], values: &mut [f32]) {
    debug_assert!(words.len() >= words_for(values.len()));
    let odd = values.len() / 2;
    let mut pairs = values.chunks_exact_mut(2);
    for (word, pair) in words.iter().zip(&mut pairs) {
        let bits = word.load(Ordering::Relaxed);
        pair[0] = f32::from_bits(low(bits));
        pair[1] = f32::from_bits(high(bits));
    }
    if let [last] = pairs.into_remainder() {
        *last = f32::from_bits(low(words[odd].load(Ordering::Relaxed)));
    }
}

/// Store bytes, eight to a word, the last word padded with zeros.
#[inline]
pub fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    debug_assert!(words.len() >= bytes.len().div_ceil(8));
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, &chunk) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(chunk), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_le_bytes(padded), Ordering::Relaxed);
    }
}

/// Load bytes, eight from a word.
#[inline]
pub fn load_bytes(words: &[AtomicU64], bytes: &mut [u8]) {
    debug_assert!(words.len() >= bytes.len().div_ceil(8));
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

/// Lower half of a word.
#[expect(clippy::cast_possible_truncation, reason = "the truncation is what is wanted")]
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
        for length in 0..20usize {
            let words: Vec<AtomicU64> = (0..length.div_ceil(8)).map(|_| AtomicU64::new(u64::MAX)).collect();
            let bytes: Vec<u8> = (0..length).map(|i| i as u8 + 1).collect();
            store_bytes(&words, &bytes);
            let mut read = vec![0; length];
            load_bytes(&words, &mut read);
            assert_eq!(read, bytes);
        }
    }
}
