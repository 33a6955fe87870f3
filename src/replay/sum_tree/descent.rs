//! From targets to leaves, a batch at a time.
//!
//! Two things make a descent slow: it waits for memory at every level, and no branch in it can be predicted. So some
//! dozens of targets descend together, level by level, each asking for the memory of its next level while the others
//! are looked at, and the child is chosen without branches. Near the root, where a batch has more targets than a
//! level has nodes, one walk over the level serves them all, or a search among its running totals.

use super::{PRIORITY_MASK, SumTree};
use crate::segment::system::prefetch;
use crate::sync::{AtomicU64, Ordering};

/// A sum, or zero while a subtraction that overtook its addition makes it negative.
#[inline(always)]
pub(super) fn not_negative(sum: u64) -> u64 {
    sum.cast_signed().max(0).cast_unsigned()
}

/// Nodes of a level, per target, up to which a walk or search over the level is faster than descending to it.
const NODES_PER_TARGET: usize = 2;

/// Most nodes of a level of which running totals are made for targets in no order.
const SEARCHED: usize = 1024;

/// Targets that descend together: more would push out of the nearest cache what was fetched for them.
const TOGETHER: usize = 64;

/// Siblings that are looked at together.
const BLOCK: usize = 4;

/// The child on which `target` falls and what is left of the target there; `None` when all are zero.
///
/// Whole blocks of siblings are passed first, then the siblings of one block, without branches that depend on the
/// target, since nobody could predict them.
#[inline(always)]
fn choose<const K: usize>(group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
    let (blocks, _) = group[..K].as_chunks::<BLOCK>();
    let mut block = 0;
    let mut passed = 0;
    let mut prefix = 0u64;
    let mut signs = 0;
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

/// As `choose`, for a group whose sums are changing: sums that are negative for a moment count as zero, and if the
/// parent promised more than its children hold, the last child that is not zero is chosen.
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

impl SumTree<'_> {
    /// Find the leaf that each target (in `0..total`) falls on. Dozens of targets descend one level at a time, so
    /// that their cache misses overlap. A target that met only zeros gets [`SumTree::NOWHERE`], and has to be drawn
    /// again.
    pub fn find(&self, targets: &mut [u64], leaves: &mut [usize]) {
        match self.fanout {
            4 => self.descend::<4>(targets, leaves),
            8 => self.descend::<8>(targets, leaves),
            16 => self.descend::<16>(targets, leaves),
            32 => self.descend::<32>(targets, leaves),
            _ => self.descend::<64>(targets, leaves),
        }
    }

    /// As [`Self::find`], of targets in `0..leaf_sum()`, by the leaves alone: right whatever the sums are, in one
    /// walk over all leaves. Sorts the targets.
    #[cold]
    pub fn find_by_leaves(&self, targets: &mut [u64], leaves: &mut [usize]) {
        targets.sort_unstable();
        let priority = |leaf: usize| self.levels[0][leaf].load(Ordering::Relaxed) & PRIORITY_MASK;
        let mut leaf = 0;
        let mut passed = 0;
        let mut here = priority(0);
        for (target, place) in targets.iter().zip(leaves) {
            while *target - passed >= here && leaf + 1 < self.capacity {
                passed += here;
                leaf += 1;
                here = priority(leaf);
            }
            // The leaves may have changed since they were added up, and hold less now.
            *place = if *target - passed < here { leaf } else { Self::NOWHERE };
        }
    }

    /// In place of a leaf, for a target that met only zeros.
    pub const NOWHERE: usize = usize::MAX;

    fn descend<const K: usize>(&self, targets: &mut [u64], leaves: &mut [usize]) {
        let mut start = self.start(targets);
        for (targets, nodes) in targets.chunks_mut(TOGETHER).zip(leaves.chunks_mut(TOGETHER)) {
            let top = match &mut start {
                Start::Root => {
                    nodes.fill(0);
                    self.levels.len() - 1
                }
                Start::Walk(walk) => {
                    walk.place::<K>(targets, nodes);
                    walk.depth
                }
                Start::Search(search) => {
                    search.place::<K>(targets, nodes);
                    search.depth
                }
            };
            self.descend_from::<K>(top, targets, nodes);
        }
    }

    /// Take targets from nodes at depth `top` to leaves, all of them one level at a time.
    fn descend_from<const K: usize>(&self, top: usize, targets: &mut [u64], nodes: &mut [usize]) {
        for depth in (0..top).rev() {
            let level = self.levels[depth];
            let below = depth.checked_sub(1).map(|depth| self.levels[depth]);
            let mask = if depth == 0 { PRIORITY_MASK } else { u64::MAX };
            for (target, node) in targets.iter_mut().zip(nodes.iter_mut()) {
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
                    prefetch_group::<K>(below, *node);
                }
            }
        }
        for leaf in nodes {
            // Padding behind the last leaf is zero for ever; a half-written sum could still lead here.
            if *leaf >= self.capacity {
                *leaf = Self::NOWHERE;
            }
        }
    }

    /// Where a batch enters: at the lowest level that has about as many nodes as there are targets, since looking at
    /// each of these nodes once costs less than looking at a whole group for each target and level above. If the
    /// targets are in ascending order, as those of a stratified batch are, one walk over the level serves them all;
    /// otherwise each is searched for among the level's running totals.
    fn start(&self, targets: &[u64]) -> Start<'_> {
        let root = self.levels.len() - 1;
        let is_sorted = targets.is_sorted();
        let most = (targets.len() * NODES_PER_TARGET).min(if is_sorted { usize::MAX } else { SEARCHED });
        let Some(depth) = (1..root).find(|&depth| self.levels[depth].len() <= most) else { return Start::Root };
        let (level, below) = (self.levels[depth], self.levels[depth - 1]);
        if is_sorted {
            return Start::Walk(Walk { depth, level, below, node: 0, passed: 0, sum: sum_of(&level[0]) });
        }
        let mut totals = [0; SEARCHED];
        let mut total = 0u64;
        for (place, node) in totals.iter_mut().zip(level) {
            total += sum_of(node);
            *place = total;
        }
        Start::Search(Search { depth, below, totals, count: level.len() })
    }
}

/// Where a batch begins its descent.
#[expect(clippy::large_enum_variant, reason = "there is one, on the stack, for a whole batch")]
enum Start<'a> {
    Root,
    Walk(Walk<'a>),
    Search(Search<'a>),
}

/// Running totals of the nodes of one level.
struct Search<'a> {
    depth: usize,
    below: &'a [AtomicU64],
    totals: [u64; SEARCHED],
    count: usize,
}

impl Search<'_> {
    /// Take targets to their nodes, by a binary search, which the library does without branches.
    fn place<const K: usize>(&self, targets: &mut [u64], nodes: &mut [usize]) {
        let totals = &self.totals[..self.count];
        for (target, place) in targets.iter_mut().zip(nodes) {
            let node = totals.partition_point(|total| *total <= *target);
            if node == totals.len() {
                // Sums that were changing promised more than the level holds.
                *place = SumTree::NOWHERE;
                continue;
            }
            *target -= if node == 0 { 0 } else { totals[node - 1] };
            *place = node;
            prefetch_group::<K>(self.below, node);
        }
    }
}

/// A walk over the nodes of one level.
struct Walk<'a> {
    depth: usize,
    level: &'a [AtomicU64],
    below: &'a [AtomicU64],
    node: usize,
    /// Sum of the nodes before it.
    passed: u64,
    /// Sum of the node itself, as it was when the walk came to it.
    sum: u64,
}

impl Walk<'_> {
    /// Take targets, none of them smaller than the one before, to their nodes.
    fn place<const K: usize>(&mut self, targets: &mut [u64], nodes: &mut [usize]) {
        let Self { level, below, mut node, mut passed, mut sum, .. } = *self;
        for (target, place) in targets.iter_mut().zip(nodes) {
            while *target - passed >= sum && node + 1 < level.len() {
                passed += sum;
                node += 1;
                sum = sum_of(&level[node]);
            }
            *target -= passed;
            if *target >= sum {
                // Sums that were changing promised more than the level holds.
                *place = SumTree::NOWHERE;
                continue;
            }
            *place = node;
            prefetch_group::<K>(below, node);
        }
        (self.node, self.passed, self.sum) = (node, passed, sum);
    }
}

#[inline(always)]
fn sum_of(node: &AtomicU64) -> u64 {
    not_negative(node.load(Ordering::Relaxed))
}

/// Ask for the children of `node`.
#[inline(always)]
fn prefetch_group<const K: usize>(below: &[AtomicU64], node: usize) {
    for line in below[node * K..][..K].iter().step_by(8) {
        prefetch(line);
    }
}
