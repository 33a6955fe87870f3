//! Descents without some of the ideas of our tree, on the words of our tree.

use shoal::segment::layout::tree_level_lengths;
use shoal::segment::system::prefetch;
use shoal::sync::{AtomicU64, Ordering};

const PRIORITY_MASK: u64 = (1 << 39) - 1;

/// Sibling groups from the root's children to the leaves, with a mask of the bits of each word that are its sum.
fn levels(words: &[AtomicU64], capacity: usize, fanout: usize) -> impl Iterator<Item = (&[AtomicU64], u64)> + Clone {
    let lengths = tree_level_lengths(capacity, fanout);
    (0..lengths.len() - 1).rev().map(move |depth| {
        let first: usize = lengths[..depth].iter().sum();
        (&words[first..][..lengths[depth]], if depth == 0 { PRIORITY_MASK } else { u64::MAX })
    })
}

/// The child on which `target` falls, and what is left of `target` there: scanned from left to right.
fn scan(group: &[AtomicU64], mask: u64, mut target: u64) -> (usize, u64) {
    for (child, sibling) in group.iter().enumerate() {
        let sum = sibling.load(Ordering::Relaxed) & mask;
        if target < sum {
            return (child, target);
        }
        target -= sum;
    }
    (group.len() - 1, 0)
}

/// As [`scan`], but blocks of four, then one block, by additions and conditional moves.
#[inline(always)]
fn choose<const K: usize>(group: &[AtomicU64], mask: u64, target: u64) -> (usize, u64) {
    let (blocks, _) = group[..K].as_chunks::<4>();
    let (mut block, mut passed, mut prefix) = (0, 0, 0u64);
    for siblings in &blocks[..K / 4 - 1] {
        let sums = siblings.each_ref().map(|sibling| sibling.load(Ordering::Relaxed) & mask);
        prefix = prefix.wrapping_add((sums[0].wrapping_add(sums[1])).wrapping_add(sums[2].wrapping_add(sums[3])));
        block += usize::from(prefix <= target);
        passed = if prefix <= target { prefix } else { passed };
    }
    let mut child = 0;
    prefix = passed;
    for sibling in &blocks[block & (K / 4 - 1)] {
        prefix = prefix.wrapping_add(sibling.load(Ordering::Relaxed) & mask);
        child += usize::from(prefix <= target);
        passed = if prefix <= target { prefix } else { passed };
    }
    ((block * 4 + child).min(K - 1), target - passed)
}

fn descend_each(
    levels: &[(&[AtomicU64], u64)],
    fanout: usize,
    targets: &[u64],
    leaves: &mut [usize],
    choose: impl Fn(&[AtomicU64], u64, u64) -> (usize, u64),
) {
    for (leaf, &target) in leaves.iter_mut().zip(targets) {
        let start = (0, target);
        let descend = |(node, target): (usize, u64), &(level, mask): &(&[AtomicU64], u64)| {
            let (child, rest) = choose(&level[node * fanout..][..fanout], mask, target);
            (node * fanout + child, rest)
        };
        *leaf = levels.iter().fold(start, descend).0;
    }
}

/// One target after another, siblings from left to right.
pub(crate) fn one_after_another<const K: usize>(words: &[AtomicU64], capacity: usize, targets: &[u64], leaves: &mut [usize]) {
    let levels: Vec<_> = levels(words, capacity, K).collect();
    descend_each(&levels, K, targets, leaves, scan);
}

/// One target after another, but without branches that depend on it.
pub(crate) fn one_after_another_without_branches<const K: usize>(
    words: &[AtomicU64],
    capacity: usize,
    targets: &[u64],
    leaves: &mut [usize],
) {
    let levels: Vec<_> = levels(words, capacity, K).collect();
    descend_each(&levels, K, targets, leaves, choose::<K>);
}

/// `chunk` targets at a time, level by level, the groups of the next level fetched ahead.
pub(crate) fn level_by_level<const K: usize>(
    words: &[AtomicU64],
    capacity: usize,
    targets: &mut [u64],
    leaves: &mut [usize],
    chunk: usize,
) {
    let levels: Vec<_> = levels(words, capacity, K).collect();
    let chunk = chunk.min(targets.len());
    for (targets, nodes) in targets.chunks_mut(chunk).zip(leaves.chunks_mut(chunk)) {
        nodes.fill(0);
        for (depth, &(level, mask)) in levels.iter().enumerate() {
            for (target, node) in targets.iter_mut().zip(nodes.iter_mut()) {
                let (child, rest) = choose::<K>(&level[*node * K..], mask, *target);
                (*node, *target) = (*node * K + child, rest);
                if let Some((below, _)) = levels.get(depth + 1) {
                    below[*node * K..][..K].iter().step_by(8).for_each(prefetch);
                }
            }
        }
    }
}
