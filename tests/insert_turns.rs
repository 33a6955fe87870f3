//! Whoever waits to insert is served in order, and nobody who is stopped or killed in line stops the others. The test is the
//! sampler: it lets the processes on one insertion at a time.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use nix::sys::resource::{UsageWho, getrusage};
use proptest::prelude::*;
use shoal::replay::RateLimiter;
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::processes::{PlaceInLine, Role};
use shoal::sync::Ordering;
use support::forked::{Family, Identity, Run, Sizes, wait_until};

const LIMITER: RateLimiter = RateLimiter { min_size: 1, samples_per_insert: Some(1.0), takes_once: false, error_band: 100.0 };
/// What each process inserts at once. If they were not served in order, the first would always find room before the last.
const FLUSHES: [usize; 3] = [8, 9, 60];
/// Inserted rows that leave no room for more until something is sampled.
const MORE_THAN_ALL: u64 = 200;

/// What a process writes into its scratch word when it has reached the place where the test wants it.
const THERE: u64 = 99;

/// Where in its turn a process gets into trouble.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    InLine,
    Served,
    Inserted,
}

struct World<'r> {
    run: &'r Run,
    family: Family<'r>,
}

impl<'r> World<'r> {
    /// Processes that insert without end, once all of them wait.
    fn new(run: &'r Run) -> Self {
        run.segment.control().set_run_state(RunState::Running);
        // More is inserted than the band allows, and nothing is sampled yet.
        run.segment.control().inserted().store(MORE_THAN_ALL, Ordering::SeqCst);
        let mut world = Self { run, family: Family::new(run) };
        for slot in 0..FLUSHES.len() {
            world.start(slot);
        }
        world.wait_for_all(&[0, 1, 2]);
        world
    }

    fn start(&mut self, slot: usize) {
        let run = self.run;
        self.family.start(slot, Role::Actor, move || insert_without_end(run, slot));
    }

    fn place(&self, slot: usize) -> Option<PlaceInLine> {
        self.run.slot(slot).place_in_line()
    }

    fn inserted(&self, slot: usize) -> u64 {
        self.run.slot(slot).counters().get(Counter::Inserted)
    }

    fn is_ready(&self, slot: usize) -> bool {
        self.place(slot).is_some_and(|place| place.is_ready)
    }

    /// Whether a process stands in line with something to insert. One that has just inserted still stands there for a moment.
    fn waits(&self, slot: usize) -> bool {
        self.is_ready(slot) && self.run.area(slot).pending() > 0
    }

    fn wait_for_all(&self, slots: &[usize]) {
        self.family.wait_until(|| slots.iter().all(|&slot| self.waits(slot)));
    }

    /// Which of `slots` came first.
    fn first(&self, slots: &[usize]) -> usize {
        *slots.iter().min_by_key(|&&slot| self.place(slot).expect("it waits").number).expect("somebody")
    }

    /// Samples that the inserts call for.
    fn surplus(&self) -> f64 {
        let control = self.run.segment.control();
        let [inserted, sampled] = [control.inserted(), control.sampled()].map(|word| word.load(Ordering::SeqCst));
        LIMITER.surplus(inserted, sampled).expect("a ratio")
    }

    /// Sample until the inserts call for `surplus` more.
    fn sample_until(&self, surplus: f64) {
        let control = self.run.segment.control();
        control.sampled().fetch_add((self.surplus() - surplus) as u64, Ordering::SeqCst);
        control.signal_progress();
    }

    /// Make room for one, once there is none and all of `slots` wait, and see that the first of them takes it.
    fn serve_the_first(&self, slots: &[usize]) -> usize {
        self.family.wait_until(|| self.surplus() > LIMITER.error_band && slots.iter().all(|&slot| self.waits(slot)));
        let (first, before) = (self.first(slots), [0, 1, 2].map(|slot| self.inserted(slot)));
        self.sample_until(LIMITER.error_band);
        self.family.wait_until(|| self.inserted(first) > before[first]);
        self.wait_for_all(slots);
        for slot in (0..FLUSHES.len()).filter(|&slot| slot != first) {
            assert_eq!(self.inserted(slot), before[slot], "slot {slot} went before slot {first}, which came earlier");
        }
        first
    }

    /// Serve `turns` turns, and count how often each process was served.
    fn serve(&self, slots: &[usize], turns: usize) -> [usize; FLUSHES.len()] {
        let mut served = [0; FLUSHES.len()];
        (0..turns).for_each(|_| served[self.serve_the_first(slots)] += 1);
        served
    }

    /// End the run, in which nothing was lost.
    fn finish(mut self) {
        self.run.segment.control().set_run_state(RunState::Stopping);
        self.family.join();
        self.run.assert_tree_is_exact();
    }

    /// Let the process in `slot` stand still at `trouble` in its next turn, where it is the first of all.
    fn stop_at(&self, slot: usize, trouble: Trouble) {
        let others: Vec<usize> = (0..FLUSHES.len()).filter(|&other| other != slot).collect();
        if trouble != Trouble::InLine {
            self.run.scratch(slot).store(trouble as u64, Ordering::SeqCst);
        }
        while self.first(&[0, 1, 2]) != slot {
            self.serve_the_first(&[0, 1, 2]);
        }
        if trouble != Trouble::InLine {
            self.sample_until(LIMITER.error_band);
            self.family.wait_until(|| self.run.scratch(slot).load(Ordering::SeqCst) == THERE);
        }
        self.family.stop(slot);
        self.run.scratch(slot).store(0, Ordering::SeqCst);
        self.wait_for_all(&others);
        assert_eq!(self.first(&[0, 1, 2]), slot);
    }
}

fn insert_without_end(run: &Run, slot: usize) {
    let mut replay = run.replay(slot);
    let area = run.area(slot);
    // Reports that the process is where the test wants to stop it, and stays there until the test has stopped it.
    let stay_at = |trouble: Trouble| {
        if run.scratch(slot).compare_exchange(trouble as u64, THERE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            wait_until(|| run.scratch(slot).load(Ordering::SeqCst) != THERE);
        }
    };
    for turn in 0.. {
        for number in 0..FLUSHES[slot] {
            run.payload.stage(area, Identity { life: slot as u32, number: (turn * FLUSHES[slot] + number) as u32 }, None);
        }
        let mut turn = LIMITER.turn(&run.segment, run.slot(slot));
        if !turn.wait(|| true) {
            return;
        }
        stay_at(Trouble::Served);
        replay.flush(area);
        stay_at(Trouble::Inserted);
    }
}

/// Let this process take the slots of all three, for tests in which none of them waits.
fn occupy_all(run: &Run) {
    for slot in (0..FLUSHES.len()).map(|slot| run.slot(slot)) {
        let generation = slot.reserve(Role::Actor, slot.index()).expect("a free slot");
        assert!(slot.occupy(std::process::id(), generation));
    }
}

fn sizes() -> Sizes {
    Sizes { capacity: 1_024, ..Sizes::default() }
}

#[test]
fn whoever_waits_is_served_in_order_however_much_it_inserts() {
    let run = Run::new(sizes());
    let world = World::new(&run);
    for _ in 0..100 {
        assert_eq!(world.serve(&[0, 1, 2], FLUSHES.len()), [1; FLUSHES.len()], "everybody has its turn in every round");
    }
    world.finish();
}

#[test]
fn a_process_stopped_in_its_turn_is_passed_over_and_is_first_again_when_it_goes_on() {
    for trouble in [Trouble::InLine, Trouble::Served, Trouble::Inserted] {
        let run = Run::new(sizes());
        let world = World::new(&run);
        world.stop_at(1, trouble);
        let before = [0, 2].map(|slot| world.inserted(slot));
        // It is its turn until the samplers need more than there is.
        world.sample_until(0.0);
        world.family.wait_until(|| world.inserted(0) > before[0] || world.inserted(2) > before[1]);
        world.wait_for_all(&[0, 2]);
        assert!(!world.is_ready(1), "{trouble:?}: it holds up the others still");
        assert_eq!(world.serve(&[0, 2], 20), [10, 0, 10], "{trouble:?}");
        world.family.go_on(1);
        world.wait_for_all(&[0, 1, 2]);
        if trouble == Trouble::InLine {
            assert_eq!(world.serve_the_first(&[0, 1, 2]), 1, "it came before all others");
        }
        assert_eq!(world.serve(&[0, 1, 2], 30), [10; FLUSHES.len()], "{trouble:?}");
        world.finish();
    }
}

#[test]
fn a_process_killed_in_its_turn_is_passed_over_and_its_place_is_given_up_with_its_slot() {
    for trouble in [Trouble::InLine, Trouble::Served, Trouble::Inserted] {
        let run = Run::new(sizes());
        let mut world = World::new(&run);
        world.stop_at(1, trouble);
        world.family.kill(&[1]);
        // Nobody has noticed the death yet: the slot is still the dead process's own.
        assert!(world.place(1).is_some());
        let before = [0, 2].map(|slot| world.inserted(slot));
        world.sample_until(0.0);
        world.family.wait_until(|| world.inserted(0) > before[0] || world.inserted(2) > before[1]);
        world.serve(&[0, 2], 10);
        world.family.repair_patiently(1);
        assert_eq!(world.place(1), None, "{trouble:?}");
        world.start(1);
        assert_eq!(world.serve(&[0, 1, 2], 30), [10; FLUSHES.len()], "{trouble:?}");
        world.finish();
    }
}

#[test]
fn the_next_in_line_goes_on_at_once_when_the_slot_of_a_dead_one_is_free() {
    let run = Run::new(sizes());
    let mut world = World::new(&run);
    world.stop_at(1, Trouble::InLine);
    world.family.kill(&[1]);
    world.family.repair_patiently(1);
    // The samplers do not have to use up the surplus: the band is enough.
    world.serve(&[0, 2], 10);
    world.finish();
}

#[test]
fn a_process_that_is_not_ready_yet_holds_up_nobody_and_keeps_its_place() {
    let run = Run::new(sizes());
    let control = run.segment.control();
    occupy_all(&run);
    let turn = |slot: usize| LIMITER.turn(&run.segment, run.slot(slot));
    let set_surplus = |surplus: u64| control.inserted().store(LIMITER.min_size + surplus, Ordering::SeqCst);
    set_surplus(300);
    let [mut maker, mut other, mut late] = [turn(0), turn(1), turn(2)];
    assert!(!maker.is_near(0, 50) && !other.has_come() && !late.has_come());
    // Room for the one that is ready, although the one that makes came before.
    set_surplus(100);
    assert!(maker.is_near(0, 50) && !late.has_come() && other.has_come());
    drop(other);
    // Once it is ready, it goes before those that came later.
    assert!(maker.has_come() && !late.has_come());
    drop(maker);
    assert!(late.has_come());
}

#[test]
fn a_process_that_becomes_first_just_before_it_sleeps_does_not_sleep() {
    let run = Run::new(sizes());
    occupy_all(&run);
    let turn = |slot: usize| LIMITER.turn(&run.segment, run.slot(slot));
    run.segment.control().inserted().store(MORE_THAN_ALL, Ordering::SeqCst);
    let [mut first, mut second] = [turn(0), turn(1)];
    assert!(!first.has_come());
    let mut first = Some(first);
    // How often this thread had slept, each time that it was about to sleep.
    let (mut slept, mut times) = ([0; 2], 0);
    let has_come = second.wait(|| {
        slept[times] = getrusage(UsageWho::RUSAGE_THREAD).expect("its own usage").voluntary_context_switches();
        times += 1;
        drop(first.take());
        times < slept.len()
    });
    assert!(!has_come && slept[0] == slept[1], "{slept:?}");
}

#[test]
fn a_turn_is_near_when_those_in_front_and_the_samples_drawn_meanwhile_leave_room() {
    let run = Run::new(sizes());
    let control = run.segment.control();
    occupy_all(&run);
    let turn = |slot: usize| LIMITER.turn(&run.segment, run.slot(slot));
    control.inserted().store(LIMITER.min_size + 150, Ordering::SeqCst);
    let [mut first, mut second, mut third] = [turn(0), turn(1), turn(2)];
    assert!(!first.is_near(49, 10) && first.is_near(50, 10));
    assert!(!second.is_near(59, 10) && second.is_near(60, 10));
    assert!(!third.is_near(69, 10) && third.is_near(70, 10));
    drop(second);
    assert!(!third.is_near(59, 10) && third.is_near(60, 10));
    // In balance there is room for everybody, whoever stands in line.
    control.inserted().store(LIMITER.min_size, Ordering::SeqCst);
    assert!(third.is_near(0, 1_000_000) && turn(1).has_come());
}

#[test]
fn whatever_the_sizes_one_side_can_always_move_and_one_step_at_most_leaves_the_band() {
    let run = Run::new(sizes());
    occupy_all(&run);
    let control = run.segment.control();
    let steps = prop::collection::vec((any::<bool>(), 1u64..2_000, 1u64..600), 1..300);
    proptest!(|(ratio in 0.01f64..100.0, band in 0.0f64..5_000.0, steps in steps)| {
        let limiter = RateLimiter { min_size: 50, samples_per_insert: Some(ratio), takes_once: false, error_band: band };
        let [mut inserted, mut sampled] = [0, 0];
        for (prefers_insert, flush, batch) in steps {
            control.inserted().store(inserted, Ordering::Relaxed);
            control.sampled().store(sampled, Ordering::Relaxed);
            let before = limiter.surplus(inserted, sampled).expect("a ratio");
            let may_insert = limiter.turn(&run.segment, run.slot(0)).has_come();
            let may_sample = limiter.may_sample(inserted, sampled, batch);
            prop_assert!(may_insert || may_sample, "both wait at a surplus of {before} with a band of {band}");
            if may_insert && (prefers_insert || !may_sample) {
                prop_assert!(before <= band);
                inserted += flush;
            } else {
                sampled += batch;
                let after = limiter.surplus(inserted, sampled).expect("a ratio");
                prop_assert!(after >= -band.max(batch as f64), "a surplus of {after} with a band of {band}");
            }
        }
    });
}
