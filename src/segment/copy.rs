//! Copies of many bytes at once, with words on one side or both that another process may be writing.
//!
//! The compiler takes atomic words one at a time, and never puts two into one instruction. A row of observations is
//! then twice as many instructions as a plain copy, so the copy is written out here, for x86-64, where 16 bytes at a
//! time need no feature that some processor lacks. Elsewhere `shared_words` copies word by word.

use std::arch::asm;

use crate::sync::AtomicU64;

/// The fewest bytes that are copied here.
pub(super) const LEAST_BYTES: usize = 16;

/// Copy as many bytes as `bytes` has room for.
///
/// # Panics
/// When there are fewer in `words`, or fewer than [`LEAST_BYTES`].
#[inline(always)]
pub(super) fn from_words(words: &[AtomicU64], bytes: &mut [u8]) {
    assert!((LEAST_BYTES..=size_of_val(words)).contains(&bytes.len()), "{} bytes of {} words", bytes.len(), words.len());
    // SAFETY: both sides have that many bytes, as checked above, and `bytes` is borrowed for us alone.
    unsafe { copy(words.as_ptr().cast(), bytes.as_mut_ptr(), bytes.len()) }
}

/// Copy all of `bytes`.
///
/// # Panics
/// When `words` has no room for them, or there are fewer than [`LEAST_BYTES`].
#[inline(always)]
pub(super) fn to_words(words: &[AtomicU64], bytes: &[u8]) {
    assert!((LEAST_BYTES..=size_of_val(words)).contains(&bytes.len()), "{} bytes for {} words", bytes.len(), words.len());
    // SAFETY: both sides have that many bytes, as checked above, and atomic words may be written behind a shared
    // reference.
    unsafe { copy(bytes.as_ptr(), words.as_ptr().cast_mut().cast(), bytes.len()) }
}

/// Copy words to words.
///
/// # Panics
/// When the lengths differ, or there are fewer bytes than [`LEAST_BYTES`].
#[inline(always)]
pub(super) fn between_words(to: &[AtomicU64], from: &[AtomicU64]) {
    assert_eq!(to.len(), from.len(), "words to copy");
    assert!(size_of_val(from) >= LEAST_BYTES, "{} words to copy", from.len());
    // SAFETY: both sides have that many bytes, as checked above, and atomic words may be written behind a shared
    // reference.
    unsafe { copy(from.as_ptr().cast(), to.as_ptr().cast_mut().cast(), size_of_val(from)) }
}

/// Sixteen bytes at a time; the last sixteen overlap those before them unless the length is a multiple.
///
/// # Safety
/// `length` is at least 16, `from` may be read and `to` written for as many bytes, and whatever other threads or
/// processes access meanwhile is atomic words on their side too.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: what the caller promises. Instructions of the processor, unlike plain reads of the language, may meet
    // bytes that are being written: they give old or new bytes, and a copy out of shared words is checked against a
    // version word. The processor keeps the order of these loads among loads, and of these stores among stores, so
    // the fences around them mean here what they mean for Relaxed accesses; the compiler takes the block for one that
    // reads and writes any memory.
    unsafe {
        asm!(
            "2:",
            "movups {sixteen}, [{from} + {at}]",
            "movups [{to} + {at}], {sixteen}",
            "add {at}, 16",
            "cmp {at}, {last}",
            "jb 2b",
            "movups {sixteen}, [{from} + {last}]",
            "movups [{to} + {last}], {sixteen}",
            sixteen = out(xmm_reg) _,
            from = in(reg) from,
            to = in(reg) to,
            at = inout(reg) 0usize => _,
            last = in(reg) length - LEAST_BYTES,
            options(nostack),
        );
    }
}
