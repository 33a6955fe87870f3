//! What is drawn, how often, with which weight, and what becomes of priorities: one process, no races.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use shoal::replay::{Batch, Priority, Replay, SampleError};
use shoal::segment::counters::Counter;
use shoal::segment::processes::Role;
use shoal::sync::Ordering;
use support::forked::{self, Family, Identity, Run, Sizes, random};

/// Insert `count` transitions of `life` with the given priorities.
fn insert<'a>(run: &'a Run, replay: &mut Replay<'a>, life: u32, priorities: impl Iterator<Item = Option<Priority>>) {
    let area = run.area(0);
    for (number, priority) in (0..).zip(priorities) {
        if area.is_full() {
            replay.flush(area);
        }
        run.payload.stage(area, Identity { life, number }, priority);
    }
    replay.flush(area);
}

fn priority(value: f32) -> Option<Priority> {
    Some(Priority::from_f32(value).expect("finite"))
}

/// Take slot 0 for this process, so that its counters count.
fn occupied(run: &Run) -> Replay<'_> {
    let slot = run.slot(0);
    assert!(slot.reserve(Role::Synchronous, 0).is_some_and(|generation| slot.occupy(std::process::id(), generation)));
    run.replay(0)
}

/// Pearson's statistic of the observed counts.
fn chi_square(observed: &[u64], probabilities: impl Iterator<Item = f64>) -> f64 {
    let draws = observed.iter().sum::<u64>() as f64;
    observed.iter().zip(probabilities).map(|(&count, share)| (count as f64 - draws * share).powi(2) / (draws * share)).sum()
}

#[test]
fn transitions_are_drawn_in_proportion_to_their_priorities_with_the_weights_of_the_formula() {
    let size = 100usize;
    let run = Run::new(Sizes { capacity: 128, ..Sizes::default() });
    let mut replay = run.replay(0);
    let value = |number: usize| 0.25 + (number * 37 % 50) as f32;
    insert(&run, &mut replay, 1, (0..size).map(|number| priority(value(number))));
    let total: f64 = (0..size).map(|number| f64::from(value(number))).sum();
    let (rows, beta) = (32, 0.6);
    let mut batch = Batch::new(run.payload.schema(), rows);
    let mut random = random(1);
    let mut counts = vec![0u64; size];
    for _ in 0..10_000 {
        replay.sample(&mut batch, beta, &mut random).expect("a batch");
        let mut largest = 0.0f32;
        for row in 0..rows {
            let number = run.payload.verify(&batch, row).number as usize;
            counts[number] += 1;
            let expected = (size as f64 * f64::from(value(number)) / total).powf(-f64::from(beta));
            let weight = f64::from(batch.weights[row]);
            assert!((weight - expected).abs() < 1e-4 * expected, "weight {weight} of priority {}, expected {expected}", value(number));
            largest = largest.max(batch.weights[row]);
        }
        assert_eq!(batch.largest_weight, largest);
    }
    // 99 degrees of freedom: mean 99, standard deviation 14 for independent draws; stratified ones vary less.
    let statistic = chi_square(&counts, (0..size).map(|number| f64::from(value(number)) / total));
    assert!(statistic < 99.0 + 5.0 * 14.0, "chi-square {statistic}");
}

#[test]
fn a_batch_of_more_rows_than_the_total_has_units_favours_nothing() {
    let size = 8usize;
    let run = Run::new(Sizes { capacity: 16, fanout: 16, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, std::iter::repeat_n(Some(Priority::SMALLEST), size));
    let mut batch = Batch::new(run.payload.schema(), 64);
    let mut random = random(8);
    let mut counts = vec![0u64; size];
    for _ in 0..1_000 {
        replay.sample(&mut batch, 0.4, &mut random).expect("a batch");
        (0..64).for_each(|row| counts[run.payload.verify(&batch, row).number as usize] += 1);
    }
    // 7 degrees of freedom, standard deviation 3.7.
    let statistic = chi_square(&counts, std::iter::repeat(1.0 / size as f64));
    assert!(statistic < 7.0 + 5.0 * 3.7, "chi-square {statistic}");
}

#[test]
fn each_part_of_the_total_gives_one_row_of_the_batch() {
    let size = 200usize;
    let run = Run::new(Sizes { capacity: 200, fanout: 4, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, (0..size).map(|number| priority(0.5 + (number % 7) as f32)));
    let tree = replay.tree().expect("a tree").clone();
    let total = tree.total();
    for (rows, seed) in [(1, 1), (7, 2), (32, 3), (200, 4), (331, 5)] {
        let mut batch = Batch::new(run.payload.schema(), rows);
        let mut random = random(seed);
        for _ in 0..50 {
            replay.sample(&mut batch, 0.4, &mut random).expect("a batch");
            for (row, &slot) in batch.slots.iter().enumerate() {
                let fixed = |slot| (tree.raw_priority(slot).to_f64() * f64::from(1u32 << 20)) as u64;
                let first: u64 = (0..slot).map(fixed).sum();
                let part = |row: usize| u64::try_from(u128::from(total) * row as u128 / rows as u128).expect("below the total");
                // Parts may be a unit longer or shorter than the exact quotient.
                let slack = rows as u64;
                assert!(
                    first < part(row + 1) + slack && first + fixed(slot) + slack > part(row),
                    "row {row} of {rows} came from slot {slot}, which lies outside of its part"
                );
            }
        }
    }
}

#[test]
fn uniform_sampling_draws_everything_equally_often_with_weight_one() {
    let size = 90usize;
    let run = Run::new(Sizes { capacity: 128, fanout: 0, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, (0..size).map(|number| priority(number as f32)));
    assert!(replay.tree().is_none());
    let mut batch = Batch::new(run.payload.schema(), 32);
    let mut random = random(9);
    let mut counts = vec![0u64; size];
    for _ in 0..5_000 {
        replay.sample(&mut batch, 0.7, &mut random).expect("a batch");
        (0..32).for_each(|row| counts[run.payload.verify(&batch, row).number as usize] += 1);
        assert!(batch.weights.iter().all(|&weight| weight == 1.0) && batch.largest_weight == 1.0);
    }
    // 89 degrees of freedom, standard deviation 13.3.
    let statistic = chi_square(&counts, std::iter::repeat(1.0 / size as f64));
    assert!((89.0 - 5.0 * 13.3..89.0 + 5.0 * 13.3).contains(&statistic), "chi-square {statistic}");
    replay.update_priorities(&batch, std::iter::repeat_n(priority(5.0), 32));
    assert_eq!(replay.sample(&mut Batch::new(run.payload.schema(), 0), 0.7, &mut random), Ok(()));
}

#[test]
fn the_rate_limiter_counts_what_an_update_stands_for_and_everybody_else_what_it_draws() {
    let run = Run::new(Sizes::default());
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, (0..8).map(|_| priority(1.0)));
    let control = run.segment.control();
    let mut sampler = run.sampler();
    let mut drawn = |rows: usize, counted: usize| {
        let mut batch = Batch::new(run.payload.schema(), rows).counting_as(counted);
        sampler.sample(&mut batch, 0.4, &mut random(1)).expect("a batch");
        (control.sampled().load(Ordering::Relaxed), control.counted_samples())
    };
    assert_eq!(drawn(32, 32), (32, 32));
    assert_eq!(drawn(128, 32), (160, 64), "a larger batch");
    assert_eq!(drawn(16, 32), (176, 96), "a smaller one");
    // As if a process had died between writing its two words, or another looked between them.
    control.sampled().store(64, Ordering::Relaxed);
    assert_eq!(control.counted_samples(), 0, "fewer than nothing");
}

#[test]
fn an_empty_replay_says_so() {
    for fanout in [0, 16] {
        let run = Run::new(Sizes { fanout, ..Sizes::default() });
        let mut batch = Batch::new(run.payload.schema(), 4);
        assert_eq!(run.sampler().sample(&mut batch, 0.4, &mut random(1)), Err(SampleError::Empty));
    }
}

#[test]
fn a_replay_whose_every_transition_is_being_rewritten_is_contended_and_not_empty() {
    let run = Run::new(Sizes { capacity: 9, processes: 8, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, std::iter::repeat_n(priority(1.0), 9));
    let slots: Vec<(usize, u64)> = (0..9).map(|slot| (slot, replay.store().word(slot).generation() + 1)).collect();
    replay.tree().expect("a tree").clear(&slots, &mut shoal::replay::sum_tree::Differences::default());
    let mut batch = Batch::new(run.payload.schema(), 4);
    assert!(matches!(replay.sample(&mut batch, 0.4, &mut random(1)), Err(SampleError::Contended { missing: 4, .. })));
}

/// Claims that were never filled, as of processes that were killed before they had named the slot.
fn claim(run: &Run, count: u64) {
    run.segment.control().claimed().fetch_add(count, Ordering::Relaxed);
}

#[test]
fn claims_that_a_kill_left_unfilled_hide_nothing_from_uniform_sampling() {
    let run = Run::new(Sizes { capacity: 512, fanout: 0, ..Sizes::default() });
    let mut replay = run.replay(0);
    claim(&run, 64);
    insert(&run, &mut replay, 1, std::iter::repeat_n(None, 32));
    claim(&run, 64);
    insert(&run, &mut replay, 2, std::iter::repeat_n(None, 32));
    let mut batch = Batch::new(run.payload.schema(), 32);
    let mut counts = [0u64; 64];
    let mut random = random(5);
    for _ in 0..1_000 {
        replay.sample(&mut batch, 0.4, &mut random).expect("a batch");
        for row in 0..32 {
            let Identity { life, number } = run.payload.verify(&batch, row);
            counts[(life as usize - 1) * 32 + number as usize] += 1;
        }
    }
    // 63 degrees of freedom, standard deviation 11.2.
    let statistic = chi_square(&counts, std::iter::repeat(1.0 / 64.0));
    assert!(statistic < 63.0 + 5.0 * 11.2, "chi-square {statistic}");
}

#[test]
fn claims_that_a_kill_left_unfilled_hide_nothing_that_was_taken() {
    let run = Run::new(Sizes { capacity: 512, ..Sizes::default() });
    let mut replay = run.replay(0);
    claim(&run, 64);
    insert(&run, &mut replay, 1, std::iter::repeat_n(priority(1.0), 32));
    let mut batch = Batch::new(run.payload.schema(), 1);
    while replay.take(&mut batch, 0) {}
    let mut random = random(5);
    let drawn = (0..4_000).filter(|_| replay.draw_taken(&mut batch, 0, &mut random)).count();
    // One draw in three finds a row.
    assert!(drawn > 1_000, "{drawn} of 4,000 draws found a row");
}

#[test]
fn draws_follow_the_leaves_while_a_stopped_process_leaves_nothing_or_less_at_the_root() {
    // More than there is, and as much.
    draws_follow_the_leaves_with_a_debt(|_| 1 << 40);
    draws_follow_the_leaves_with_a_debt(|total| total);
}

fn draws_follow_the_leaves_with_a_debt(debt: impl FnOnce(u64) -> u64) {
    let size = 50usize;
    let run = Run::new(Sizes { capacity: 64, fanout: 4, ..Sizes::default() });
    let mut replay = run.replay(0);
    let value = |number: usize| 0.5 + (number % 7) as f32;
    insert(&run, &mut replay, 1, (0..size).map(|number| priority(value(number))));
    // What a process that stands still between leaves and root owes to all the sums above, others have taken away already.
    let leaves = shoal::segment::layout::tree_level_lengths(64, 4)[0];
    let debt = debt(replay.tree().expect("a tree").total());
    for sum in &run.segment.words(shoal::segment::Region::Tree)[leaves..] {
        sum.fetch_sub(debt, Ordering::Relaxed);
    }
    assert_eq!(replay.tree().expect("a tree").total(), 0);
    let mut batch = Batch::new(run.payload.schema(), 32);
    let mut counts = vec![0u64; size];
    let mut random = random(6);
    let total: f64 = (0..size).map(|number| f64::from(value(number))).sum();
    for _ in 0..1_000 {
        replay.sample(&mut batch, 1.0, &mut random).expect("a batch");
        for row in 0..32 {
            let number = run.payload.verify(&batch, row).number as usize;
            counts[number] += 1;
            let expected = total / (size as f64 * f64::from(value(number)));
            assert!((f64::from(batch.weights[row]) - expected).abs() < 1e-4 * expected, "weight of row {number}");
        }
    }
    let statistic = chi_square(&counts, (0..size).map(|number| f64::from(value(number)) / total));
    assert!(statistic < 49.0 + 5.0 * 9.9, "chi-square {statistic}");
}

#[test]
fn a_root_that_a_stopped_process_leaves_far_too_high_keeps_nobody_from_drawing() {
    let run = Run::new(Sizes { capacity: 64, fanout: 4, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, (0..50).map(|_| priority(1.0)));
    // As in a large update whose leaves are zero already and whose root is not. One target in a million falls on a row.
    let total = replay.tree().expect("a tree").total();
    let levels = shoal::segment::layout::tree_level_lengths(64, 4);
    let root: usize = levels[..levels.len() - 1].iter().sum();
    run.segment.words(shoal::segment::Region::Tree)[root].fetch_add(1_000_000 * total, Ordering::Relaxed);
    assert_eq!(replay.tree().expect("a tree").total(), 1_000_001 * total);
    let mut batch = Batch::new(run.payload.schema(), 32);
    let mut random = random(7);
    for _ in 0..10 {
        replay.sample(&mut batch, 1.0, &mut random).expect("a batch");
        assert!((0..32).all(|row| run.payload.verify(&batch, row).life == 1));
    }
}

#[test]
fn a_priority_that_is_given_to_a_new_transition_is_one_that_was_seen() {
    let run = Run::new(Sizes { capacity: 64, ..Sizes::default() });
    let mut replay = run.replay(0);
    insert(&run, &mut replay, 1, std::iter::once(priority(5.0)));
    insert(&run, &mut replay, 2, std::iter::once(None));
    assert_eq!(replay.tree().expect("a tree").raw_priority(1), Priority::from_f32(5.0).expect("finite"));
}

#[test]
fn new_transitions_get_the_largest_priority_seen_so_far_and_one_at_least() {
    let run = Run::new(Sizes { capacity: 64, ..Sizes::default() });
    let mut replay = occupied(&run);
    insert(&run, &mut replay, 1, std::iter::repeat_n(None, 8));
    let mut batch = Batch::new(run.payload.schema(), 8);
    replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
    replay.update_priorities(&batch, std::iter::repeat_n(priority(0.01), 8));
    insert(&run, &mut replay, 2, std::iter::once(None));
    let raw = |replay: &Replay<'_>, slot| replay.tree().expect("a tree").raw_priority(slot);
    assert_eq!((raw(&replay, 0), raw(&replay, 8)), (Priority::from_f32(0.01).expect("finite"), Priority::ONE));
    replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
    replay.update_priorities(&batch, (0..8).map(|row| priority(row as f32)));
    insert(&run, &mut replay, 3, std::iter::once(None));
    assert_eq!(raw(&replay, 9), Priority::from_f32(7.0).expect("finite"));
    run.assert_tree_is_exact();
}

#[test]
fn an_update_of_an_overwritten_transition_is_dropped_and_counted() {
    let capacity = 60;
    let run = Run::new(Sizes { capacity, ..Sizes::default() });
    let mut replay = occupied(&run);
    insert(&run, &mut replay, 1, std::iter::repeat_n(priority(1.0), capacity));
    let mut batch = Batch::new(run.payload.schema(), 24);
    replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
    // Overwrites slots 0 to 39.
    insert(&run, &mut replay, 2, std::iter::repeat_n(priority(2.0), 40));
    let stale = batch.slots.iter().filter(|&&slot| slot < 40).count() as u64;
    assert!(stale > 0 && stale < 24);
    let before = run.slot(0).counters().get(Counter::StalePriorities);
    replay.update_priorities(&batch, std::iter::repeat_n(priority(100.0), 24));
    assert_eq!(run.slot(0).counters().get(Counter::StalePriorities) - before, stale);
    let tree = replay.tree().expect("a tree");
    for slot in 0..capacity {
        let expected = if slot < 40 {
            2.0
        } else if batch.slots.contains(&slot) {
            100.0
        } else {
            1.0
        };
        assert_eq!(tree.raw_priority(slot).to_f64(), expected, "slot {slot}");
    }
    run.assert_tree_is_exact();
}

#[test]
fn what_is_larger_than_the_largest_priority_counts_as_that_and_is_counted() {
    let run = Run::new(Sizes::default());
    let mut replay = occupied(&run);
    let saturated = || run.slot(0).counters().get(Counter::SaturatedPriorities);
    // The largest float that the tree keeps as it is, and the first that it does not.
    let (kept, larger) = (524_287.94, 524_288.0);
    insert(&run, &mut replay, 1, [1.0, kept, larger, 1e30].into_iter().map(priority));
    assert_eq!(saturated(), 2);
    // What comes without a priority of its own gets the largest so far, which is nobody's mistake.
    insert(&run, &mut replay, 2, std::iter::repeat_n(None, 4));
    assert_eq!(saturated(), 2);
    let mut batch = Batch::new(run.payload.schema(), 4);
    replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
    replay.update_priorities(&batch, [f32::MAX, kept, larger, 0.0].into_iter().map(priority));
    assert_eq!(saturated(), 4);
    run.assert_tree_is_exact();
}

#[test]
fn what_is_no_priority_is_refused_counted_and_changes_nothing() {
    let run = Run::new(Sizes::default());
    let mut replay = occupied(&run);
    insert(&run, &mut replay, 1, std::iter::repeat_n(priority(1.0), 50));
    let mut batch = Batch::new(run.payload.schema(), 6);
    replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
    let total = replay.tree().expect("a tree").total();
    let wrong = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, -1e-9];
    replay.update_priorities(&batch, wrong.into_iter().map(Priority::from_f32));
    assert_eq!(run.slot(0).counters().get(Counter::RefusedPriorities), 6);
    assert_eq!(run.slot(0).counters().get(Counter::StalePriorities), 0);
    assert_eq!(replay.tree().expect("a tree").total(), total);
    let errors = [f32::NAN, f32::INFINITY, 1.0, -1.0, 0.0, 1e30];
    replay.update_priorities(&batch, errors.into_iter().map(|error| Priority::from_error(error, 1e-6, 0.6)));
    assert_eq!(run.slot(0).counters().get(Counter::RefusedPriorities), 8, "errors that are not finite are no priority");
    run.assert_tree_is_exact();
}

#[test]
fn every_capacity_takes_more_transitions_than_it_holds() {
    for (capacity, processes) in [(2, 1), (3, 2), (9, 8), (17, 8), (63, 1), (64, 1), (65, 1), (130, 2)] {
        for fanout in [0, 4, 64] {
            let run = Run::new(Sizes { capacity, processes, fanout, staged_rows: 100, ..Sizes::default() });
            let mut replay = run.replay(0);
            insert(&run, &mut replay, 1, std::iter::repeat_n(None, 300));
            assert_eq!(run.segment.control().inserted().load(Ordering::Relaxed), 300);
            assert_eq!(replay.len(), capacity);
            let contents = run.contents();
            assert_eq!(contents.len(), capacity);
            assert!(contents.keys().all(|identity| identity.number as usize >= 300 - capacity), "the newest ones stay");
        }
    }
}

#[test]
fn a_process_that_panics_inside_an_operation_stays_inside_and_is_repaired() {
    let run = Run::new(Sizes::default());
    insert(&run, &mut run.replay(0), 1, std::iter::repeat_n(priority(1.0), 100));
    let mut family = Family::new(&run);
    family.start(1, Role::Learner, || {
        std::panic::set_hook(Box::new(|_| {}));
        let mut replay = run.replay(1);
        // More than an update asks for before it makes the first change.
        let mut batch = Batch::new(run.payload.schema(), 128);
        replay.sample(&mut batch, 0.4, &mut random(3)).expect("a batch");
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            replay.update_priorities(&batch, (0..128).map(|row| if row < 100 { priority(9.0) } else { panic!("in the middle") }));
        }));
        assert!(caught.is_err());
        loop {
            std::thread::park();
        }
    });
    forked::wait_until(|| !replay_is_exact(&run));
    family.kill(&[1]);
    assert!(run.slot(1).in_operation());
    assert!(family.repair(1).rebuilt_tree);
    run.assert_tree_is_exact();
}

fn replay_is_exact(run: &Run) -> bool {
    run.view().tree().expect("a tree").audit().is_exact()
}
