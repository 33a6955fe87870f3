//! One step of a descent: on which of a node's children a target falls. Here in plain integers, for every processor;
//! `vectors` does the same four children at a time.

use crate::sync::{AtomicU64, Ordering};

/// A sum, or zero while a subtraction that overtook its addition makes it negative.
#[inline(always)]
pub(super) fn not_negative(sum: u64) -> u64 {
    sum.cast_signed().max(0).cast_unsigned()
}

/// A way to look at siblings. All ways find the same child.
pub(super) trait Siblings: Copy {
    /// The child of a group of `K` on which `target` falls and what is left of the target there; `None` when all are zero.
    fn choose<const K: usize>(self, group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)>;

    /// How many of `prefixes`, which ascend, are at most `target`, counted up to the last but one.
    fn rank(self, prefixes: &[u64; 16], target: u64) -> usize;
}

/// Siblings that are looked at together.
const BLOCK: usize = 4;

/// One word at a time.
#[derive(Clone, Copy)]
pub(super) struct Words;

impl Siblings for Words {
    /// Whole blocks of siblings are passed first, then the siblings of one block, without branches that depend on the
    /// target, since nobody could predict them.
    #[inline(always)]
    fn choose<const K: usize>(self, group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
        let (blocks, _) = group[..K].as_chunks::<BLOCK>();
        let (mut block, mut passed, mut prefix, mut signs) = (0, 0, 0u64, 0);
        for siblings in &blocks[..K / BLOCK - 1] {
            let sums = siblings.each_ref().map(|sibling| sibling.load(Ordering::Relaxed) & mask);
            signs |= sums[0] | sums[1] | sums[2] | sums[3];
            prefix = prefix.wrapping_add((sums[0].wrapping_add(sums[1])).wrapping_add(sums[2].wrapping_add(sums[3])));
            let is_passed = prefix <= target;
            block += usize::from(is_passed);
            passed = if is_passed { prefix } else { passed };
        }
        let mut child = 0;
        prefix = passed;
        for sibling in &blocks[block & (K / BLOCK - 1)] {
            let sum = sibling.load(Ordering::Relaxed) & mask;
            signs |= sum;
            prefix = prefix.wrapping_add(sum);
            let is_passed = prefix <= target;
            child += usize::from(is_passed);
            passed = if is_passed { prefix } else { passed };
        }
        if child == BLOCK || signs.cast_signed() < 0 {
            return choose_carefully(&group[..K], mask, target);
        }
        Some((block * BLOCK + child, target - passed))
    }

    #[inline(always)]
    fn rank(self, prefixes: &[u64; 16], target: u64) -> usize {
        let mut rank = 0;
        for step in [8, 4, 2, 1] {
            rank = std::hint::select_unpredictable(prefixes[rank + step - 1] <= target, rank + step, rank);
        }
        rank
    }
}

/// As `choose`, for a group whose sums are on their way: those that are negative for a moment count as zero, and where
/// the parent promised more than its children hold the last live child is chosen.
#[cold]
pub(super) fn choose_carefully(group: &[AtomicU64], mask: u64, mut target: u64) -> Option<(usize, u64)> {
    let mut last = None;
    for (child, sibling) in group.iter().enumerate() {
        let sum = not_negative(sibling.load(Ordering::Relaxed) & mask);
        if target < sum {
            return Some((child, target));
        }
        if sum != 0 {
            last = Some((child, sum - 1));
        }
        target -= sum;
    }
    last
}
