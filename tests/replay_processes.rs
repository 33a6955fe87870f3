//! Writers, samplers and priority updaters in processes of their own, on a replay so small that every slot is
//! overwritten all the time.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use std::collections::HashMap;

use rand::RngExt;
use shoal::replay::{Batch, Priority, RateLimiter};
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::processes::Role;
use shoal::sync::Ordering;
use support::forked::{self, Family, Identity, Run, Sizes, random, wait_until};

const BATCH: usize = 32;

/// Rows that each reader verifies while the writers write.
const ROWS: u64 = 50_000;

/// Insert `count` transitions, and more until every reader has come to something, however late the machine let it run:
/// in flushes of random sizes, counting the commits in the scratch word of the slot.
fn write(run: &Run, slot: usize, count: u32, readers: std::ops::Range<usize>) {
    let mut replay = run.replay(slot);
    let area = run.area(slot);
    let mut random = random(slot as u64);
    let mut until_flush = 0;
    let done = || readers.clone().all(|slot| run.scratch(slot).load(Ordering::Relaxed) >= ROWS);
    for number in 0.. {
        if number >= count && number % 64 == 0 && done() {
            break;
        }
        let priority = random.random_bool(0.5).then(|| Priority::from_f32(random.random_range(0.0..4.0)).expect("finite"));
        run.payload.stage(area, Identity { life: slot as u32, number }, priority);
        run.scratch(slot).store(u64::from(number) + 1, Ordering::Release);
        if until_flush == 0 || area.is_full() {
            replay.flush(area);
            until_flush = random.random_range(0..area.capacity());
        } else {
            until_flush -= 1;
        }
    }
    replay.flush(area);
}

/// Draw and verify batches until the run stops; change the priorities of what was drawn if `updates`.
fn sample(run: &Run, slot: usize, writers: usize, updates: bool) {
    let mut replay = run.replay(slot);
    let mut batch = Batch::new(run.payload.schema(), BATCH);
    let mut random = random(slot as u64);
    let mut names: HashMap<(usize, u64), Identity> = HashMap::new();
    wait_until(|| !replay.is_empty());
    while run.segment.control().run_state() == RunState::Running {
        replay.sample(&mut batch, 0.5, &mut random).expect("a batch");
        for row in 0..BATCH {
            let identity = run.payload.verify(&batch, row);
            assert!((identity.life as usize) < writers, "nobody wrote {identity:?}");
            let committed = run.scratch(identity.life as usize).load(Ordering::Acquire);
            assert!(u64::from(identity.number) <= committed, "{identity:?} was drawn after {committed} commits");
            let name = (batch.slots[row], batch.generations[row]);
            let known = *names.entry(name).or_insert(identity);
            assert_eq!(known, identity, "two transitions are called {name:?}");
            assert!(batch.weights[row].is_finite() && batch.weights[row] > 0.0);
        }
        if names.len() > 1 << 16 {
            names.clear();
        }
        run.scratch(slot).fetch_add(BATCH as u64, Ordering::Relaxed);
        if updates {
            let errors: [f32; BATCH] = std::array::from_fn(|_| random.random_range(-5.0..5.0));
            let errors = errors.map(|error| if error > 4.9 { f32::NAN } else { error });
            replay.update_priorities(&batch, errors.into_iter().map(|error| Priority::from_error(error, 1e-4, 0.6)));
        }
    }
}

/// Run writers (in the first slots), samplers and updaters until the writers are done, then audit everything.
fn crowd(sizes: Sizes, writers: usize, samplers: usize, updaters: usize, count: u32) {
    let run = Run::new(sizes);
    run.segment.control().set_run_state(RunState::Running);
    let mut writing = Family::new(&run);
    let mut reading = Family::new(&run);
    let readers = writers..writers + samplers + updaters;
    for slot in readers.clone() {
        reading.start(slot, Role::Learner, || sample(&run, slot, writers, slot >= writers + samplers));
    }
    for slot in 0..writers {
        writing.start(slot, Role::Actor, || write(&run, slot, count, readers.clone()));
    }
    reading.wait_until(|| readers.clone().all(|slot| run.scratch(slot).load(Ordering::Relaxed) >= ROWS));
    writing.join();
    run.segment.control().set_run_state(RunState::Stopping);
    reading.join();

    if sizes.fanout != 0 {
        run.assert_tree_is_exact();
    }
    let total: u64 = (0..writers).map(|slot| run.scratch(slot).load(Ordering::Relaxed)).sum();
    assert_eq!(run.segment.control().inserted().load(Ordering::Relaxed), total);
    let counted = |counter, slots: std::ops::Range<usize>| slots.map(|slot| run.slot(slot).counters().get(counter)).sum::<u64>();
    assert_eq!(counted(Counter::Inserted, 0..writers), total);
    assert_eq!(counted(Counter::Sampled, readers.clone()), run.segment.control().sampled().load(Ordering::Relaxed));
    let contents = run.contents();
    assert_eq!(contents.len(), sizes.capacity.min(usize::try_from(total).expect("a small count")), "each transition is there once");
    assert!(contents.values().all(|&times| times == 1));
}

#[test]
fn no_torn_or_mislabelled_transition_is_ever_drawn_while_slots_are_overwritten() {
    let count = u32::try_from(forked::count_from_environment("SHOAL_TEST_TRANSITIONS", 20_000)).expect("at most 2^32");
    crowd(Sizes { capacity: 257, staged_rows: 48, ..Sizes::default() }, 3, 2, 2, count);
}

#[test]
fn a_replay_hardly_larger_than_its_writers_stays_exact() {
    crowd(Sizes { capacity: 9, fanout: 4, staged_rows: 7, ..Sizes::default() }, 4, 1, 1, 4_000);
}

#[test]
fn uniform_sampling_never_draws_a_torn_transition_either() {
    crowd(Sizes { capacity: 33, fanout: 0, ..Sizes::default() }, 3, 2, 0, 10_000);
}

#[test]
fn the_limiter_holds_its_ratio_between_processes_whoever_is_faster() {
    const FLUSH: u64 = 8;
    let sizes = Sizes { capacity: 4_096, ..Sizes::default() };
    for (writers, samplers) in [(1, 3), (3, 1), (2, 2)] {
        let limiter = RateLimiter { min_size: 200, samples_per_insert: Some(4.0), takes_once: false, error_band: 256.0 };
        let run = Run::new(sizes);
        let control = run.segment.control();
        control.set_run_state(RunState::Running);
        let mut family = Family::new(&run);
        for slot in 0..writers {
            let run = &run;
            family.start(slot, Role::Actor, move || {
                let mut replay = run.replay(slot);
                let area = run.area(slot);
                for number in 0.. {
                    run.payload.stage(area, Identity { life: slot as u32, number }, None);
                    if area.pending() as u64 == FLUSH {
                        let mut turn = limiter.turn(&run.segment, run.slot(slot));
                        if !turn.wait(|| true) {
                            return;
                        }
                        replay.flush(area);
                    }
                }
            });
        }
        for slot in writers..writers + samplers {
            let run = &run;
            family.start(slot, Role::Learner, move || {
                let mut replay = run.replay(slot);
                let mut batch = Batch::new(run.payload.schema(), BATCH);
                let mut random = random(slot as u64);
                while limiter.wait_to_sample(control, BATCH as u64, || true) {
                    assert!(control.inserted().load(Ordering::Relaxed) >= limiter.min_size);
                    replay.sample(&mut batch, 0.5, &mut random).expect("a batch");
                }
            });
        }
        // Looking and acting are two steps: each process can be ahead by what it does at once.
        let slack = 4.0 * (writers as u64 * FLUSH) as f64 + (samplers * BATCH) as f64;
        let surplus = |inserted: u64, sampled: u64| (inserted as f64 - 200.0) * 4.0 - sampled as f64;
        let mut looks = 0u64;
        family.wait_until(|| {
            // Each bound is taken from the side on which a change between the two looks makes it weaker.
            let inserted = control.inserted().load(Ordering::SeqCst);
            let sampled = control.sampled().load(Ordering::SeqCst);
            let inserted_later = control.inserted().load(Ordering::SeqCst);
            assert!(inserted <= 200 || surplus(inserted, sampled) <= 256.0 + slack, "{inserted} inserted, {sampled} sampled");
            assert!(sampled == 0 || surplus(inserted_later, sampled) >= -256.0 - slack, "{inserted_later} inserted, {sampled} sampled");
            looks += u64::from(inserted > 200);
            // The others may have done all this before this process is given the processor for a second look.
            inserted > 20_000 && looks >= 100
        });
        control.set_run_state(RunState::Stopping);
        family.join();
        let (inserted, sampled) = (control.inserted().load(Ordering::Relaxed), control.sampled().load(Ordering::Relaxed));
        assert!(surplus(inserted, sampled).abs() <= 256.0 + slack, "{inserted} inserted, {sampled} sampled by {samplers} samplers");
    }
}
