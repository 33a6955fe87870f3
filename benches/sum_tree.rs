//! Which fan-out: batches of updates and of descents on our tree and, beside it, on a plain tree as the PAL paper
//! (arXiv 2110.01101) describes it, for one thread. CPU time of the thread, because other work may share the machine.
//!
//! `cargo bench --no-default-features --bench sum_tree`

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shoal::replay::sum_tree::Differences;
use shoal::replay::{Priority, SumTree};
use shoal::segment::layout::FANOUTS;
use shoal::sync::AtomicU64;
use support::ThreadTime;

const CAPACITIES: [usize; 2] = [1 << 17, 1 << 20];
const BATCHES: [usize; 2] = [64, 256];
/// Descents and updates prepared per benchmark: too many for the processor to learn their branches by heart.
const PREPARED: usize = 1 << 16;

/// A K-ary sum tree of floats: the difference of each update walks from its leaf to the root, each descent scans the
/// siblings in order.
struct FloatTree {
    /// Leaves first.
    levels: Vec<Vec<f32>>,
    fanout: usize,
}

impl FloatTree {
    fn new(capacity: usize, fanout: usize) -> Self {
        let mut levels = Vec::new();
        let mut nodes = capacity;
        while nodes > 1 {
            let padded = nodes.next_multiple_of(fanout);
            levels.push(vec![0.0; padded]);
            nodes = padded / fanout;
        }
        levels.push(vec![0.0; 1]);
        Self { levels, fanout }
    }

    fn total(&self) -> f32 {
        self.levels[self.levels.len() - 1][0]
    }

    fn update(&mut self, slot: usize, priority: f32) {
        let difference = priority - self.levels[0][slot];
        let mut node = slot;
        for level in &mut self.levels {
            level[node] += difference;
            node /= self.fanout;
        }
    }

    fn find(&self, mut target: f32) -> usize {
        let mut node = 0;
        for level in self.levels.iter().rev().skip(1) {
            // Rounding can lead a descent behind the last group.
            let first = (node * self.fanout).min(level.len() - self.fanout);
            let group = &level[first..][..self.fanout];
            let mut child = 0;
            while child + 1 < self.fanout && target >= group[child] {
                target -= group[child];
                child += 1;
            }
            node = first + child;
        }
        node
    }
}

fn priorities(capacity: usize) -> Vec<f32> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    (0..capacity).map(|_| random.random_range(0.05f32..2.0)).collect()
}

/// Stratified targets in `0..1`, batch after batch.
fn strata(batch: usize) -> Vec<Vec<f64>> {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut one = || (0..batch).map(|part| (part as f64 + random.random_range(0.0..1.0)) / batch as f64).collect();
    (0..PREPARED / batch).map(|_| one()).collect()
}

fn ours(criterion: &mut Criterion<ThreadTime>) {
    for capacity in CAPACITIES {
        for fanout in FANOUTS {
            let words: Vec<AtomicU64> = (0..SumTree::words_needed(capacity, fanout) + 7).map(|_| AtomicU64::new(0)).collect();
            // On a cache line, as the region in the segment is.
            let offset = words.as_ptr().align_offset(64);
            let tree = SumTree::new(&words[offset..], capacity, fanout);
            let mut differences = Differences::default();
            let values = priorities(capacity);
            let all = values.iter().enumerate().map(|(slot, &value)| (slot, 0, Priority::from_f32(value).expect("finite")));
            tree.update(all, &mut differences);
            for batch in BATCHES {
                let targets: Vec<Vec<u64>> =
                    strata(batch).iter().map(|points| points.iter().map(|point| (point * tree.total() as f64) as u64).collect()).collect();
                let (mut scratch, mut slots) = (vec![0; batch], vec![0; batch]);
                let mut turn = 0;
                let mut group = group(criterion, "find", capacity, batch);
                group.bench_function(BenchmarkId::new("ours", fanout), |bencher| {
                    bencher.iter(|| {
                        turn = (turn + 1) % targets.len();
                        scratch.copy_from_slice(&targets[turn]);
                        tree.find(&mut scratch, &mut slots);
                        black_box(&slots);
                    });
                });
                group.finish();
                let drawn: Vec<Vec<(usize, u64, Priority)>> = targets
                    .iter()
                    .enumerate()
                    .map(|(number, targets)| {
                        tree.find(&mut targets.clone(), &mut slots);
                        slots
                            .iter()
                            .map(|&slot| (slot, 0, Priority::from_f32(values[(slot + number) % capacity]).expect("finite")))
                            .collect()
                    })
                    .collect();
                let mut group = self::group(criterion, "update", capacity, batch);
                group.bench_function(BenchmarkId::new("ours", fanout), |bencher| {
                    bencher.iter(|| {
                        turn = (turn + 1) % targets.len();
                        black_box(tree.update(drawn[turn].iter().copied(), &mut differences));
                    });
                });
                group.finish();
            }
            assert!(tree.audit().is_exact());
        }
    }
}

fn plain(criterion: &mut Criterion<ThreadTime>) {
    for capacity in CAPACITIES {
        for fanout in FANOUTS {
            let mut tree = FloatTree::new(capacity, fanout);
            let values = priorities(capacity);
            values.iter().enumerate().for_each(|(slot, &value)| tree.update(slot, value));
            for batch in BATCHES {
                let targets: Vec<Vec<f32>> = strata(batch)
                    .iter()
                    .map(|points| points.iter().map(|point| (point * f64::from(tree.total())) as f32).collect())
                    .collect();
                let mut turn = 0;
                let mut slots = vec![0; batch];
                let mut group = group(criterion, "find", capacity, batch);
                group.bench_function(BenchmarkId::new("plain f32", fanout), |bencher| {
                    bencher.iter(|| {
                        turn = (turn + 1) % targets.len();
                        slots.iter_mut().zip(&targets[turn]).for_each(|(slot, &target)| *slot = tree.find(target));
                        black_box(&slots);
                    });
                });
                group.finish();
                let drawn: Vec<Vec<(usize, f32)>> = targets
                    .iter()
                    .enumerate()
                    .map(|(number, targets)| {
                        let slots = targets.iter().map(|&target| tree.find(target).min(capacity - 1));
                        slots.map(|slot| (slot, values[(slot + number) % capacity])).collect()
                    })
                    .collect();
                let mut group = self::group(criterion, "update", capacity, batch);
                group.bench_function(BenchmarkId::new("plain f32", fanout), |bencher| {
                    bencher.iter(|| {
                        turn = (turn + 1) % targets.len();
                        drawn[turn].iter().for_each(|&(slot, value)| tree.update(slot, value));
                    });
                });
                group.finish();
            }
            black_box(tree.total());
        }
    }
}

fn group<'c>(criterion: &'c mut Criterion<ThreadTime>, operation: &str, capacity: usize, batch: usize) -> BenchmarkGroup<'c, ThreadTime> {
    let mut group = criterion.benchmark_group(format!("{operation} batch {batch} of {capacity}"));
    group.throughput(Throughput::Elements(batch as u64));
    group
}

criterion_group! {
    name = sum_tree;
    config = Criterion::default()
        .with_measurement(ThreadTime(WallTime))
        .warm_up_time(Duration::from_millis(80))
        .measurement_time(Duration::from_millis(320))
        .sample_size(16)
        .without_plots();
    targets = ours, plain
}
criterion_main!(sum_tree);
