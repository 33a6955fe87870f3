//! A shared replay whose participants stop, die, leave and empty it at the wrong moment.
#![cfg(target_arch = "x86_64")]

use std::fs::File;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use shoal::replay::{SampleError, leaderless};
use shoal::segment::control::RunState;
use shoal::segment::processes::{Role, SlotState};
use shoal::segment::shared_words::{load_bytes, store_bytes};
use shoal::segment::{Region, object, system};
use shoal::standalone::{Patience, ReplayError, ReplayHandle, Stale};
use shoal::sync::{AtomicBool, Ordering};

use crate::support::forked::shared::{CAPACITY, OLDER, Shared, add, options, patience, update};
use crate::support::forked::traced::{Snapshot, Traced, sweep};
use crate::support::forked::{Run, Sizes, wait_until};
use crate::support::skipped;

/// A participant that stands still after closing the gate to repair after another one.
fn stopped_behind_the_gate(shared: &Shared) -> Traced {
    let repairer = Traced::start(|| {
        let held = shared.open();
        move || _ = held.total_priority()
    });
    let victim = Traced::start(|| {
        let held = shared.open();
        move || update(&held, &[3, 5, 7], &[0.5, 20.0, 3.0])
    });
    victim.step_until(|| shared.segment.processes().iter().any(|slot| slot.in_operation()));
    drop(victim);
    repairer.step_until(|| shared.segment.control().gate().load(Ordering::Relaxed) != 0);
    repairer
}

fn briefly<T>(work: impl FnOnce(Patience<'_>) -> T) -> T {
    work(Patience::new(Some(Duration::from_millis(30)), &mut || true))
}

fn interrupted<T>(work: impl FnOnce(Patience<'_>) -> T) -> T {
    work(Patience::new(None, &mut || false))
}

#[test]
fn whoever_meets_a_stopped_repairer_is_told_so_and_goes_on_once_it_does() {
    let shared = Shared::new();
    let number = 5i32.to_ne_bytes();
    let repairer = stopped_behind_the_gate(&shared);
    let is_told = |result: Result<(), ReplayError>| {
        let error = result.expect_err("the gate is closed");
        assert!(matches!(error, ReplayError::Repairing { pid } if pid == repairer.pid()), "{error}");
        assert!(error.to_string().contains(&format!("kill -CONT {}", repairer.pid())), "{error}");
    };
    is_told(briefly(|patience| shared.held.add(&[&number], 1, None, &[], patience, &mut Vec::new())));
    is_told(briefly(|patience| shared.held.update(&[0], None, &[2.0], Stale::Ignore, patience).map(|_| ())));
    let given_up = interrupted(|patience| shared.held.add(&[&number], 1, None, &[], patience, &mut Vec::new()));
    assert!(matches!(given_up, Err(ReplayError::Interrupted)), "{given_up:?}");
    assert_eq!(shared.held.inserted(), OLDER as u64, "nothing was added");
    repairer.finish();
    add(&shared.held, 100..103, &mut Vec::new());
    assert_eq!(shared.contents().keys().filter(|number| (100..103).contains(*number)).count(), 3);
}

#[test]
fn whoever_meets_a_dead_repairer_takes_over() {
    let shared = Shared::new();
    drop(stopped_behind_the_gate(&shared));
    assert_ne!(shared.segment.control().gate().load(Ordering::Relaxed), 0);
    add(&shared.held, 100..103, &mut Vec::new());
    assert_eq!(shared.segment.control().gate().load(Ordering::Relaxed), 0);
    assert!(shared.segment.processes().iter().all(|slot| !slot.in_operation()));
}

#[test]
fn a_repairer_is_not_taken_for_dead_by_who_can_open_no_files() {
    let shared = Shared::new();
    let repairer = stopped_behind_the_gate(&shared);
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 64, hard).expect("a lower limit");
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty() && File::open("/dev/null").is_err());
    let before = Snapshot::take(&shared.segment);
    assert!(leaderless::sweep(&shared.segment, &shared.schema).is_empty());
    assert!(before.is_current(&shared.segment), "two repair at once");
    drop(files);
    repairer.finish();
    add(&shared.held, 100..103, &mut Vec::new());
}

#[test]
fn a_repair_that_somebody_has_put_off_rests_and_does_not_close_the_gate_again_and_again() {
    let shared = Shared::for_participants(3);
    let inside = || shared.segment.processes().iter().filter(|slot| slot.in_operation()).count();
    let stopped = Traced::start(|| {
        let held = shared.open();
        let mut slots = Vec::with_capacity(4);
        move || {
            add(&held, 100..101, &mut slots);
            std::mem::forget(held);
        }
    });
    stopped.step_until(|| inside() == 1);
    let victim = Traced::start(|| {
        let held = shared.open();
        move || update(&held, &[3, 5, 7], &[0.5, 20.0, 3.0])
    });
    victim.step_until(|| inside() == 2);
    drop(victim);
    let rests_until = shared.segment.control().repair_not_before_ns();
    assert!(leaderless::sweep(&shared.segment, &shared.schema).is_empty(), "a living participant is inside an operation");
    assert_ne!(rests_until.swap(u64::MAX, Ordering::SeqCst), 0);
    // A place in which nothing is left undone is free again at once: for that nobody has to leave an operation.
    let gone = system::fork_child(|| {
        let held = shared.open();
        add(&held, 102..103, &mut Vec::new());
        std::mem::forget(held);
        0
    });
    assert!(system::wait_for_children(&[gone.expect("fork")]));
    assert_eq!(leaderless::sweep(&shared.segment, &shared.schema).len(), 1);
    // It would succeed now, but whoever looks does not try.
    stopped.finish();
    let before = Snapshot::take(&shared.segment);
    assert!(leaderless::sweep(&shared.segment, &shared.schema).is_empty() && before.is_current(&shared.segment));
    rests_until.store(0, Ordering::SeqCst);
    assert_eq!(leaderless::sweep(&shared.segment, &shared.schema).len(), 1);
    assert_eq!(inside(), 0);
}

#[test]
fn a_child_in_another_pid_namespace_takes_nobody_for_dead_and_is_told_so() {
    let shared = Shared::new();
    let child = system::fork_child(|| {
        let alone = CloneFlags::CLONE_NEWPID;
        if unshare(alone).or_else(|_| unshare(alone | CloneFlags::CLONE_NEWUSER)).is_err() {
            skipped::because("this machine allows no PID namespaces");
            return 0;
        }
        let elsewhere = system::fork_survivor(|| {
            let before = Snapshot::take(&shared.segment);
            shared.held.total_priority();
            let number = 5i32.to_ne_bytes();
            let added = briefly(|patience| shared.held.add(&[&number], 1, None, &[], patience, &mut Vec::new()));
            assert!(before.is_current(&shared.segment), "a living participant was repaired after");
            assert!(matches!(added, Err(ReplayError::Segment(_))), "{added:?}");
            0
        });
        i32::from(!system::wait_for_children(&[elsewhere.expect("fork")]))
    });
    assert!(system::wait_for_children(&[child.expect("fork")]));
    add(&shared.held, 100..103, &mut Vec::new());
}

#[test]
fn an_operation_waits_at_the_gate_for_as_long_as_it_is_closed() {
    const LOOKS: usize = 5_000;
    let shared = Shared::new();
    let gate = shared.segment.control().gate();
    // Closed, but not with the value that a waiting process sleeps on: it looks without pause.
    gate.store(2, Ordering::SeqCst);
    let mut looks = 0;
    let slot = shared.segment.processes().slot(0);
    drop(slot.begin_operation(shared.segment.control(), || {
        looks += 1;
        if looks == LOOKS {
            gate.store(0, Ordering::SeqCst);
        }
    }));
    assert_eq!(looks, LOOKS);
}

#[test]
fn names_of_before_it_was_emptied_change_nothing() {
    let shared = Shared::new();
    let held = &shared.held;
    let mut batch = held.batch(4);
    patience(|patience| held.sample(&mut batch.as_rows(), None, patience)).expect("a batch");
    let slots: Vec<i64> = batch.slots.iter().map(|&slot| slot as i64).collect();
    let generations: Vec<i64> = batch.generations.iter().map(|&generation| generation.cast_signed()).collect();
    patience(|patience| held.clear(patience)).expect("nobody else is there");
    let errors = vec![9.0; slots.len()];
    let update = |generations, stale| patience(|patience| held.update(&slots, generations, &errors, stale, patience));
    let refused = update(Some(&generations), Stale::Refuse);
    assert!(matches!(refused, Err(ReplayError::Stale { stale: 4, .. })), "{refused:?}");
    assert_eq!(update(Some(&generations), Stale::Ignore).expect("stale names are left out"), 4);
    for refused in [update(None, Stale::Refuse), update(None, Stale::Ignore)] {
        assert!(matches!(refused, Err(ReplayError::EmptySlot { inserted: 0, .. })), "{refused:?}");
    }
    assert_eq!((held.total_priority(), held.len()), (0.0, 0));
    let nothing = patience(|patience| held.sample(&mut batch.as_rows(), None, patience));
    assert!(matches!(nothing, Err(ReplayError::Sample(SampleError::Empty))), "{nothing:?}");
    // The same slots, written anew.
    add(held, 0..CAPACITY as i32, &mut Vec::new());
    let total = held.total_priority();
    let stale = update(Some(&generations), Stale::Refuse);
    assert!(matches!(stale, Err(ReplayError::Stale { stale, .. }) if stale == slots.len()), "{stale:?}");
    assert_eq!(update(Some(&generations), Stale::Ignore).expect("stale names are left out"), slots.len() as u64);
    assert_eq!(held.total_priority(), total);
    assert_eq!(update(None, Stale::Refuse).expect("what is there now"), 0);
}

#[test]
fn whatever_a_replay_holds_when_it_is_saved_can_be_drawn_when_it_is_loaded() {
    let shared = Shared::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("replay");
    let writer = Traced::start(|| {
        let held = shared.open();
        let mut slots = Vec::with_capacity(16);
        add(&held, 100..101, &mut slots);
        move || {
            add(&held, 101..104, &mut slots);
            std::mem::forget(held);
        }
    });
    let mut between = 0;
    sweep(&shared.segment, &writer, |instruction| {
        let without = shared.held.priorities(None).expect("priorities").iter().filter(|&&priority| priority == 0.0).count();
        between += usize::from(without > 0);
        shared.held.save(&path).expect("a file");
        let loaded = ReplayHandle::load(&path, false, None, Some(3)).expect("the same file");
        let saved = (0..CAPACITY as i64).filter(|&slot| {
            let mut batch = loaded.batch(1);
            loaded.get(&[slot], &mut batch.as_rows()).is_ok()
        });
        for slot in saved {
            let priority = loaded.priorities(Some(&[slot])).expect("priorities")[0];
            assert!(priority > 0.0, "instruction {instruction}: slot {slot} is there and can never be drawn");
        }
    });
    assert!(between > 3, "{between} states in which a priority is missing");
}

#[test]
fn an_opened_replay_is_there_for_others_too_whenever_the_last_one_leaves() {
    let (mut refused, mut opened) = (0, 0);
    for stops in 0.. {
        let run = Run::new(Sizes::default());
        let outcome = run.scratch(0);
        let name_words = &run.segment.words(Region::LearnerState)[1..16];
        // Forked before there is a replay: a child of who has one would have its lock too, and leave later.
        let opener = Traced::start(|| {
            move || {
                let mut name = [0; 120];
                load_bytes(name_words, &mut name);
                let name = String::from_utf8_lossy(&name);
                let opened = ReplayHandle::open(name.trim_end_matches('\0'), Some(1));
                outcome.store(if opened.is_ok() { OPENED } else { REFUSED }, Ordering::SeqCst);
                std::mem::forget(opened);
            }
        });
        let held = ReplayHandle::create(options(), true, Some(1)).expect("a small replay");
        let name = held.name().expect("a shared replay").to_owned();
        let mut bytes = [0; 120];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        store_bytes(name_words, &bytes);
        let is_running = (0..stops).all(|_| opener.next_system_call());
        drop(held);
        if is_running {
            opener.finish();
        }
        let is_there = std::path::Path::new("/dev/shm").join(&name[1..]).exists();
        match outcome.load(Ordering::SeqCst) {
            OPENED => assert!(is_there, "opened after {stops} stops, and nobody else can find it"),
            other => assert!(other == REFUSED && !is_there, "{other} after {stops} stops"),
        }
        opened += u32::from(is_there);
        refused += u32::from(!is_there);
        drop(opener);
        object::remove_if_dead(&name);
        if !is_running {
            break;
        }
    }
    assert!(refused > 3 && opened > 3, "{refused} refused, {opened} opened");
}

const OPENED: u64 = 1;
const REFUSED: u64 = 2;

#[test]
fn a_tree_that_is_not_exact_after_a_repair_is_trained_on_by_nobody_until_it_is_emptied() {
    let shared = Shared::new();
    let root = shared.segment.words(Region::Tree).iter().rposition(|word| word.load(Ordering::Relaxed) != 0).expect("a root");
    let repairs = || shared.segment.control().repairs().load(Ordering::Relaxed);
    let spoilt = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A process that is no participant, or a broken one, writes into the tree and never stops.
        scope.spawn(|| {
            while !spoilt.load(Ordering::Relaxed) {
                shared.segment.words(Region::Tree)[root].fetch_add(1, Ordering::Relaxed);
            }
        });
        wait_until(|| {
            let before = repairs();
            let slot = shared.segment.processes().iter().find(|slot| slot.state() == SlotState::Free).expect("a place");
            let generation = slot.reserve(Role::Participant, slot.index()).expect("a free place");
            assert!(slot.occupy(0x7fff_ffff, generation));
            slot.announce_repair();
            assert_eq!(leaderless::sweep(&shared.segment, &shared.schema), [slot.index()]);
            assert_eq!(repairs(), before + 1);
            shared.segment.control().run_state() == RunState::Poisoned
        });
        spoilt.store(true, Ordering::Relaxed);
    });
    let held = &shared.held;
    let number = 5i32.to_ne_bytes();
    let added = patience(|patience| held.add(&[&number], 1, None, &[], patience, &mut Vec::new()));
    assert!(matches!(added, Err(ReplayError::Inexact)), "{added:?}");
    let updated = patience(|patience| held.update(&[0], None, &[1.0], Stale::Ignore, patience));
    assert!(matches!(updated, Err(ReplayError::Inexact)), "{updated:?}");
    let mut batch = held.batch(2);
    let drawn = patience(|patience| held.sample(&mut batch.as_rows(), None, patience));
    assert!(matches!(drawn, Err(ReplayError::Inexact)), "{drawn:?}");
    patience(|patience| held.clear(patience)).expect("nobody else is there");
    add(held, 0..CAPACITY as i32, &mut Vec::new());
    assert!(patience(|patience| held.sample(&mut batch.as_rows(), None, patience)).is_ok());
}
