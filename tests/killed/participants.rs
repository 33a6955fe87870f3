//! The participants of a shared replay without a run: one is killed after every machine instruction of joining and
//! adding, of drawing and updating, and of leaving. Those that are left repair: nothing is there twice, the sums are exact,
//! and every place can be taken again. Nothing is repaired after one that lives, wherever it stands.
#![cfg(target_arch = "x86_64")]

use shoal::replay::{ReplayView, leaderless};

use crate::support::forked::shared::{CAPACITY, Shared, add, patience, update};
use crate::support::forked::traced::{Snapshot, Traced, report, sweep};

/// Take `child` through its operation. Wherever it stands it is left alone while it lives, and its death there is
/// repaired; then `added` of its own numbers are there at least, and all of them at most.
fn kill_everywhere(shared: &Shared, what: &str, child: &Traced, own: std::ops::Range<i32>, added: std::ops::RangeInclusive<usize>) {
    let places = shared.free_places();
    let (mut occupied, mut inside) = (0, 0);
    let (instructions, states) = sweep(&shared.segment, child, |instruction| {
        let what = format!("{what}, after instruction {instruction}");
        let standing = Snapshot::take(&shared.segment);
        assert!(leaderless::sweep(&shared.segment, &shared.schema).is_empty(), "{what}: a living participant lost its place");
        assert!(standing.is_current(&shared.segment), "{what}: a living participant was repaired after");
        occupied += usize::from(shared.free_places() != places);
        inside += usize::from(shared.segment.processes().iter().any(|slot| slot.in_operation()));
        child.bury(&shared.segment);
        shared.held.total_priority();
        let replay = ReplayView::new(&shared.segment, shared.schema.clone());
        let audit = replay.tree().expect("a tree").audit();
        assert!(audit.is_exact(), "{what}: {audit:?}");
        let contents = shared.contents();
        assert_eq!(contents.len(), CAPACITY, "{what}: {contents:?}");
        let there = contents.keys().filter(|number| own.contains(number)).count();
        assert!(added.contains(&there), "{what}: {there} of its own are there");
        assert!(shared.free_places() >= places, "{what}: a place was lost");
        add(&shared.held, 1_000..1_000 + CAPACITY as i32, &mut Vec::new());
        assert!(shared.contents().keys().all(|&number| number >= 1_000), "{what}: a slot was lost");
    });
    report(&format!("{what}: {instructions} instructions, {states} states, {occupied} with a place, {inside} inside"));
    assert!(states > 2 && occupied > 1, "{what}: {states} states, {occupied} with a place");
}

#[test]
fn a_participant_may_be_killed_after_any_instruction_of_joining_and_adding() {
    let shared = Shared::new();
    let child = Traced::start(|| {
        let held = shared.open();
        let mut slots = Vec::with_capacity(16);
        move || {
            add(&held, 100..103, &mut slots);
            std::mem::forget(held);
        }
    });
    kill_everywhere(&shared, "joining and adding", &child, 100..103, 0..=3);
}

#[test]
fn a_participant_may_be_killed_after_any_instruction_of_drawing_and_updating() {
    let shared = Shared::new();
    let child = Traced::start(|| {
        let held = shared.open();
        let mut batch = held.batch(4);
        move || {
            patience(|patience| held.sample(&mut batch.as_rows(), None, patience)).expect("a batch");
            update(&held, &[3, 5, 7], &[0.5, 20.0, 3.0]);
            std::mem::forget(held);
        }
    });
    kill_everywhere(&shared, "drawing and updating", &child, 100..103, 0..=0);
}

#[test]
fn a_participant_may_be_killed_after_any_instruction_of_leaving() {
    let shared = Shared::new();
    let child = Traced::start(|| {
        let held = shared.open();
        add(&held, 100..103, &mut Vec::new());
        update(&held, &[3], &[0.5]);
        move || drop(held)
    });
    kill_everywhere(&shared, "leaving", &child, 100..103, 3..=3);
}
