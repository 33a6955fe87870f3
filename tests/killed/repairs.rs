//! A process that repairs may be killed too: after every machine instruction of a repair, of emptying a replay, and of
//! finishing either after another one's death. The next process must leave the replay exact, with every transition
//! there once and every slot in use.
//!
//! As in `replay_at_every_instruction`: what a SIGKILL leaves behind at an instruction is what the segment holds
//! there. `SHOAL_TEST_STATES` is how many states of the first death are looked at, out of all that it can leave.
#![cfg(target_arch = "x86_64")]

use shoal::replay::{Batch, Priority, leaderless};
use shoal::sync::Ordering;

use crate::support::forked::operations::{
    CAPACITY, CASES, Case, FIRST_LIFE, OLDER, SHORT_FLUSH, SURVIVOR, assert_works, inserted, of_life,
};
use crate::support::forked::traced::{Snapshot, Traced, report, sweep};
use crate::support::forked::{Run, count_from_environment, random, sampled_kills};

/// Repair as a participant does that finds deaths.
fn repair_after_the_dead(run: &Run) -> Vec<usize> {
    leaderless::sweep(&run.segment, run.payload.schema())
}

/// A process that stands still before it repairs after the dead.
fn repairer(run: &Run) -> Traced {
    Traced::start(|| || drop(repair_after_the_dead(run)))
}

/// A process that stands still before it empties the replay.
fn emptier(run: &Run) -> Traced {
    Traced::start(|| || assert!(leaderless::clear(&run.segment, run.payload.schema()).is_ok()))
}

/// The numbers of `count` states out of `states`, the first and the last among them.
fn spread(states: usize, count: u64) -> Vec<usize> {
    let count = usize::try_from(count).expect("a count").clamp(2, states.max(2));
    (0..count).map(|index| index * (states - 1) / (count - 1)).collect()
}

/// How many states the operation of a child goes through. The segment is as before afterwards.
fn states_of(run: &Run, start: impl FnOnce(&Run) -> Traced) -> usize {
    let before = Snapshot::take(&run.segment);
    let (_, states) = sweep(&run.segment, &start(run), |_| ());
    before.put_back(&run.segment);
    states
}

/// Let a process die in `count` of all the states that it goes through, and call `visit` with the segment in each, and with
/// the instruction after which it died.
fn at_some_states(run: &Run, count: u64, start: impl Fn(&Run) -> Traced, mut visit: impl FnMut(usize)) {
    let chosen = spread(states_of(run, &start), count);
    let (victim, mut state) = (start(run), 0);
    sweep(&run.segment, &victim, |instruction| {
        if chosen.contains(&state) {
            victim.bury(&run.segment);
            visit(instruction);
        }
        state += 1;
    });
}

/// Let `process` die in every state that it goes through, and repair after it each time; then call `visit` as above.
/// Returns instructions and states.
fn repaired_at_every_state(run: &Run, process: &Traced, mut visit: impl FnMut(usize)) -> (usize, usize) {
    sweep(&run.segment, process, |instruction| {
        process.bury(&run.segment);
        repair_after_the_dead(run);
        visit(instruction);
    })
}

/// Let the process of `case` in slot 0 die in `count` of all the states that it goes through.
fn at_deaths(run: &Run, case: &Case, count: u64, mut visit: impl FnMut(&str)) {
    let name = case.name;
    at_some_states(run, count, |run| case.start(run, 0), |instruction| visit(&format!("{name} killed after instruction {instruction}")));
}

#[test]
fn a_repair_that_is_killed_after_any_instruction_is_finished_by_the_next() {
    let count = count_from_environment("SHOAL_TEST_STATES", 4);
    for case in &CASES {
        let run = case.prepared();
        let before = inserted(&run);
        let (mut instructions, mut states) = (0, 0);
        at_deaths(&run, case, count, |death| {
            let swept = repaired_at_every_state(&run, &repairer(&run), |instruction| {
                case.assert_repaired(&run, &[0], 2, before, &format!("{death}, its repairer after instruction {instruction}"));
            });
            (instructions, states) = (instructions + swept.0, states + swept.1);
        });
        report(&format!("{}: {instructions} instructions of repairs, {states} different states, all repaired", case.name));
        assert!(states > 20, "{}: {states} states", case.name);
    }
}

#[test]
fn two_repairers_that_are_killed_one_after_the_other_are_repaired_after() {
    let case = &SHORT_FLUSH;
    let run = case.prepared();
    let before = inserted(&run);
    let mut pairs = 0;
    at_deaths(&run, case, 3, |death| {
        let count = count_from_environment("SHOAL_TEST_STATES", 4);
        at_some_states(&run, count, repairer, |first| {
            repaired_at_every_state(&run, &repairer(&run), |second| {
                let what = format!("{death}, its repairers after instructions {first} and {second}");
                case.assert_repaired(&run, &[0], 3, before, &what);
                pairs += 1;
            });
        });
    });
    report(&format!("{pairs} pairs of repairers killed, all repaired"));
    assert!(pairs > 100, "{pairs} pairs");
}

#[test]
fn a_repair_after_two_deaths_that_is_killed_after_any_instruction_is_finished_by_the_next() {
    let case = &SHORT_FLUSH;
    let run = case.prepared();
    let before = inserted(&run);
    let mut states = 0;
    at_deaths(&run, case, 3, |first_death| {
        let start = |run: &Run| case.start(run, 1);
        at_some_states(&run, 4, start, |second_death| {
            let swept = repaired_at_every_state(&run, &repairer(&run), |instruction| {
                let what = format!("{first_death}, another after {second_death}, their repairer after instruction {instruction}");
                case.assert_repaired(&run, &[0, 1], 2, before, &what);
            });
            states += swept.1;
        });
    });
    report(&format!("{states} states of repairs after two deaths, all repaired"));
    assert!(states > 200, "{states} states");
}

#[test]
fn real_kills_of_a_repairer_are_repaired_like_the_states_they_leave() {
    let kills = sampled_kills();
    let case = &CASES[0];
    let run = case.prepared();
    let before = inserted(&run);
    at_deaths(&run, case, 3, |death| {
        let start = Snapshot::take(&run.segment);
        let (instructions, _) = sweep(&run.segment, &repairer(&run), |_| ());
        for kill in 0..kills {
            start.put_back(&run.segment);
            let instruction = usize::try_from(kill).expect("small") * instructions / usize::try_from(kills).expect("small");
            let repairer = repairer(&run);
            repairer.take_steps(instruction);
            drop(repairer);
            repair_after_the_dead(&run);
            case.assert_repaired(&run, &[0], 2, before, &format!("{death}, its repairer for real after instruction {instruction}"));
        }
    });
}

/// Names of transitions that were drawn before the replay was emptied.
fn drawn(run: &Run) -> Batch {
    let mut batch = Batch::new(run.payload.schema(), 5);
    run.sampler().sample(&mut batch, 0.5, &mut random(7)).expect("a full replay");
    batch
}

/// Check a replay that may have been emptied, wholly or not at all. Returns whether it was.
fn assert_whole_or_empty(run: &Run, drawn: &Batch, what: &str) -> bool {
    assert_eq!(run.segment.control().gate().load(Ordering::Relaxed), 0, "{what}: the gate is closed");
    let mut replay = run.replay(SURVIVOR);
    let is_exact = || run.view().tree().is_none_or(|tree| tree.audit().is_exact());
    assert!(is_exact(), "{what}: {:?}", replay.tree().map(|tree| tree.audit()));
    let contents = run.contents();
    if contents.is_empty() {
        let control = run.segment.control();
        let counts = [control.claimed(), control.inserted(), control.sampled(), control.largest_priority()];
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 0), "{what}: not all counts are zero");
        assert_eq!(replay.len(), 0, "{what}");
        let stale = replay.update_named(&drawn.slots, &drawn.generations, std::iter::repeat_n(Some(Priority::ONE), drawn.rows()));
        if let Some(tree) = replay.tree() {
            assert_eq!(stale, drawn.rows() as u64, "{what}: a name of before the emptying is valid");
            assert_eq!(tree.total(), 0, "{what}: an empty replay has priorities");
            assert!((0..CAPACITY).all(|slot| replay.leaf_tag(slot).is_none()), "{what}: a leaf of an empty slot belongs to somebody");
        }
    } else {
        assert_eq!(contents.len(), CAPACITY, "{what}: {contents:?}");
        assert!(contents.values().all(|&times| times == 1), "{what}: a transition is there twice: {contents:?}");
    }
    assert_works(run, SURVIVOR, what);
    contents.is_empty()
}

#[test]
fn an_emptying_that_is_killed_after_any_instruction_is_finished_or_never_began() {
    for case in &CASES[..2] {
        let run = case.prepared();
        let names = drawn(&run);
        let (mut empty, mut whole) = (0, 0);
        let (instructions, states) = repaired_at_every_state(&run, &emptier(&run), |instruction| {
            let what = format!("emptying killed after instruction {instruction}");
            if assert_whole_or_empty(&run, &names, &what) { empty += 1 } else { whole += 1 }
        });
        report(&format!("emptying: {instructions} instructions, {states} states: {whole} whole, {empty} empty"));
        assert!(whole > 1 && empty > CAPACITY, "{whole} whole, {empty} empty");
    }
}

#[test]
fn whoever_finishes_an_emptying_may_be_killed_after_any_instruction_as_well() {
    let case = &CASES[0];
    let run = case.prepared();
    let names = drawn(&run);
    let count = count_from_environment("SHOAL_TEST_STATES", 4) + 2;
    let mut pairs = 0;
    at_some_states(&run, count, emptier, |first| {
        let was_announced = run.segment.control().clearing().load(Ordering::Relaxed) != 0;
        repaired_at_every_state(&run, &repairer(&run), |second| {
            let what = format!("emptying killed after instruction {first}, who finished it after {second}");
            assert!(assert_whole_or_empty(&run, &names, &what) || !was_announced, "{what}: it was announced and is not empty");
            pairs += 1;
        });
    });
    report(&format!("{pairs} pairs of deaths while emptying, all finished"));
    assert!(pairs > 50, "{pairs} pairs");
}

#[test]
fn what_the_dead_had_staged_is_emptied_with_the_rest() {
    let case = &CASES[0];
    let run = case.prepared();
    at_deaths(&run, case, 12, |death| {
        let names = drawn(&run);
        assert!(leaderless::clear(&run.segment, run.payload.schema()).is_ok(), "{death}");
        assert!(run.contents().is_empty(), "{death}: {:?}", run.contents());
        assert_eq!(run.area(0).pending(), 0, "{death}");
        assert!(assert_whole_or_empty(&run, &names, death));
    });
}

#[test]
fn a_replay_that_was_emptied_fills_again_from_the_first_slot() {
    let case = &CASES[0];
    let run = case.prepared();
    assert!(leaderless::clear(&run.segment, run.payload.schema()).is_ok());
    let mut replay = run.replay(0);
    assert_eq!(replay.flush(run.area(0)), 3);
    assert_eq!((replay.len(), inserted(&run)), (3, 3));
    assert_eq!(of_life(&run.contents(), FIRST_LIFE), [0, 1, 2]);
    assert!((0..3).all(|slot| replay.store().word(slot).is_ready()), "{OLDER} were there before");
}
