//! Updates without some of the ideas of our tree, and without its safety, on the words of our tree.

use shoal::replay::Priority;
use shoal::segment::layout::tree_level_lengths;
use shoal::segment::system::prefetch;
use shoal::sync::{AtomicU64, Ordering};

const PRIORITY_MASK: u64 = (1 << 39) - 1;
const AHEAD: usize = 32;
const LEVELS_AHEAD: usize = 3;

/// A way to change words.
pub(crate) trait Words {
    /// Set a leaf; returns the difference, or nothing if the leaf is of another generation.
    fn set(leaf: &AtomicU64, generation: u64, priority: u64) -> Option<u64>;
    fn add(node: &AtomicU64, difference: u64);
}

/// As our tree does: safe while other processes work on it.
pub(crate) struct Atomic;

impl Words for Atomic {
    #[inline(always)]
    fn set(leaf: &AtomicU64, generation: u64, priority: u64) -> Option<u64> {
        let mut old = leaf.load(Ordering::Relaxed);
        while old >> 39 == generation & ((1 << 25) - 1) {
            match leaf.compare_exchange_weak(old, generation << 39 | priority, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(priority.wrapping_sub(old & PRIORITY_MASK)),
                Err(now) => old = now,
            }
        }
        None
    }

    #[inline(always)]
    fn add(node: &AtomicU64, difference: u64) {
        if difference != 0 {
            node.fetch_add(difference, Ordering::Relaxed);
        }
    }
}

/// For one thread alone, which never dies: plain loads and stores, and no tags.
pub(crate) struct Unprotected;

impl Words for Unprotected {
    #[inline(always)]
    fn set(leaf: &AtomicU64, _: u64, priority: u64) -> Option<u64> {
        let old = leaf.load(Ordering::Relaxed);
        leaf.store(priority, Ordering::Relaxed);
        Some(priority.wrapping_sub(old))
    }

    #[inline(always)]
    fn add(node: &AtomicU64, difference: u64) {
        node.store(node.load(Ordering::Relaxed).wrapping_add(difference), Ordering::Relaxed);
    }
}

/// For several processes that never die and never come late: leaves are exchanged, and have no tags.
pub(crate) struct Immortal;

impl Words for Immortal {
    #[inline(always)]
    fn set(leaf: &AtomicU64, _: u64, priority: u64) -> Option<u64> {
        Some(priority.wrapping_sub(leaf.swap(priority, Ordering::Relaxed)))
    }

    #[inline(always)]
    fn add(node: &AtomicU64, difference: u64) {
        Atomic::add(node, difference);
    }
}

/// As our tree does, except for the leaves, which are plain.
pub(crate) struct UnprotectedLeaves;

impl Words for UnprotectedLeaves {
    #[inline(always)]
    fn set(leaf: &AtomicU64, generation: u64, priority: u64) -> Option<u64> {
        Unprotected::set(leaf, generation, priority)
    }

    #[inline(always)]
    fn add(node: &AtomicU64, difference: u64) {
        Atomic::add(node, difference);
    }
}

/// As our tree does, except for the sums, which are plain.
pub(crate) struct UnprotectedSums;

impl Words for UnprotectedSums {
    #[inline(always)]
    fn set(leaf: &AtomicU64, generation: u64, priority: u64) -> Option<u64> {
        Atomic::set(leaf, generation, priority)
    }

    #[inline(always)]
    fn add(node: &AtomicU64, difference: u64) {
        Unprotected::add(node, difference);
    }
}

/// Which ideas to use.
#[derive(Clone, Copy)]
pub(crate) struct Ideas {
    pub(crate) merge: bool,
    pub(crate) ahead: bool,
    pub(crate) gather: bool,
}

#[derive(Default)]
pub(crate) struct Scratch {
    gathered: Vec<u64>,
}

/// Set priorities and carry the differences to the root.
pub(crate) fn update<W: Words, const K: usize>(
    words: &[AtomicU64],
    capacity: usize,
    batch: &[(usize, u64, Priority)],
    ideas: Ideas,
    scratch: &mut Scratch,
) {
    let lengths = tree_level_lengths(capacity, K);
    let mut rest = words;
    let levels: Vec<&[AtomicU64]> = lengths.iter().map(|&length| rest.split_off(..length).expect("room for the tree")).collect();
    let shift = K.trailing_zeros();
    let is_small = |level: &&[AtomicU64]| level.len() <= batch.len();
    let root = levels.len() - 1;
    let top = if ideas.gather { 1 + levels[1..].iter().position(is_small).unwrap_or(root - 1) } else { root };
    scratch.gathered.resize(levels[top].len().max(scratch.gathered.len()), 0);
    let gathered = &mut scratch.gathered[..levels[top].len()];
    let mut merged = [(0, 0u64); 16];
    for chunk in batch.chunks(AHEAD) {
        if ideas.ahead {
            for &(slot, ..) in chunk {
                let fetched = levels[..top.min(LEVELS_AHEAD)].iter().zip(0..);
                fetched.for_each(|(level, height)| prefetch(&level[slot >> (shift * height)]));
            }
        }
        for &(slot, generation, priority) in chunk {
            let bits = (priority.to_f64() * f64::from(1u32 << 20)) as u64;
            let Some(difference) = W::set(&levels[0][slot], generation, bits) else { continue };
            let mut node = slot;
            for (level, merged) in levels[1..top].iter().zip(&mut merged) {
                node >>= shift;
                if ideas.merge && merged.0 == node {
                    merged.1 = merged.1.wrapping_add(difference);
                } else {
                    W::add(&level[merged.0], merged.1);
                    *merged = (node, difference);
                }
            }
            if ideas.gather || ideas.merge {
                let place = &mut gathered[node >> shift];
                *place = place.wrapping_add(difference);
            } else {
                W::add(&levels[root][0], difference);
            }
        }
    }
    for (level, merged) in levels[1..top].iter().zip(&merged) {
        W::add(&level[merged.0], merged.1);
    }
    let mut length = gathered.len();
    for level in &levels[top..] {
        for (node, &difference) in level.iter().zip(&gathered[..length]) {
            W::add(node, difference);
        }
        let parents = length.div_ceil(K);
        for parent in 0..parents {
            let group = &mut gathered[parent * K..((parent + 1) * K).min(length)];
            let sum = group.iter().copied().fold(0, u64::wrapping_add);
            group.fill(0);
            gathered[parent] = sum;
        }
        length = parents;
    }
    gathered[..length].fill(0);
}
