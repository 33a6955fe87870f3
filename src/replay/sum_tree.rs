//! The K-ary sum tree over priorities: exact, without locks, in batches.
//!
//! After PAL (Zhang et al. 2021): sibling groups on cache lines, only differences propagate. Ours keeps integers (see
//! `priority`), merges the differences of a batch per parent, and carries in each leaf a tag of the generation that it
//! belongs to, so that a late update of an overwritten transition fails its compare-and-swap instead of landing on the
//! transition that came after it.
//!
//! All accesses are Relaxed: a descent that meets a half-propagated sum ends on some live leaf or is drawn again, and
//! what a leaf stands for is checked against the store, which has its own ordering.
//!
//! Written against a slice of atomics, so that the same code runs on a heap slice in tests.

use super::priority::{PRIORITY_BITS, Priority};
use crate::segment::layout::tree_level_lengths;
use crate::segment::system::prefetch;
use crate::sync::{AtomicU64, Ordering};

/// Bits of a generation that fit beside a priority.
const TAG_MASK: u64 = (1 << (64 - PRIORITY_BITS)) - 1;
const PRIORITY_MASK: u64 = (1 << PRIORITY_BITS) - 1;

/// A leaf's value: tag in the upper bits, priority in the lower.
fn leaf_word(generation: u64, priority: u64) -> u64 {
    (generation & TAG_MASK) << PRIORITY_BITS | priority
}

/// A sum, or zero while a subtraction that overtook its addition makes it negative.
#[inline(always)]
fn not_negative(sum: u64) -> u64 {
    sum.cast_signed().max(0).cast_unsigned()
}

/// Siblings that are looked at together.
const BLOCK: usize = 4;

/// The child on which `target` falls and what is left of the target there; `None` when all are zero.
///
/// Whole blocks of siblings are passed first, then the siblings of one block, without branches that depend on the
/// target, since nobody could predict them.
#[inline(always)]
fn choose<const K: usize>(group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
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

/// As `choose`, for a group whose sums are on their way: those that are negative for a moment count as zero, and where
/// the parent promised more than its children hold the last live child is chosen.
#[cold]
fn choose_carefully(group: &[AtomicU64], mask: u64, mut target: u64) -> Option<(usize, u64)> {
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

/// Differences on their way to the root; kept between batches so that none allocates.
#[derive(Debug, Default)]
pub struct Differences {
    nodes: Vec<(usize, u64)>,
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

    /// Sum of all priorities, as the root has it; zero while a subtraction that overtook its addition makes it negative.
    pub fn total(&self) -> u64 {
        not_negative(self.root())
    }

    fn root(&self) -> u64 {
        self.levels[self.levels.len() - 1][0].load(Ordering::Relaxed)
    }

    /// Priority in a leaf, if the leaf belongs to `generation`.
    pub fn priority(&self, slot: usize, generation: u64) -> Option<Priority> {
        let word = self.levels[0][slot].load(Ordering::Relaxed);
        (word >> PRIORITY_BITS == generation & TAG_MASK).then(|| Priority::from_bits(word))
    }

    /// Priority in a leaf, whatever it belongs to.
    pub fn raw_priority(&self, slot: usize) -> Priority {
        Priority::from_bits(self.levels[0][slot].load(Ordering::Relaxed))
    }

    /// Hand the leaves to new generations with priority zero: nobody samples them until they are published.
    pub fn clear(&self, slots: &[(usize, u64)], differences: &mut Differences) {
        differences.nodes.clear();
        for &(slot, generation) in slots {
            let old = self.levels[0][slot].swap(leaf_word(generation, 0), Ordering::Relaxed);
            differences.nodes.push((slot, (old & PRIORITY_MASK).wrapping_neg()));
        }
        self.propagate(differences);
    }

    /// Set the priorities of leaves that still belong to the given generations; returns how many no longer do.
    pub fn update(&self, changes: impl Iterator<Item = (usize, u64, Priority)>, differences: &mut Differences) -> u64 {
        differences.nodes.clear();
        let mut stale = 0;
        for (slot, generation, priority) in changes {
            let leaf = &self.levels[0][slot];
            let mut old = leaf.load(Ordering::Relaxed);
            loop {
                if old >> PRIORITY_BITS != generation & TAG_MASK {
                    stale += 1;
                    break;
                }
                let new = leaf_word(generation, priority.0);
                match leaf.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        differences.nodes.push((slot, priority.0.wrapping_sub(old & PRIORITY_MASK)));
                        break;
                    }
                    Err(now) => old = now,
                }
            }
        }
        self.propagate(differences);
        stale
    }

    /// Carry differences to the root, one addition per distinct node and level as far as neighbours in the list share
    /// it. Stratified samples and claimed slots come in ascending order, so there they all do.
    fn propagate(&self, differences: &mut Differences) {
        let shift = self.fanout.trailing_zeros();
        let nodes = &mut differences.nodes;
        for level in &self.levels[1..] {
            let mut kept = 0;
            for index in 0..nodes.len() {
                let (node, difference) = (nodes[index].0 >> shift, nodes[index].1);
                if kept > 0 && nodes[kept - 1].0 == node {
                    nodes[kept - 1].1 = nodes[kept - 1].1.wrapping_add(difference);
                } else {
                    nodes[kept] = (node, difference);
                    kept += 1;
                }
            }
            nodes.truncate(kept);
            for &(node, difference) in nodes.iter() {
                if difference != 0 {
                    level[node].fetch_add(difference, Ordering::Relaxed);
                }
            }
        }
    }

    /// Find the leaf that each target (in `0..total`) falls on. The whole batch descends one level at a time, so that
    /// the cache misses of its members overlap. A leaf whose group held only zeros is returned as `None`'s stand-in
    /// [`SumTree::NOWHERE`]: its target has to be drawn again.
    pub fn find(&self, targets: &mut [u64], leaves: &mut [usize]) {
        match self.fanout {
            4 => self.descend::<4>(targets, leaves),
            8 => self.descend::<8>(targets, leaves),
            16 => self.descend::<16>(targets, leaves),
            32 => self.descend::<32>(targets, leaves),
            _ => self.descend::<64>(targets, leaves),
        }
    }

    /// Where a target falls that met only zeros.
    pub const NOWHERE: usize = usize::MAX;

    fn descend<const K: usize>(&self, targets: &mut [u64], leaves: &mut [usize]) {
        leaves.fill(0);
        for depth in (0..self.levels.len() - 1).rev() {
            let level = self.levels[depth];
            let below = depth.checked_sub(1).map(|depth| self.levels[depth]);
            let mask = if depth == 0 { PRIORITY_MASK } else { u64::MAX };
            for (target, node) in targets.iter_mut().zip(leaves.iter_mut()) {
                if *node == Self::NOWHERE {
                    continue;
                }
                let Some((child, rest)) = choose::<K>(&level[*node * K..], mask, *target) else {
                    *node = Self::NOWHERE;
                    continue;
                };
                *target = rest;
                *node = *node * K + child;
                if let Some(below) = below {
                    for line in below[*node * K..][..K].iter().step_by(8) {
                        prefetch(line);
                    }
                }
            }
        }
        for leaf in leaves {
            // Padding behind the last leaf is zero for ever; a half-written sum could still lead here.
            if *leaf >= self.capacity {
                *leaf = Self::NOWHERE;
            }
        }
    }

    /// Set a leaf alone. Only while nobody else uses the tree, and to be followed by [`Self::rebuild`].
    pub(super) fn place(&self, slot: usize, generation: u64, priority: u64) {
        self.levels[0][slot].store(leaf_word(generation, priority & PRIORITY_MASK), Ordering::Relaxed);
    }

    /// Recompute every inner node from the leaves. Only while nobody updates: the supervisor does it behind the gate.
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
        let leaves = self.levels[0].iter().map(|leaf| leaf.load(Ordering::Relaxed) & PRIORITY_MASK);
        Audit { root: self.root(), leaf_sum: leaves.fold(0, u64::wrapping_add), inconsistent_nodes }
    }

    fn for_each_node(&self, depth: usize, mut visit: impl FnMut(&AtomicU64, u64)) {
        let mask = if depth == 1 { PRIORITY_MASK } else { u64::MAX };
        for (node, group) in self.levels[depth].iter().zip(self.levels[depth - 1].chunks_exact(self.fanout)) {
            visit(node, group.iter().fold(0, |sum, child| sum.wrapping_add(child.load(Ordering::Relaxed) & mask)));
        }
    }
}
