//! Changes of leaves and, from there to the root, the differences that they make.
//!
//! An addition that other processes may make as well costs as much as twenty others, so each inner node gets as few
//! as possible. On the lower levels, which are far larger than a batch, neighbours in the batch are merged:
//! stratified samples and claimed slots come in ascending order, so there all meet that can. On the upper levels,
//! which are no larger than the batch, all differences are gathered in private words first, whatever their order, and
//! each node gets one addition.

use std::cell::Cell;

use super::{PRIORITY_BITS, PRIORITY_MASK, SumTree, TAG_MASK, leaf_word};
use crate::replay::priority::Priority;
use crate::segment::system::prefetch;
use crate::sync::{AtomicU64, Ordering};

/// Changes whose memory is asked for before the first of them is made.
const AHEAD: usize = 32;
/// Levels that a change asks for: those above are small enough to be at hand.
const LEVELS_AHEAD: usize = 3;
/// Most levels: those of the smallest fan-out and the largest capacity.
const MOST_LEVELS: usize = 16;

/// Differences on their way to the root; kept between batches so that none allocates.
#[derive(Debug, Default)]
pub struct Differences {
    /// One word for each node of the lowest level that is gathered; all zero between two batches.
    gathered: Vec<u64>,
}

/// What the neighbours in a batch add to the node that they share.
#[derive(Clone, Copy)]
struct Merged {
    node: usize,
    difference: u64,
}

fn add(node: &AtomicU64, difference: u64) {
    if difference != 0 {
        node.fetch_add(difference, Ordering::Relaxed);
    }
}

impl SumTree<'_> {
    /// Hand the leaves to new generations with priority zero: nobody samples them until they are published.
    pub fn clear(&self, slots: &[(usize, u64)], differences: &mut Differences) {
        self.change(slots.iter().copied(), differences, |leaf, generation| {
            let old = leaf.swap(leaf_word(generation, 0), Ordering::Relaxed);
            Some((old & PRIORITY_MASK).wrapping_neg())
        });
    }

    /// Set the priorities of leaves that still belong to the given generations; returns how many no longer do.
    pub fn update(&self, changes: impl Iterator<Item = (usize, u64, Priority)>, differences: &mut Differences) -> u64 {
        self.update_and_compare(changes, differences).0
    }

    /// As [`Self::update`]. Returns also the largest priority that was set: [`Priority::NEVER`] if none was.
    pub(in crate::replay) fn update_and_compare(
        &self,
        changes: impl Iterator<Item = (usize, u64, Priority)>,
        differences: &mut Differences,
    ) -> (u64, Priority) {
        let changes = changes.map(|(slot, generation, priority)| (slot, (generation, priority.0)));
        let largest = Cell::new(Priority::NEVER.0);
        let refused = self.change(changes, differences, |leaf, (generation, priority)| {
            let mut old = leaf.load(Ordering::Relaxed);
            while old >> PRIORITY_BITS == generation & TAG_MASK {
                match leaf.compare_exchange_weak(old, leaf_word(generation, priority), Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        largest.set(largest.get().max(priority));
                        return Some(priority.wrapping_sub(old & PRIORITY_MASK));
                    }
                    Err(now) => old = now,
                }
            }
            None
        });
        (refused, Priority(largest.get()))
    }

    /// Take the priority of a leaf, if it is not zero and the leaf still belongs to `generation`: the leaf has no
    /// owner afterwards. Of several callers at once, one alone gets `true`.
    pub fn take(&self, slot: usize, generation: u64, differences: &mut Differences) -> bool {
        let refused = self.change(std::iter::once((slot, generation)), differences, |leaf, generation| {
            let mut old = leaf.load(Ordering::Relaxed);
            while old >> PRIORITY_BITS == generation & TAG_MASK && old & PRIORITY_MASK != 0 {
                // Relaxed: the row was read under its slot word, and nothing else is handed over here.
                match leaf.compare_exchange_weak(old, leaf_word(Self::UNOWNED_TAG, 0), Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Some((old & PRIORITY_MASK).wrapping_neg()),
                    Err(now) => old = now,
                }
            }
            None
        });
        refused == 0
    }

    /// Make `change` on each named leaf and carry the differences that it returns to the root; returns how many leaves
    /// refused.
    fn change<T: Copy + Default>(
        &self,
        mut changes: impl Iterator<Item = (usize, T)>,
        differences: &mut Differences,
        change: impl Fn(&AtomicU64, T) -> Option<u64>,
    ) -> u64 {
        let (least, most) = changes.size_hint();
        let gathered_depth = self.gathered_depth(most.unwrap_or(least));
        let length = self.levels[gathered_depth].len();
        if differences.gathered.len() < length {
            differences.gathered.resize(length, 0);
        }
        let gathered = &mut differences.gathered[..length];
        let shift = self.fanout.trailing_zeros();
        let mut merged = [Merged { node: 0, difference: 0 }; MOST_LEVELS];
        let merged = &mut merged[1..gathered_depth];
        let mut refused = 0;
        let mut fetched = [(0, T::default()); AHEAD];
        loop {
            let mut count = 0;
            for (place, next) in fetched.iter_mut().zip(&mut changes) {
                let mut node = next.0;
                for level in &self.levels[..gathered_depth.min(LEVELS_AHEAD)] {
                    prefetch(&level[node]);
                    node >>= shift;
                }
                *place = next;
                count += 1;
            }
            for &(slot, wanted) in &fetched[..count] {
                let Some(difference) = change(&self.levels[0][slot], wanted) else {
                    refused += 1;
                    continue;
                };
                let mut node = slot;
                for (level, merged) in self.levels[1..].iter().zip(merged.iter_mut()) {
                    node >>= shift;
                    if merged.node == node {
                        merged.difference = merged.difference.wrapping_add(difference);
                    } else {
                        add(&level[merged.node], merged.difference);
                        *merged = Merged { node, difference };
                    }
                }
                let place = &mut gathered[node >> shift];
                *place = place.wrapping_add(difference);
            }
            if count < AHEAD {
                break;
            }
        }
        for (level, merged) in self.levels[1..].iter().zip(merged) {
            add(&level[merged.node], merged.difference);
        }
        self.add_gathered(gathered, gathered_depth);
        refused
    }

    /// The lowest level above the leaves that has no more nodes than a batch of `changes`.
    fn gathered_depth(&self, changes: usize) -> usize {
        let is_small = |level: &&[AtomicU64]| level.len() <= changes;
        1 + self.levels[1..].iter().position(is_small).unwrap_or(self.levels.len() - 2)
    }

    /// Add what was gathered for the nodes at `depth` to them and to the levels above; leaves `gathered` filled with
    /// zeros.
    fn add_gathered(&self, gathered: &mut [u64], depth: usize) {
        let mut length = gathered.len();
        for level in &self.levels[depth..] {
            for (node, &difference) in level.iter().zip(&gathered[..length]) {
                add(node, difference);
            }
            // The sums of the groups move to the front, with zeros behind them.
            let parents = length.div_ceil(self.fanout);
            for parent in 0..parents {
                let first = parent * self.fanout;
                let group = &mut gathered[first..(first + self.fanout).min(length)];
                let sum = group.iter().copied().fold(0, u64::wrapping_add);
                group.fill(0);
                gathered[parent] = sum;
            }
            length = parents;
        }
        gathered[..length].fill(0);
    }
}
