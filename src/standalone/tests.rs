//! What panics and deaths leave half done is repaired, or waited for, before anything else is done in the same place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::*;
use crate::replay::SampleError;
use crate::replay::gate::{LONGEST_STEP_NS, wait_until_outside};
use crate::segment::processes::Role;
use crate::segment::{NamedProcess, Region, SegmentSizes};

const ROWS: usize = 64;

fn options() -> Options {
    let fields = vec![FieldOptions { name: "value".into(), element: "f32".into(), shape: Vec::new(), stack: 0 }];
    Options {
        capacity: 256,
        prioritized: true,
        alpha: 1.0,
        beta: Schedule { start: 0.4, end: 0.4, samples: 0 },
        epsilon: 0.0,
        min_size: 1,
        samples_per_insert: None,
        error_band: f64::INFINITY,
        participants: 2,
        frames: 0,
        fields,
        steps: None,
    }
}

fn replay(shared: bool) -> ReplayHandle {
    ReplayHandle::create(options(), shared, Some(1)).unwrap()
}

fn patience<T>(work: impl FnOnce(Patience<'_>) -> T) -> T {
    work(Patience::new(Some(Duration::from_secs(60)), &mut || true))
}

fn add(replay: &ReplayHandle, column: &[u8], rows: usize) -> Vec<i64> {
    let mut slots = Vec::new();
    patience(|patience| replay.add(&[column], rows, None, &[], patience, &mut slots)).unwrap();
    slots
}

fn filled(shared: bool) -> ReplayHandle {
    let replay = replay(shared);
    assert_eq!(add(&replay, &[0; 4 * ROWS], ROWS).len(), ROWS);
    replay
}

/// Let a living process have the repairer's word.
fn begin_repair(replay: &ReplayHandle) {
    replay.control().repairer().store(NamedProcess::this().word(), Ordering::SeqCst);
}

/// Do `work` while somebody repairs for a moment.
fn beside_a_repair<T>(replay: &ReplayHandle, work: impl FnOnce() -> T) -> T {
    begin_repair(replay);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            replay.control().repairer().store(0, Ordering::SeqCst);
        });
        work()
    })
}

fn is_exact(replay: &ReplayHandle) -> bool {
    replay.view().tree().unwrap().audit().is_exact()
}

/// Set priorities as `ReplayHandle::update` does, until a panic in the middle.
fn update_half(replay: &ReplayHandle) {
    let sides = replay.sides();
    let halfway = catch_unwind(AssertUnwindSafe(|| {
        patience(|mut patience| {
            let mut reading = patience.lock(&sides.reading).unwrap();
            replay.with_reader(&mut reading.participant, &mut patience, |view, _| {
                let slots: Vec<usize> = (0..ROWS).collect();
                let tags: Vec<u64> = slots.iter().map(|&slot| view.leaf_tag(slot).unwrap()).collect();
                let priorities = slots.iter().map(|&slot| {
                    assert!(slot < ROWS / 2, "an error that nobody foresaw");
                    Priority::from_f32(7.0)
                });
                view.update_named(&slots, &tags, priorities);
                Ok(())
            })
        })
    }));
    assert!(halfway.is_err() && !is_exact(replay), "the panic came too early, or too late");
}

#[test]
fn sums_are_made_again_after_a_panic_before_the_place_is_used_again() {
    for shared in [false, true] {
        let replay = filled(shared);
        update_half(&replay);
        let set = patience(|patience| replay.update(&[0, 1], None, &[2.0, 3.0], Stale::Refuse, patience));
        assert_eq!(set.unwrap(), 0);
        assert!(is_exact(&replay), "shared: {shared}");
    }
}

#[test]
fn sums_that_a_panic_left_are_shown_to_nobody() {
    for shared in [false, true] {
        let replay = filled(shared);
        update_half(&replay);
        assert_eq!(replay.total_priority(), replay.priorities(None).unwrap().iter().sum::<f64>(), "shared: {shared}");
    }
}

#[test]
fn whoever_leaves_after_a_panic_leaves_a_whole_replay_and_a_free_place() {
    let replay = filled(true);
    let other = ReplayHandle::open(replay.name().unwrap(), None).unwrap();
    update_half(&other);
    drop(other);
    assert!(is_exact(&replay));
    let taken = replay.memory.segment.processes().iter().filter(|slot| slot.state() != crate::segment::processes::SlotState::Free);
    assert_eq!(taken.count(), 1, "this process's own place to write");
}

#[test]
fn what_a_panic_left_staged_is_not_mistaken_for_what_is_added_next() {
    for shared in [false, true] {
        let replay = filled(shared);
        // Rows whose values are missing, from the third on.
        let halfway = catch_unwind(AssertUnwindSafe(|| add(&replay, &[0; 8], 3)));
        assert!(halfway.is_err());
        let slots = add(&replay, &[0; 20], 5);
        assert_eq!(slots.len(), 5);
        assert_eq!(replay.inserted(), (ROWS + 2 + 5) as u64, "those that were whole are kept");
        assert!(is_exact(&replay));
    }
}

#[test]
fn a_tree_is_whole_after_a_panic_of_whoever_changed_it() {
    let tree = OwnedSumTree::new(1_000).unwrap();
    let leaves: Vec<i64> = (0..100).collect();
    tree.update(&leaves, &[3.0; 100]).unwrap();
    let halfway = catch_unwind(AssertUnwindSafe(|| {
        tree.change((0..100).map(|leaf| {
            assert!(leaf < 50, "an error that nobody foresaw");
            (leaf, 0, Priority::ONE)
        }));
    }));
    assert!(halfway.is_err());
    tree.update(&[0], &[2.0]).unwrap();
    assert_eq!(tree.total(), tree.priorities(None).unwrap().iter().sum::<f64>());
}

#[test]
fn slots_that_were_claimed_and_never_filled_hide_no_priorities() {
    let replay = filled(false);
    // As a fork in the middle of another thread's insert leaves it.
    replay.control().claimed().fetch_add(ROWS as u64, Ordering::Relaxed);
    add(&replay, &[0; 4 * ROWS], ROWS);
    let priorities = replay.priorities(None).unwrap();
    assert_eq!(priorities.iter().sum::<f64>(), replay.total_priority());
}

#[test]
fn what_others_added_while_a_replay_was_saved_is_known_once_it_is_loaded() {
    let replay = filled(false);
    // As the counts stood before the rows were read.
    for count in [replay.control().claimed(), replay.control().inserted()] {
        count.store(ROWS as u64 / 2, Ordering::Relaxed);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    replay.save(file.path()).unwrap();
    let loaded = ReplayHandle::load(file.path(), false, None, Some(1)).unwrap();
    assert_eq!(loaded.len(), ROWS);
    assert_eq!(loaded.priorities(None).unwrap().iter().sum::<f64>(), loaded.total_priority());
    let added = add(&loaded, &[0; 4], 1);
    assert_eq!(added, [ROWS as i64], "no transition was overwritten while there was room");
}

#[test]
fn who_drew_before_a_replay_was_saved_is_not_missed_once_it_is_loaded() {
    let replay = filled(true);
    let mut rows = replay.batch(8);
    patience(|patience| replay.sample(&mut rows.as_rows(), None, patience)).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    replay.save(file.path()).unwrap();
    let loaded = ReplayHandle::load(file.path(), true, None, Some(1)).unwrap();
    assert_eq!((loaded.sampled(), loaded.options().participants), (8, 2));
    assert_eq!(loaded.memory.nobody_draws(), None, "who draws is still to come");
    let judge = ReplayHandle::open(loaded.name().unwrap(), None).unwrap();
    patience(|patience| judge.update(&[0], None, &[0.5], Stale::Refuse, patience)).unwrap();
    drop(judge);
    assert_eq!(loaded.memory.nobody_draws(), None, "who has judged has not drawn");
    let mut rows = loaded.batch(8);
    patience(|patience| loaded.sample(&mut rows.as_rows(), None, patience)).unwrap();
    let feeder = ReplayHandle::open(loaded.name().unwrap(), None).unwrap();
    drop(loaded);
    assert_eq!(feeder.memory.nobody_draws(), Some(true));
}

#[test]
fn whoever_only_writes_priorities_back_is_not_taken_for_one_who_draws() {
    let learner = filled(true);
    let mut rows = learner.batch(8);
    patience(|patience| learner.sample(&mut rows.as_rows(), None, patience)).unwrap();
    let [feeder, judge] = [(), ()].map(|()| ReplayHandle::open(learner.name().unwrap(), None).unwrap());
    patience(|patience| judge.update(&[0], None, &[0.5], Stale::Refuse, patience)).unwrap();
    let nobody_draws = || feeder.memory.nobody_draws();
    assert_eq!(nobody_draws(), None, "the learner does");
    drop(learner);
    assert_eq!(nobody_draws(), Some(false), "the judge may be about to");
    drop(judge);
    assert_eq!(nobody_draws(), Some(true));
}

#[test]
fn what_was_cleared_before_a_replay_was_saved_gives_its_name_to_nothing_that_is_added_once_it_is_loaded() {
    let replay = filled(false);
    patience(|patience| replay.clear(patience)).unwrap();
    add(&replay, &[0; 4], 1);
    let file = tempfile::NamedTempFile::new().unwrap();
    replay.save(file.path()).unwrap();
    let loaded = ReplayHandle::load(file.path(), false, None, Some(1)).unwrap();
    let slots: Vec<i64> = (0..ROWS as i64).collect();
    let stale = || patience(|patience| loaded.update(&slots, Some(&[1; ROWS]), &[9.0; ROWS], Stale::Ignore, patience)).unwrap();
    assert_eq!(stale(), ROWS as u64);
    add(&loaded, &[0; 4 * ROWS], ROWS);
    assert_eq!(stale(), ROWS as u64);
    assert_eq!(loaded.largest_error(), 1.0);
}

#[test]
fn what_was_being_overwritten_while_a_replay_was_saved_gives_its_name_to_nothing_that_is_added_once_it_is_loaded() {
    let replay = replay(false);
    let capacity = replay.options().capacity;
    add(&replay, &vec![0; 4 * capacity], capacity);
    // Another process has claimed the oldest row's slot: it is in state 1 of its second generation, and not in the file.
    replay.memory.segment.words(Region::Store)[0].store(2 << 24 | 1 << 20, Ordering::Relaxed);
    let file = tempfile::NamedTempFile::new().unwrap();
    replay.save(file.path()).unwrap();
    let loaded = ReplayHandle::load(file.path(), false, None, Some(1)).unwrap();
    assert_eq!(add(&loaded, &[0; 4], 1), [0]);
    assert_eq!(patience(|patience| loaded.update(&[0], Some(&[1]), &[9.0], Stale::Ignore, patience)).unwrap(), 1);
}

/// Empties a replay whenever it is given something to write.
struct Emptying<'r>(&'r ReplayHandle);

impl std::io::Write for Emptying<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        patience(|patience| self.0.clear(patience)).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_emptied_while_it_is_saved_becomes_no_file_with_the_counts_of_before() {
    // More than is written at once.
    let rows = 60_000;
    let replay = ReplayHandle::create(Options { capacity: rows, ..options() }, false, Some(1)).unwrap();
    add(&replay, &vec![0; 4 * rows], rows);
    let error = replay.write(Emptying(&replay)).unwrap_err().to_string();
    assert!(error.ends_with("save it again"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    add(&replay, &[0; 4], 1);
    replay.save(file.path()).unwrap();
    assert_eq!(ReplayHandle::load(file.path(), false, None, Some(1)).unwrap().len(), 1);
}

#[test]
fn a_private_replay_that_is_loaded_to_be_shared_has_room_for_others() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let alone = Options { participants: 1, ..options() };
    ReplayHandle::create(alone, false, Some(1)).unwrap().save(file.path()).unwrap();
    let participants = |shared, given| ReplayHandle::load(file.path(), shared, given, Some(1)).unwrap().options().participants;
    assert_eq!((participants(true, None), participants(true, Some(3)), participants(false, Some(3))), (DEFAULT_PARTICIPANTS, 3, 1));
}

#[test]
fn every_writer_can_hold_a_frame_and_one_is_left() {
    let fields = [FieldOptions { name: "image".into(), element: "u8".into(), shape: vec![4], stack: 1 }];
    let made = |frames| {
        let options = Options { participants: 8, frames, fields: fields.to_vec(), ..options() };
        ReplayHandle::create(options, false, Some(1))
    };
    let refused = made(8).err().expect("eight writers could hold every frame").to_string();
    assert_eq!(refused, "frame_capacity is 8; it must be between 9 and 16777216");
    assert!(made(9).is_ok());
}

#[test]
fn names_of_what_was_cleared_are_stale() {
    let replay = filled(false);
    let mut rows = replay.batch(8);
    patience(|patience| replay.sample(&mut rows.as_rows(), None, patience)).unwrap();
    let slots: Vec<i64> = rows.slots.iter().map(|&slot| slot as i64).collect();
    let generations: Vec<i64> = rows.generations.iter().map(|&generation| generation as i64).collect();
    patience(|patience| replay.clear(patience)).unwrap();
    let update = |names: Option<&[i64]>, stale| patience(|patience| replay.update(&slots, names, &[1.0; 8], stale, patience));
    assert_eq!(update(Some(&generations), Stale::Ignore).unwrap(), 8);
    assert!(matches!(update(Some(&generations), Stale::Refuse), Err(ReplayError::Stale { stale: 8, .. })));
    assert!(matches!(update(None, Stale::Ignore), Err(ReplayError::EmptySlot { .. })));
    // What the leaves of empty slots are marked with is no name.
    for unowned in [0, -1, 1 << 25] {
        assert_eq!(update(Some(&[unowned; 8]), Stale::Ignore).unwrap(), 8, "generation {unowned}");
        assert!(matches!(update(Some(&[unowned; 8]), Stale::Refuse), Err(ReplayError::Stale { stale: 8, .. })));
    }
    assert_eq!(replay.priorities(Some(&slots)).unwrap(), [0.0; 8]);
}

#[test]
fn priorities_that_are_left_out_are_not_the_largest_so_far() {
    let replay = filled(false);
    let slots: Vec<i64> = (0..8).collect();
    // Every slot was written once.
    let update = |errors: &[f32; 8]| patience(|patience| replay.update(&slots, Some(&[1; 8]), errors, Stale::Ignore, patience)).unwrap();
    assert_eq!(update(&[8.0; 8]), 0);
    assert!((replay.largest_error() - 8.0).abs() < 0.001);
    patience(|patience| replay.clear(patience)).unwrap();
    // What a learner had drawn before the replay was emptied.
    assert_eq!(update(&[1_000.0; 8]), 8);
    assert_eq!(replay.largest_error(), 1.0);
    let added = add(&replay, &[0; 4], 1);
    assert_eq!(replay.priorities(Some(&added)).unwrap(), [1.0]);
}

#[test]
fn a_replay_that_is_being_emptied_while_a_batch_is_drawn_is_empty_and_not_contended() {
    let prioritized = replay(false);
    let uniform = ReplayHandle::create(Options { prioritized: false, ..prioritized.options().clone() }, false, Some(1)).unwrap();
    for replay in [prioritized, uniform] {
        // No row is there any more, and the counts still say that there are some.
        replay.control().inserted().store(ROWS as u64, Ordering::SeqCst);
        replay.control().clearing().store(1, Ordering::SeqCst);
        let mut rows = replay.batch(8);
        let drawn = patience(|patience| replay.sample(&mut rows.as_rows(), None, patience));
        assert!(matches!(drawn, Err(ReplayError::Sample(SampleError::Empty))), "{drawn:?}");
    }
}

#[test]
fn a_draw_that_an_emptying_falls_into_waits_for_what_is_added_after_it() {
    let options = Options { min_size: ROWS as u64, ..options() };
    let replay = ReplayHandle::create(options, false, Some(1)).unwrap();
    let control = replay.control();
    // As in the middle of an emptying: no row is there any more, and the counts still say that there are some.
    begin_repair(&replay);
    control.gate().store(1, Ordering::SeqCst);
    control.clearing().store(1, Ordering::SeqCst);
    control.inserted().store(ROWS as u64, Ordering::SeqCst);
    let has_waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let learner = scope.spawn(|| {
            let mut go_on = || {
                has_waited.store(true, Ordering::Relaxed);
                true
            };
            let mut rows = replay.batch(8);
            replay.sample(&mut rows.as_rows(), None, Patience::new(Some(Duration::from_secs(60)), &mut go_on))
        });
        while !has_waited.load(Ordering::Relaxed) && !learner.is_finished() {
            std::thread::yield_now();
        }
        for word in [control.inserted(), control.clearing(), control.repairer()] {
            word.store(0, Ordering::SeqCst);
        }
        control.gate().store(0, Ordering::SeqCst);
        add(&replay, &[0; 4 * ROWS], ROWS);
        learner.join().unwrap().unwrap();
    });
}

/// A replay for one participant, with a row, whose places to write and to read a process has that nobody is.
fn of_the_dead() -> ReplayHandle {
    let options = Options { participants: 1, ..options() };
    let replay = ReplayHandle::create(options, true, Some(1)).unwrap();
    let writer = ReplayHandle::open(replay.name().unwrap(), None).unwrap();
    add(&writer, &[0; 4], 1);
    drop(writer);
    for place in replay.memory.segment.processes().iter() {
        let generation = place.reserve(Role::Participant, place.index()).unwrap();
        assert!(place.occupy(0x7fff_ffff, generation));
    }
    replay
}

#[test]
fn the_place_of_a_dead_process_is_waited_for_while_somebody_else_repairs() {
    let replay = of_the_dead();
    beside_a_repair(&replay, || assert_eq!(add(&replay, &[0; 4], 1), [1]));
}

#[test]
fn whoever_waits_for_the_place_of_a_dead_process_is_asked_whether_to_wait_on() {
    let replay = of_the_dead();
    begin_repair(&replay);
    let ends = |timeout, go_on: &mut dyn FnMut() -> bool| {
        let added = replay.add(&[&[0; 4]], 1, None, &[], Patience::new(timeout, &mut *go_on), &mut Vec::new());
        let drawn = replay.sample(&mut replay.batch(1).as_rows(), None, Patience::new(timeout, go_on));
        [added.unwrap_err(), drawn.unwrap_err()]
    };
    let interrupted = ends(None, &mut || false);
    assert!(matches!(interrupted, [ReplayError::Interrupted, ReplayError::Interrupted]), "{interrupted:?}");
    let mut looks = 0;
    let late = ends(Some(Duration::ZERO), &mut || {
        looks += 1;
        true
    });
    assert!(matches!(late, [ReplayError::Repairing { .. }, ReplayError::Repairing { .. }]), "{late:?}");
    assert_eq!(looks, 2, "one each, since no time was left");
    replay.close();
    let closed = ends(None, &mut || true);
    assert!(matches!(closed, [ReplayError::Closed, ReplayError::Closed]), "{closed:?}");
}

#[test]
fn clearing_waits_for_whoever_repairs() {
    let replay = filled(true);
    begin_repair(&replay);
    let told = replay.clear(Patience::new(Some(Duration::from_millis(10)), &mut || true));
    assert!(matches!(told, Err(ReplayError::Repairing { pid }) if pid == std::process::id()), "{told:?}");
    beside_a_repair(&replay, || patience(|patience| replay.clear(patience)).unwrap());
    assert!(replay.is_empty());
}

#[test]
fn a_second_thread_that_adds_is_told_of_the_rate_limiter_too() {
    let mut options = replay(false).options().clone();
    (options.samples_per_insert, options.error_band, options.min_size) = (Some(1.0), 1.0, 1);
    let replay = ReplayHandle::create(options, false, Some(1)).unwrap();
    let add_for = |seconds: f32| {
        let timeout = Duration::from_secs_f32(seconds);
        replay.add(&[&[0; 4]], 1, None, &[], Patience::new(Some(timeout), &mut || true), &mut Vec::new())
    };
    while add_for(0.01).is_ok() {}
    let first_waits = || matches!(replay.sides().waiting.try_lock(), Err(std::sync::TryLockError::WouldBlock));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| add_for(2.0));
        while !first_waits() {
            std::thread::yield_now();
        }
        let second = add_for(0.1);
        assert!(matches!(second, Err(ReplayError::RateLimited { .. })), "{second:?}");
        assert!(matches!(first.join().unwrap(), Err(ReplayError::RateLimited { .. })));
    });
}

#[test]
fn stopping_a_replay_whose_sums_are_wrong_does_not_make_them_right() {
    let replay = filled(true);
    replay.control().set_run_state(RunState::Poisoned);
    assert!(matches!(replay.stop(), Err(ReplayError::Inexact)));
    let mut rows = replay.batch(1);
    let drawn = patience(|patience| replay.sample(&mut rows.as_rows(), None, patience));
    assert!(matches!(drawn, Err(ReplayError::Inexact)), "{drawn:?}");
    patience(|patience| replay.clear(patience)).unwrap();
    replay.stop().unwrap();
    let added = patience(|patience| replay.add(&[&[0; 4]], 1, None, &[], patience, &mut Vec::new()));
    assert!(matches!(added, Err(ReplayError::Stopped)), "{added:?}");
}

const HOUR_NS: u64 = 3_600_000_000_000;

/// A segment of living processes, all inside an operation.
fn all_inside(processes: usize) -> Segment {
    let segment = Segment::of_sizes(SegmentSizes { processes, ..SegmentSizes::of_rows(1, 64) });
    for slot in segment.processes().iter() {
        let generation = slot.reserve(Role::Actor, slot.index()).unwrap();
        assert!(slot.occupy(std::process::id(), generation));
        slot.announce_repair();
    }
    segment
}

#[test]
fn who_leaves_as_soon_as_the_repairer_goes_on_was_not_stuck_however_long_that_stood_still() {
    let segment = all_inside(1);
    let slot = segment.processes().slot(0);
    // Between two readings of the clock an hour passes, in which nobody runs.
    for leaves_at in 2..10 {
        slot.announce_repair();
        let mut readings = 0;
        let clock = || {
            readings += 1;
            if readings == leaves_at {
                slot.complete_repair();
            }
            readings * HOUR_NS
        };
        assert!(wait_until_outside(segment.processes(), None, &[], clock).is_empty(), "left at reading {leaves_at}");
    }
}

#[test]
fn who_stays_inside_is_reported_and_who_only_tries_to_get_in_is_not() {
    let segment = all_inside(3);
    let [leaves, tries] = [1, 2].map(|slot| segment.processes().slot(slot));
    tries.complete_repair();
    let mut readings = 0;
    let clock = || {
        readings += 1;
        if readings == 2 {
            leaves.complete_repair();
        }
        // Announced as at a closed gate, at the moment of every look but the first ones.
        if readings > 3 {
            leaves.announce_repair();
            tries.announce_repair();
        }
        readings * LONGEST_STEP_NS
    };
    assert_eq!(wait_until_outside(segment.processes(), None, &[], clock), [0]);
    assert!(leaves.in_operation() && tries.in_operation());
}
