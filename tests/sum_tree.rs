//! The sum tree beside a plain list of priorities, for every fan-out and for capacities that fill nothing evenly.

use proptest::prelude::*;
use shoal::replay::sum_tree::Differences;
use shoal::replay::{Priority, SumTree};
use shoal::segment::layout::{FANOUTS, MAX_CAPACITY, tree_level_lengths};
use shoal::sync::{AtomicU64, Ordering};

/// Bits of a generation that a leaf keeps.
const TAG_BITS: u32 = 25;

fn fixed(priority: Priority) -> u64 {
    (priority.to_f64() * f64::from(1u32 << 20)) as u64
}

fn words(capacity: usize, fanout: usize) -> Vec<AtomicU64> {
    (0..SumTree::words_needed(capacity, fanout)).map(|_| AtomicU64::new(0)).collect()
}

/// Word of the ancestor of leaf `leaf`, `height` levels above it or as far above as the root.
fn ancestor(words: &[AtomicU64], capacity: usize, fanout: usize, leaf: usize, height: usize) -> &AtomicU64 {
    let lengths = tree_level_lengths(capacity, fanout);
    let height = height.clamp(1, lengths.len() - 1);
    let first: usize = lengths[..height].iter().sum();
    &words[first + (0..height).fold(leaf % capacity, |node, _| node / fanout)]
}

/// What a tree is meant to be: per leaf a generation and a priority.
struct Model {
    leaves: Vec<(u64, u64)>,
}

impl Model {
    fn total(&self) -> u64 {
        self.leaves.iter().map(|leaf| leaf.1).sum()
    }

    /// The leaf on which `target` falls.
    fn find(&self, mut target: u64) -> usize {
        for (slot, &(_, priority)) in self.leaves.iter().enumerate() {
            if target < priority {
                return slot;
            }
            target -= priority;
        }
        panic!("the target lies behind the total");
    }
}

/// A leaf, by its position modulo the capacity, how old the generation is that the caller believes in, and the new priority.
type Change = (usize, u64, f32);

/// One batch of changes.
#[derive(Debug, Clone)]
enum Step {
    /// Leaves, by position modulo the capacity, that get a new generation.
    Clear(Vec<usize>),
    /// Leaves that get a new priority, if they are of the named generation.
    Update(Vec<Change>),
}

fn step() -> impl Strategy<Value = Step> {
    let priority = prop_oneof![4 => 0.0f32..3.0, 1 => Just(0.0f32), 1 => Just(f32::MAX), 1 => 1e-7f32..1e-5];
    prop_oneof![
        prop::collection::vec(any::<usize>(), 1..40).prop_map(Step::Clear),
        prop::collection::vec((any::<usize>(), prop_oneof![5 => Just(0u64), 1 => 1u64..3], priority), 1..40).prop_map(Step::Update),
    ]
}

fn apply(step: &Step, tree: &SumTree<'_>, model: &mut Model, differences: &mut Differences) {
    let capacity = tree.capacity();
    match step {
        Step::Clear(positions) => {
            let cleared: Vec<(usize, u64)> = positions
                .iter()
                .map(|position| {
                    let leaf = &mut model.leaves[position % capacity];
                    *leaf = (leaf.0 + 1, 0);
                    (position % capacity, leaf.0)
                })
                .collect();
            tree.clear(&cleared, differences);
        }
        Step::Update(changes) => {
            let mut stale = 0;
            let mut named = Vec::new();
            for &(position, age, value) in changes {
                let slot = position % capacity;
                let priority = Priority::from_f32(value).expect("a finite value");
                let generation = model.leaves[slot].0.wrapping_sub(age);
                named.push((slot, generation, priority));
                if age == 0 {
                    model.leaves[slot].1 = fixed(priority);
                } else {
                    stale += 1;
                }
            }
            assert_eq!(tree.update(named.into_iter(), differences), stale, "stale generations are refused and counted");
        }
    }
}

fn check(tree: &SumTree<'_>, model: &Model, points: &[u64]) {
    let audit = tree.audit();
    assert!(audit.is_exact(), "{audit:?}");
    assert_eq!((audit.root, tree.total()), (model.total(), model.total()));
    for (slot, &(generation, priority)) in model.leaves.iter().enumerate() {
        assert_eq!(tree.priority(slot, generation).map(fixed), Some(priority), "leaf {slot}");
        assert_eq!(tree.priority(slot, generation + 1), None);
        assert_eq!(fixed(tree.raw_priority(slot)), priority);
    }
    if model.total() == 0 {
        return;
    }
    let edges = [0, model.total() - 1];
    let mut targets: Vec<u64> = points.iter().map(|point| point % model.total()).chain(edges).collect();
    let expected: Vec<usize> = targets.iter().map(|&target| model.find(target)).collect();
    let mut found = vec![0; targets.len()];
    tree.find(&mut targets, &mut found);
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_batch_leaves_the_tree_that_the_list_of_priorities_describes(
        fanout in prop::sample::select(FANOUTS.to_vec()),
        capacity in 1usize..700,
        steps in prop::collection::vec(step(), 1..30),
        points in prop::collection::vec(any::<u64>(), 40),
    ) {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let mut model = Model { leaves: vec![(0, 0); capacity] };
        let mut differences = Differences::default();
        for step in &steps {
            apply(step, &tree, &mut model, &mut differences);
        }
        check(&tree, &model, &points);
    }

    #[test]
    fn rebuilding_mends_whatever_happened_to_the_inner_nodes(
        fanout in prop::sample::select(FANOUTS.to_vec()),
        capacity in 2usize..700,
        steps in prop::collection::vec(step(), 1..10),
        damage in prop::collection::vec((any::<usize>(), 1usize..9, 1..u64::MAX), 1..20),
        points in prop::collection::vec(any::<u64>(), 10),
    ) {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let mut model = Model { leaves: vec![(0, 0); capacity] };
        let mut differences = Differences::default();
        for step in &steps {
            apply(step, &tree, &mut model, &mut differences);
        }
        let root = ancestor(&words, capacity, fanout, 0, usize::MAX);
        root.fetch_add(damage[0].2, Ordering::Relaxed);
        prop_assert!(!tree.audit().is_exact(), "the audit missed damage to the root");
        for &(leaf, height, difference) in &damage {
            ancestor(&words, capacity, fanout, leaf, height).fetch_add(difference, Ordering::Relaxed);
        }
        tree.rebuild();
        check(&tree, &model, &points);
    }

    #[test]
    fn a_descent_through_wrong_sums_ends_on_a_live_leaf_or_nowhere(
        fanout in prop::sample::select(FANOUTS.to_vec()),
        capacity in 2usize..700,
        live in prop::collection::vec((any::<usize>(), 0.1f32..3.0), 1..20),
        damage in prop::collection::vec((any::<usize>(), 1usize..9, -1i64 << 55..1i64 << 55), 1..20),
        targets in prop::collection::vec(any::<u64>(), 40),
    ) {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let mut differences = Differences::default();
        let changes = live.iter().map(|&(position, value)| (position % capacity, 0, Priority::from_f32(value).expect("finite")));
        tree.update(changes, &mut differences);
        for &(leaf, height, difference) in &damage {
            ancestor(&words, capacity, fanout, leaf, height).fetch_add(difference.cast_unsigned(), Ordering::Relaxed);
        }
        prop_assert!(tree.total() >> 63 == 0, "a negative total counts as zero");
        let mut found = vec![0; targets.len()];
        tree.find(&mut targets.clone(), &mut found);
        for slot in found {
            prop_assert!(slot == SumTree::NOWHERE || fixed(tree.raw_priority(slot)) > 0, "slot {slot} has priority zero");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_target_finds_its_leaf_whatever_descends_beside_it(
        fanout in prop::sample::select(FANOUTS.to_vec()),
        capacity in 1usize..5_000,
        live in prop::collection::vec((any::<usize>(), 0.0f32..3.0), 1..400),
        damage in prop::collection::vec((any::<usize>(), 1usize..9, -1i64 << 55..1i64 << 55), 0..4),
        mut targets in prop::collection::vec(any::<u64>(), 1..700),
        is_sorted in any::<bool>(),
    ) {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let changes = live.iter().map(|&(position, value)| (position % capacity, 0, Priority::from_f32(value).expect("finite")));
        tree.update(changes, &mut Differences::default());
        for &(leaf, height, difference) in &damage {
            ancestor(&words, capacity, fanout, leaf, height).fetch_add(difference.cast_unsigned(), Ordering::Relaxed);
        }
        // Targets beyond the total too: a root may promise more than there is.
        targets.iter_mut().for_each(|target| *target %= tree.total() + 5);
        if is_sorted {
            targets.sort_unstable();
        }
        let mut together = vec![0; targets.len()];
        tree.find(&mut targets.clone(), &mut together);
        let alone: Vec<usize> = targets
            .iter()
            .map(|&target| {
                let mut leaf = [0];
                tree.find(&mut [target], &mut leaf);
                leaf[0]
            })
            .collect();
        // If sums are wrong, the level at which a descent begins decides which of them it meets.
        if damage.is_empty() {
            prop_assert_eq!(&together, &alone);
        }
        for slot in together.into_iter().chain(alone) {
            prop_assert!(slot == SumTree::NOWHERE || fixed(tree.raw_priority(slot)) > 0, "slot {slot} has priority zero");
        }
    }

    #[test]
    fn a_batch_of_any_length_and_order_leaves_every_leaf_at_the_last_priority_named_for_it(
        fanout in prop::sample::select(FANOUTS.to_vec()),
        capacity in 1usize..5_000,
        mut first in prop::collection::vec((any::<usize>(), 0.0f32..3.0), 1..700),
        second in prop::collection::vec((any::<usize>(), 0.0f32..3.0), 1..700),
    ) {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let mut differences = Differences::default();
        let mut model = Model { leaves: vec![(0, 0); capacity] };
        first.sort_by_key(|change| change.0 % capacity);
        for batch in [first, second] {
            let batch: Vec<Change> = batch.into_iter().map(|(position, value)| (position, 0, value)).collect();
            apply(&Step::Update(batch), &tree, &mut model, &mut differences);
            check(&tree, &model, &[]);
        }
        apply(&Step::Clear((0..capacity).collect()), &tree, &mut model, &mut differences);
        check(&tree, &model, &[]);
        prop_assert_eq!(tree.total(), 0);
    }
}

#[test]
fn nothing_is_allocated_once_batches_of_a_size_have_been_seen() {
    let capacity = 100_000;
    for fanout in FANOUTS {
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        let mut differences = Differences::default();
        let (mut targets, mut leaves) = (vec![0; 256], vec![0; 256]);
        let mut learn = |turn: u64| {
            let slots = (0..256u64).map(|row| ((row * 389 + turn) % capacity as u64) as usize);
            tree.update(slots.map(|slot| (slot, 0, Priority::ONE)), &mut differences);
            targets.iter_mut().zip(0u64..).for_each(|(target, row)| *target = (row * 7_919) % tree.total());
            tree.find(&mut targets, &mut leaves);
        };
        learn(0);
        let seen = allocation_counter::measure(|| (1..4).for_each(&mut learn));
        assert_eq!(seen.count_total, 0, "fan-out {fanout}");
    }
}

#[test]
fn a_leaf_refuses_every_generation_but_its_own_until_its_tag_comes_round() {
    let words = words(3, 4);
    let tree = SumTree::new(&words, 3, 4);
    let mut differences = Differences::default();
    let generation = (1 << 40) - 2;
    tree.clear(&[(1, generation)], &mut differences);
    for wrong in [0, 1, generation - 1, generation + 1, generation ^ 1 << (TAG_BITS - 1)] {
        assert_eq!(tree.update(std::iter::once((1, wrong, Priority::ONE)), &mut differences), 1, "generation {wrong}");
        assert_eq!(tree.priority(1, wrong), None);
    }
    assert_eq!(tree.total(), 0);
    assert_eq!(tree.update(std::iter::once((1, generation, Priority::ONE)), &mut differences), 0);
    assert_eq!(tree.total(), fixed(Priority::ONE));
    assert_eq!(tree.priority(1, generation ^ 1 << TAG_BITS), Some(Priority::ONE), "the tag has {TAG_BITS} bits");
}

#[test]
fn the_largest_replay_of_the_largest_priorities_does_not_overflow() {
    let largest = fixed(Priority::from_f32(f32::MAX).expect("finite"));
    let total = largest.checked_mul(MAX_CAPACITY as u64).expect("the sum fits 64 bits");
    assert!(total < 1 << 63, "a negative sum could be taken for a large one");
}

#[test]
fn threads_that_update_and_clear_at_once_leave_an_exact_tree() {
    const THREADS: u64 = 4;
    const BATCHES: u64 = if cfg!(miri) { 3 } else { 3_000 };
    for fanout in FANOUTS {
        let capacity = if cfg!(miri) { 20 } else { 333 };
        let words = words(capacity, fanout);
        let tree = SumTree::new(&words, capacity, fanout);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let tree = tree.clone();
                scope.spawn(move || {
                    let mut differences = Differences::default();
                    let mut position = thread * 77;
                    let mut found = [0; 8];
                    for batch in 0..BATCHES {
                        position = position.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(thread + 1);
                        let first = position >> 33;
                        let slots = (0..8).map(|offset| ((first + offset * 3) % capacity as u64) as usize);
                        if batch % 4 == thread {
                            tree.clear(&slots.map(|slot| (slot, 0)).collect::<Vec<_>>(), &mut differences);
                        } else {
                            let value = (first % 1_000) as f32 / 100.0;
                            tree.update(slots.map(|slot| (slot, 0, Priority::from_f32(value).expect("finite"))), &mut differences);
                        }
                        let mut targets = [position % (tree.total() + 1); 8];
                        tree.find(&mut targets, &mut found);
                    }
                });
            }
        });
        let audit = tree.audit();
        assert!(audit.is_exact(), "fan-out {fanout}: {audit:?}");
    }
}
