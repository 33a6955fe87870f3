//! The K-ary sum tree over priorities: exact, without locks, in batches.
//!
//! After PAL (Zhang et al. 2021): sibling groups on cache lines, only differences propagate. Ours keeps integers (see
//! `priority`), merges the differences of a batch per parent (`propagation`), lets a batch descend together
//! (`descent`), and carries in each leaf a tag of the generation that it belongs to, so that a late update of an
//! overwritten transition fails its compare-and-swap instead of landing on the transition that came after it. What
//! each of these gives is in `docs/sum-tree.md`.
//!
//! All accesses are Relaxed: a descent that meets a half-propagated sum ends on some live leaf or is drawn again, and
//! what a leaf stands for is checked against the store, which has its own ordering.
//!
//! Written against a slice of atomics, so that the same code runs on a heap slice in tests.

mod descent;
mod propagation;

pub use propagation::Differences;

use self::descent::not_negative;
use super::priority::{PRIORITY_BITS, Priority};
use crate::segment::layout::tree_level_lengths;
use crate::segment::{Region, Segment};
use crate::sync::{AtomicU64, Ordering};

/// Bits of a generation that fit beside a priority.
const TAG_MASK: u64 = (1 << (64 - PRIORITY_BITS)) - 1;
const PRIORITY_MASK: u64 = (1 << PRIORITY_BITS) - 1;

/// A leaf's value: tag in the upper bits, priority in the lower.
fn leaf_word(generation: u64, priority: u64) -> u64 {
    (generation & TAG_MASK) << PRIORITY_BITS | priority
}

/// What an audit of a quiet tree found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Audit {
    /// The root.
    pub root: u64,
    /// The sum of the leaves.
    pub leaf_sum: u64,
    /// Inner nodes that are not the sum of their children.
    pub inconsistent_nodes: usize,
}

impl Audit {
    /// Whether every node is the sum of its children.
    pub fn is_exact(&self) -> bool {
        self.root == self.leaf_sum && self.inconsistent_nodes == 0
    }
}

/// The tree.
#[derive(Clone)]
pub struct SumTree<'a> {
    /// Leaves first, the root alone in the last.
    levels: Vec<&'a [AtomicU64]>,
    fanout: usize,
    capacity: usize,
}

impl<'a> SumTree<'a> {
    /// The tree in `segment`; `None` when sampling is uniform.
    pub fn of(segment: &'a Segment) -> Option<Self> {
        let sizes = segment.layout().sizes();
        (sizes.fanout != 0).then(|| Self::new(segment.words(Region::Tree), sizes.capacity, sizes.fanout))
    }

    /// A tree of `capacity` leaves on `words`, which hold zeros or an earlier tree of the same shape.
    pub fn new(mut words: &'a [AtomicU64], capacity: usize, fanout: usize) -> Self {
        let mut levels = Vec::new();
        for length in tree_level_lengths(capacity, fanout) {
            let (level, rest) = words.split_at(length);
            levels.push(level);
            words = rest;
        }
        Self { levels, fanout, capacity }
    }

    /// Words that a tree takes.
    pub fn words_needed(capacity: usize, fanout: usize) -> usize {
        tree_level_lengths(capacity, fanout).iter().sum()
    }

    /// Number of leaves.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sum of all priorities, as the root has it; zero while a subtraction that overtook its addition makes it
    /// negative.
    pub fn total(&self) -> u64 {
        not_negative(self.root())
    }

    /// Whether the root is negative or zero: a process that stands still between a leaf and the root has not added
    /// there yet what others have subtracted since. For as long as that takes the sums are no guide, and the leaves
    /// are. (They may add up to zero as well.)
    pub fn is_overdrawn(&self) -> bool {
        self.root().cast_signed() <= 0
    }

    /// Sum of all priorities, as the leaves have it: a walk over all of them.
    pub fn leaf_sum(&self) -> u64 {
        self.levels[0].iter().map(|leaf| leaf.load(Ordering::Relaxed) & PRIORITY_MASK).fold(0, u64::wrapping_add)
    }

    fn root(&self) -> u64 {
        self.levels[self.levels.len() - 1][0].load(Ordering::Relaxed)
    }

    /// Priority in a leaf, if the leaf belongs to `generation`.
    pub fn priority(&self, slot: usize, generation: u64) -> Option<Priority> {
        let word = self.levels[0][slot].load(Ordering::Relaxed);
        (word >> PRIORITY_BITS == generation & TAG_MASK).then(|| Priority::from_bits(word))
    }

    /// Priority in a leaf, whatever generation it belongs to.
    pub fn raw_priority(&self, slot: usize) -> Priority {
        Priority::from_bits(self.levels[0][slot].load(Ordering::Relaxed))
    }

    /// Tag of the generation that a leaf belongs to: [`Self::update`] takes it in place of a generation.
    pub(super) fn tag(&self, slot: usize) -> u64 {
        self.levels[0][slot].load(Ordering::Relaxed) >> PRIORITY_BITS
    }

    /// The tag of a generation.
    pub(super) fn tag_of(generation: u64) -> u64 {
        generation & TAG_MASK
    }

    /// The tag of a leaf without an owner: its slot is empty, or its row was taken. The store gives no row a
    /// generation with this tag, so no update fits such a leaf.
    pub(super) const UNOWNED_TAG: u64 = 0;

    /// Whether this generation has the tag of leaves without an owner: no transition has such a generation.
    pub(super) fn is_unowned(generation: u64) -> bool {
        Self::tag_of(generation) == Self::UNOWNED_TAG
    }

    /// Set every leaf and every sum to zero: no leaf has an owner then. Only while nobody updates. What is zero is not
    /// written, since its memory may not be allocated before that.
    pub(super) fn empty(&self) {
        let nodes = self.levels.iter().flat_map(|level| level.iter());
        nodes.filter(|node| node.load(Ordering::Relaxed) != 0).for_each(|node| node.store(0, Ordering::Relaxed));
    }

    /// Set a leaf alone. Only while nobody else uses the tree, and to be followed by [`Self::rebuild`].
    pub(super) fn place(&self, slot: usize, generation: u64, priority: u64) {
        self.levels[0][slot].store(leaf_word(generation, priority & PRIORITY_MASK), Ordering::Relaxed);
    }

    /// Recompute every inner node from the leaves. Only while nobody updates: a repair does it behind the gate.
    pub fn rebuild(&self) {
        for depth in 1..self.levels.len() {
            self.for_each_node(depth, |node, sum| node.store(sum, Ordering::Relaxed));
        }
    }

    /// Compare every inner node with its children. Exact only while nobody updates.
    pub fn audit(&self) -> Audit {
        let mut inconsistent_nodes = 0;
        for depth in 1..self.levels.len() {
            self.for_each_node(depth, |node, sum| inconsistent_nodes += usize::from(node.load(Ordering::Relaxed) != sum));
        }
        Audit { root: self.root(), leaf_sum: self.leaf_sum(), inconsistent_nodes }
    }

    fn for_each_node(&self, depth: usize, mut visit: impl FnMut(&AtomicU64, u64)) {
        let mask = if depth == 1 { PRIORITY_MASK } else { u64::MAX };
        for (node, group) in self.levels[depth].iter().zip(self.levels[depth - 1].chunks_exact(self.fanout)) {
            visit(node, group.iter().fold(0, |sum, child| sum.wrapping_add(child.load(Ordering::Relaxed) & mask)));
        }
    }
}
