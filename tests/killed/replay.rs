//! Processes are killed, also several at once, or stopped, at random moments; the supervisor's repair follows.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand::RngExt;
use shoal::replay::{Batch, Priority, Replay};
use shoal::segment::processes::Role;
use shoal::segment::shared_words::{load_bytes, store_bytes};
use shoal::segment::{Region, Segment, object, system};
use shoal::sync::Ordering;

use crate::support::forked::run::description;
use crate::support::forked::{Family, Identity, Run, Sizes, count_from_environment, random, wait_until};

const WRITERS: usize = 3;
const UPDATERS: usize = 2;
const BATCH: usize = 16;

/// Scratch words of life number `life`: transitions begun and transitions committed.
fn begun(run: &Run, life: u32) -> &shoal::sync::AtomicU64 {
    run.scratch(64 + 2 * life as usize)
}

fn committed(run: &Run, life: u32) -> &shoal::sync::AtomicU64 {
    run.scratch(65 + 2 * life as usize)
}

/// Scratch word in which a process counts what it did, for others to see that it moves.
fn moves(run: &Run, slot: usize) -> &shoal::sync::AtomicU64 {
    run.scratch(slot)
}

/// Wait until each of the processes in `slots` has moved `by` times more.
fn advance(run: &Run, family: &Family<'_>, slots: &[usize], by: u64) {
    let goals: Vec<u64> = slots.iter().map(|&slot| moves(run, slot).load(Ordering::Relaxed) + by).collect();
    family.wait_until(|| slots.iter().zip(&goals).all(|(&slot, &goal)| moves(run, slot).load(Ordering::Relaxed) >= goal));
}

/// Stop the process in `slot`, after `by` moves each time, until it is caught inside an operation.
fn catch_inside(run: &Run, family: &Family<'_>, slot: usize, by: u64) {
    loop {
        advance(run, family, &[slot], by);
        family.stop(slot);
        if run.slot(slot).in_operation() {
            return;
        }
        family.go_on(slot);
    }
}

/// Stage and flush for ever, or until `limit` transitions.
fn write(run: &Run, slot: usize, life: u32, limit: u32) {
    let mut replay = run.replay(slot);
    let area = run.area(slot);
    let mut random = random(u64::from(life));
    for number in 0..limit {
        if area.is_full() || random.random_bool(0.1) {
            replay.flush(area);
        }
        begun(run, life).store(u64::from(number) + 1, Ordering::Release);
        run.payload.stage(area, Identity { life, number }, Priority::from_f32(random.random_range(0.1..3.0)));
        committed(run, life).store(u64::from(number) + 1, Ordering::Release);
        moves(run, slot).fetch_add(1, Ordering::Relaxed);
    }
    loop {
        std::thread::park();
    }
}

/// Sample and change priorities for ever.
fn update(run: &Run, slot: usize, seed: u64) {
    let mut replay = run.replay(slot);
    let mut batch = Batch::new(run.payload.schema(), BATCH);
    let mut random = random(seed);
    wait_until(|| !replay.is_empty());
    loop {
        replay.sample(&mut batch, 0.5, &mut random).expect("a batch");
        for row in 0..BATCH {
            let _ = run.payload.verify(&batch, row);
        }
        let errors: [f32; BATCH] = std::array::from_fn(|_| random.random_range(0.0..5.0));
        replay.update_priorities(&batch, errors.into_iter().map(|error| Priority::from_error(error, 1e-4, 0.6)));
        moves(run, slot).fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn after_any_kill_the_tree_is_exact_and_every_committed_transition_is_there_once() {
    const MOST_PER_LIFE: u32 = 150;
    let kills = count_from_environment("SHOAL_TEST_KILLS", 300);
    let lives = usize::try_from(kills).expect("a small count") + WRITERS + UPDATERS + 8;
    let run =
        Run::new(Sizes { capacity: lives * MOST_PER_LIFE as usize, staged_rows: 24, network_parameters: lives + 64, ..Sizes::default() });
    let mut random = random(42);
    let mut next_life = 0u32;
    let mut life_of = [0u32; WRITERS + UPDATERS];
    let mut family = Family::new(&run);
    let mut start = |family: &mut Family<'_>, slot: usize, life_of: &mut [u32]| {
        let life = next_life;
        next_life += 1;
        life_of[slot] = life;
        moves(&run, slot).store(0, Ordering::Relaxed);
        if slot < WRITERS {
            family.start(slot, Role::Actor, || write(&run, slot, life, MOST_PER_LIFE));
        } else {
            family.start(slot, Role::Learner, || update(&run, slot, u64::from(life)));
        }
    };
    (0..WRITERS + UPDATERS).for_each(|slot| start(&mut family, slot, &mut life_of));
    let (mut killed, mut inside, mut together) = (0, 0, 0);
    while killed < kills {
        // One victim mostly, sometimes two or three at once, after a random amount of their work.
        let mut victims: Vec<usize> = (0..WRITERS + UPDATERS).collect();
        let count = [1, 1, 1, 2, 3][random.random_range(0..5)];
        (0..count).for_each(|place| victims.swap(place, random.random_range(place..WRITERS + UPDATERS)));
        victims.truncate(count);
        let goal = random.random_range(1..if victims[0] < WRITERS { u64::from(MOST_PER_LIFE) } else { 40 });
        family.wait_until(|| moves(&run, victims[0]).load(Ordering::Relaxed) >= goal);
        family.kill(&victims);
        killed += count as u64;
        inside += victims.iter().filter(|&&slot| run.slot(slot).in_operation()).count();
        together += usize::from(count > 1);
        for &slot in &victims {
            family.repair_patiently(slot);
            assert_eq!(run.area(slot).pending(), 0, "what the dead process had staged is in the replay");
        }
        run.assert_tree_is_exact();
        victims.iter().for_each(|&slot| start(&mut family, slot, &mut life_of));
        // Nobody is left waiting: updaters never rest, and each of them goes on.
        for slot in WRITERS..WRITERS + UPDATERS {
            advance(&run, &family, &[slot], 1);
        }
    }
    let everyone: Vec<usize> = (0..WRITERS + UPDATERS).collect();
    family.kill(&everyone);
    everyone.iter().for_each(|&slot| family.repair_patiently(slot));
    run.assert_tree_is_exact();

    let contents = run.contents();
    assert!(contents.values().all(|&times| times == 1), "a transition is there twice");
    for life in 0..next_life {
        let there = contents.keys().filter(|identity| identity.life == life).count() as u64;
        let highest = contents.keys().filter(|identity| identity.life == life).map(|identity| u64::from(identity.number) + 1).max();
        assert_eq!(there, highest.unwrap_or(0), "life {life} has gaps");
        let (least, most) = (committed(&run, life).load(Ordering::Relaxed), begun(&run, life).load(Ordering::Relaxed));
        assert!((least..=most).contains(&there), "life {life} committed {least} of {most} begun, and {there} are there");
    }
    assert!(inside as u64 > kills / 50, "of {killed} kills {inside} hit an operation: the test does not test what it says");
    assert!(together > 0);
}

#[test]
fn overwritten_slots_survive_any_kill_too() {
    let kills = count_from_environment("SHOAL_TEST_KILLS", 300) / 3;
    let run = Run::new(Sizes { capacity: 150, fanout: 16, network_parameters: 1 << 12, ..Sizes::default() });
    let mut random = random(43);
    let mut life = 0;
    let mut family = Family::new(&run);
    let start = |family: &mut Family<'_>, slot: usize, life: &mut u32| {
        *life += 1;
        let own = *life;
        if slot < WRITERS {
            family.start(slot, Role::Actor, || write(&run, slot, own, u32::MAX));
        } else {
            family.start(slot, Role::Learner, || update(&run, slot, u64::from(own)));
        }
    };
    (0..WRITERS + UPDATERS).for_each(|slot| start(&mut family, slot, &mut life));
    for _ in 0..kills {
        let slot = random.random_range(0..WRITERS + UPDATERS);
        advance(&run, &family, &[slot], random.random_range(1..200));
        family.kill(&[slot]);
        family.repair_patiently(slot);
        run.assert_tree_is_exact();
        start(&mut family, slot, &mut life);
    }
    let everyone: Vec<usize> = (0..WRITERS + UPDATERS).collect();
    family.kill(&everyone);
    everyone.iter().for_each(|&slot| family.repair_patiently(slot));
    run.assert_tree_is_exact();
    let contents = run.contents();
    assert_eq!(contents.len(), 150, "every slot holds a transition of its own");
    // The slots work as before.
    let mut replay = run.replay(0);
    for number in 0..150 {
        if run.area(0).is_full() {
            replay.flush(run.area(0));
        }
        run.payload.stage(run.area(0), Identity { life: u32::MAX, number }, None);
    }
    replay.flush(run.area(0));
    assert!(run.contents().keys().all(|identity| identity.life == u32::MAX));
    run.assert_tree_is_exact();
}

#[test]
fn a_process_stopped_inside_an_operation_stops_nobody_and_is_reported_as_stuck() {
    let run = Run::new(Sizes { capacity: 200, ..Sizes::default() });
    let mut family = Family::new(&run);
    for slot in 0..3 {
        family.start(slot, Role::Actor, || write(&run, slot, slot as u32, u32::MAX));
    }
    family.start(3, Role::Learner, || update(&run, 3, 3));
    for round in 0..5 {
        catch_inside(&run, &family, 0, 1 + round);
        advance(&run, &family, &[1, 2], 5_000);
        advance(&run, &family, &[3], 200);
        // Another one dies: nothing is repaired past a living process, and the gate is left open.
        family.kill(&[1]);
        let repaired = family.repair(1);
        if run.slot(1).in_operation() || run.area(1).pending() != 0 {
            assert_eq!(repaired.stuck, [0], "{repaired:?}");
            assert_eq!((repaired.completed, repaired.inserted, repaired.rebuilt_tree), (0, 0, false));
        }
        advance(&run, &family, &[2], 2_000);
        // The stopped one goes on as if nothing had been.
        family.go_on(0);
        advance(&run, &family, &[0], 100);
        if !repaired.stuck.is_empty() {
            family.repair_patiently(1);
        }
        run.assert_tree_is_exact();
        family.start(1, Role::Actor, || write(&run, 1, 100 + u32::try_from(round).expect("few rounds"), u32::MAX));
    }
    // Killed while it is stopped, it is repaired like any other.
    family.stop(0);
    family.kill(&[0]);
    family.repair_patiently(0);
    run.assert_tree_is_exact();
}

#[test]
fn who_waits_at_the_gate_of_a_dead_supervisor_goes_on_if_its_sentinel_opens_it_and_is_told_if_nobody_does() {
    let run = Run::new(Sizes::default());
    let name_words = &run.segment.words(Region::LearnerState)[..16];
    let supervisor = system::fork_child(|| {
        let layout = run.segment.layout().clone();
        let segment = Segment::create(layout, &description(run.payload.schema()), false).expect("a small segment");
        // The supervisor dies in a repair, and removes nothing.
        segment.control().gate().store(1, Ordering::SeqCst);
        segment.disown();
        let mut bytes = [0; 128];
        bytes[..segment.name().len()].copy_from_slice(segment.name().as_bytes());
        store_bytes(name_words, &bytes);
        0
    });
    let supervisor = supervisor.expect("fork");
    nix::sys::wait::waitpid(supervisor, None).expect("waitpid");
    let mut bytes = [0; 128];
    load_bytes(name_words, &mut bytes);
    let name = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
    let segment = Segment::attach(&name).expect("the segment of a dead run");
    object::remove(&name);
    let slot = segment.processes().slot(0);
    let mut replay = Replay::new(&segment, run.payload.schema().clone(), slot);
    let sentinel = system::fork_child(|| {
        std::thread::sleep(Duration::from_millis(100));
        segment.control().gate().store(0, Ordering::SeqCst);
        0
    });
    assert_eq!(replay.update_named(&[0], &[1], std::iter::once(Some(Priority::ONE))), 1, "nothing of this name is there");
    nix::sys::wait::waitpid(sentinel.expect("fork"), None).expect("waitpid");
    segment.control().gate().store(1, Ordering::SeqCst);
    let update = std::panic::AssertUnwindSafe(|| replay.update_named(&[0], &[1], std::iter::once(Some(Priority::ONE))));
    let panic = std::panic::catch_unwind(update).expect_err("nobody will open the gate");
    let message = panic.downcast::<String>().expect("a message");
    assert!(message.contains(&format!("the supervisor (process {supervisor}) died during a repair")), "{message}");
    assert!(!slot.in_operation(), "it was outside, waiting");
}

#[test]
fn a_process_that_died_unnoticed_inside_an_operation_does_not_stand_in_the_way_of_another_repair() {
    let run = Run::new(Sizes { capacity: 200, ..Sizes::default() });
    let mut family = Family::new(&run);
    for slot in 0..2 {
        family.start(slot, Role::Actor, || write(&run, slot, slot as u32, u32::MAX));
    }
    for round in 0..20 {
        for slot in 0..2 {
            catch_inside(&run, &family, slot, 1 + round);
        }
        // Both die inside; the second is not even reaped when the first is repaired.
        family.signal(1, Signal::SIGKILL);
        family.kill(&[0]);
        // Not with `Family::wait_until`, which fails if a process ends.
        wait_until(|| shoal::segment::pidfd::has_exited(run.slot(1).pid(), run.slot(1).start_time()));
        assert!(family.repair(0).stuck.is_empty());
        family.reap(1);
        assert!(family.repair(1).stuck.is_empty());
        run.assert_tree_is_exact();
        drop(run.contents());
        for slot in 0..2 {
            family.start(slot, Role::Actor, || write(&run, slot, slot as u32, u32::MAX));
        }
    }
}
