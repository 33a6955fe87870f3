//! What the benchmarks of the tree do: full trees of random priorities, and batches of targets and updates.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shoal::replay::sum_tree::Differences;
use shoal::replay::{Priority, SumTree};
use shoal::sync::AtomicU64;

/// Descents or updates of one round: too many for the processor to learn their branches by heart.
pub(crate) const PREPARED: usize = 1 << 16;
/// Transitions in the replay.
pub(crate) const CAPACITIES: [usize; 3] = [1 << 17, 1 << 20, 10_000_000];
pub(crate) const BATCHES: [usize; 3] = [32, 256, 4096];

/// Priorities with all bits of their fractions in use.
pub(crate) fn priorities(capacity: usize) -> Vec<f32> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    (0..capacity).map(|_| random.random_range(0.05f32..2.0)).collect()
}

/// Words for a tree, and where among them the first cache line begins; the region in the segment begins on one.
pub(crate) struct TreeWords {
    words: Vec<AtomicU64>,
    offset: usize,
}

impl TreeWords {
    pub(crate) fn new(capacity: usize, fanout: usize) -> Self {
        let words: Vec<AtomicU64> = (0..SumTree::words_needed(capacity, fanout) + 7).map(|_| AtomicU64::new(0)).collect();
        let offset = words.as_ptr().align_offset(64);
        Self { words, offset }
    }

    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.words[self.offset..]
    }
}

pub(crate) fn priority(value: f32) -> Priority {
    Priority::from_f32(value).expect("finite")
}

/// Set all leaves.
pub(crate) fn fill(tree: &SumTree<'_>, values: &[f32]) {
    tree.update(values.iter().enumerate().map(|(slot, &value)| (slot, 0, priority(value))), &mut Differences::default());
}

/// Batches of points in `0..1`: one from each of as many equal parts, in order, or all from the whole.
pub(crate) fn points(batch: usize, is_stratified: bool) -> Vec<Vec<f64>> {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut point = |part: usize| {
        let point = random.random_range(0.0..1.0);
        if is_stratified { (part as f64 + point) / batch as f64 } else { point }
    };
    (0..PREPARED / batch).map(|_| (0..batch).map(&mut point).collect()).collect()
}

/// The targets at `points`.
pub(crate) fn targets(points: &[Vec<f64>], total: u64) -> Vec<Vec<u64>> {
    let target = |point: &f64| ((point * total as f64) as u64).min(total - 1);
    points.iter().map(|batch| batch.iter().map(target).collect()).collect()
}

/// New priorities for the leaves that the targets fall on.
pub(crate) fn updates(tree: &SumTree<'_>, targets: &[Vec<u64>]) -> Vec<Vec<(usize, f32)>> {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut batch = |targets: &Vec<u64>| {
        let mut slots = vec![0; targets.len()];
        tree.find(&mut targets.clone(), &mut slots);
        slots.into_iter().map(|slot| (slot, random.random_range(0.05f32..2.0))).collect()
    };
    targets.iter().map(&mut batch).collect()
}
