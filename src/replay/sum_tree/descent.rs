//! From targets to leaves, many at a time.
//!
//! Two things make a descent slow: it waits for memory at every level, and no branch in it can be predicted. So a chunk of
//! targets descends together, each asking for the memory of its next level while the others are looked at, and the child
//! is chosen without branches. The uppermost levels are the same for everybody: their sums are added up once per call,
//! and each target is looked up in the running totals.

use super::siblings::{Siblings, Words, not_negative};
use super::{PRIORITY_MASK, SumTree};
use crate::segment::system::prefetch;
use crate::sync::Ordering;

/// Targets that descend together: enough to hide the memory behind each other, few enough to keep what was fetched.
const CHUNK: usize = 64;
/// Most nodes whose running totals are taken, and most of them per target.
const MOST_TOTALS: usize = 256;
const MOST_TOTALS_PER_TARGET: usize = 4;
/// Totals that are looked through together.
const RUN: usize = 16;

/// Running totals over one level near the root.
struct Totals {
    /// Of the nodes up to and with each; where there is no node, more than every target.
    totals: [u64; MOST_TOTALS],
    /// The last of each run.
    runs: [u64; MOST_TOTALS / RUN],
    nodes: usize,
    depth: usize,
}

/// More than every target.
const BEHIND: u64 = i64::MAX.cast_unsigned();

impl Totals {
    #[inline(always)]
    fn of(tree: &SumTree<'_>, targets: usize) -> Self {
        let most = targets.saturating_mul(MOST_TOTALS_PER_TARGET).min(MOST_TOTALS);
        let mut depth = tree.levels.len() - 2;
        while depth > 0 && tree.levels[depth - 1].len() <= most {
            depth -= 1;
        }
        let (level, mask) = (tree.levels[depth], mask_at(depth));
        let mut totals = [BEHIND; MOST_TOTALS];
        let mut total = 0u64;
        for (place, node) in totals.iter_mut().zip(level) {
            total = total.wrapping_add(not_negative(node.load(Ordering::Relaxed) & mask));
            *place = total;
        }
        let mut runs = [BEHIND; MOST_TOTALS / RUN];
        for (place, run) in runs.iter_mut().zip(totals.as_chunks::<RUN>().0) {
            *place = run[RUN - 1];
        }
        Self { totals, runs, nodes: level.len(), depth }
    }

    /// The node on which `target` falls and what is left of the target there; `None` when all are zero.
    #[inline(always)]
    fn find<S: Siblings>(&self, siblings: S, target: u64) -> Option<(usize, u64)> {
        let target = target.min(BEHIND - 1);
        let run = siblings.rank(&self.runs, target);
        let node = run * RUN + siblings.rank(&self.totals.as_chunks::<RUN>().0[run], target);
        if node >= self.nodes || self.totals[node] <= target {
            return self.find_last();
        }
        let before = if node == 0 { 0 } else { self.totals[node - 1] };
        Some((node, target.wrapping_sub(before)))
    }

    /// The last live node: the target was drawn from a root that promised more than is here by now.
    #[cold]
    fn find_last(&self) -> Option<(usize, u64)> {
        let totals = &self.totals[..self.nodes];
        let last = totals[self.nodes - 1];
        let node = totals.partition_point(|&total| total < last);
        let before = if node == 0 { 0 } else { totals[node - 1] };
        (last != 0).then(|| (node, last.wrapping_sub(before).wrapping_sub(1)))
    }
}

/// What of a word at `depth` is its sum.
fn mask_at(depth: usize) -> u64 {
    if depth == 0 { PRIORITY_MASK } else { u64::MAX }
}

impl SumTree<'_> {
    /// Where a target falls that met only zeros.
    pub const NOWHERE: usize = usize::MAX;

    /// Find the leaf that each target (in `0..total`) falls on. A target that met only zeros gets [`SumTree::NOWHERE`]: it
    /// has to be drawn again. The targets are used up.
    pub fn find(&self, targets: &mut [u64], leaves: &mut [usize]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = self.simd {
            simd.vectorize(Descent { tree: self, targets, leaves, simd });
            return;
        }
        self.find_portably(targets, leaves);
    }

    /// As [`SumTree::find`], without vector instructions: what a processor that lacks them runs. Public for tests and
    /// benchmarks.
    pub fn find_portably(&self, targets: &mut [u64], leaves: &mut [usize]) {
        self.descend(Words, targets, leaves);
    }

    #[inline(always)]
    fn descend<S: Siblings>(&self, siblings: S, targets: &mut [u64], leaves: &mut [usize]) {
        match self.fanout {
            4 => self.descend_by::<S, 4>(siblings, targets, leaves),
            8 => self.descend_by::<S, 8>(siblings, targets, leaves),
            16 => self.descend_by::<S, 16>(siblings, targets, leaves),
            32 => self.descend_by::<S, 32>(siblings, targets, leaves),
            _ => self.descend_by::<S, 64>(siblings, targets, leaves),
        }
    }

    #[inline(always)]
    fn descend_by<S: Siblings, const K: usize>(&self, siblings: S, targets: &mut [u64], leaves: &mut [usize]) {
        let upper = Totals::of(self, targets.len());
        for (targets, nodes) in targets.chunks_mut(CHUNK).zip(leaves.chunks_mut(CHUNK)) {
            for (target, node) in targets.iter_mut().zip(nodes.iter_mut()) {
                let found = upper.find(siblings, *target);
                self.go_to::<K>(found, upper.depth, target, node);
            }
            for depth in (0..upper.depth).rev() {
                let (level, mask) = (self.levels[depth], mask_at(depth));
                for (target, node) in targets.iter_mut().zip(nodes.iter_mut()) {
                    if *node == Self::NOWHERE {
                        continue;
                    }
                    let first = *node * K;
                    let found = siblings.choose::<K>(&level[first..], mask, *target);
                    self.go_to::<K>(found.map(|(child, rest)| (first + child, rest)), depth, target, node);
                }
            }
            for leaf in nodes {
                // Padding behind the last leaf is zero for ever; a half-written sum could still lead here.
                if *leaf >= self.capacity {
                    *leaf = Self::NOWHERE;
                }
            }
        }
    }

    /// Note where a target has arrived, and ask for the children there.
    #[inline(always)]
    fn go_to<const K: usize>(&self, found: Option<(usize, u64)>, depth: usize, target: &mut u64, node: &mut usize) {
        let Some((arrived, rest)) = found else {
            *node = Self::NOWHERE;
            return;
        };
        *target = rest;
        *node = arrived;
        if let Some(below) = depth.checked_sub(1) {
            for line in self.levels[below][arrived * K..][..K].iter().step_by(8) {
                prefetch(line);
            }
        }
    }
}

/// A descent, to be compiled for the instructions that `simd` stands for.
#[cfg(target_arch = "x86_64")]
struct Descent<'d, 'a> {
    tree: &'d SumTree<'a>,
    targets: &'d mut [u64],
    leaves: &'d mut [usize],
    simd: pulp::x86::V3,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Descent<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.tree.descend(super::vectors::Vectors(self.simd), self.targets, self.leaves);
    }
}
