//! The strongest proof: a process is killed after every single machine instruction of each operation.
//!
//! The operation runs in a traced child, one instruction at a time. Whatever a SIGKILL leaves behind at an instruction
//! is what the segment holds at that moment: so after each instruction that changed the segment the test repairs it,
//! audits it, compares it with what must be there, puts the bytes back and lets the child take the next instruction.
//! Instructions that changed no shared byte leave what the one before left. A sample of instructions is killed for
//! real, in a child of its own, as a check on that reasoning. Two deaths are swept in pairs: a second child runs
//! through its whole operation at each state that the first can leave.
#![cfg(target_arch = "x86_64")]

use shoal::replay::{Batch, repair};

use crate::support::forked::operations::{CAPACITY, CASES, Case, FIRST_LIFE, SHORT_FLUSH, SURVIVOR, inserted, of_life};
use crate::support::forked::traced::{Snapshot, report, sweep};
use crate::support::forked::{Identity, Run, sampled_kills};

/// Repair after the deaths of the processes in `dead`, as a supervisor does, and check that all is as it must be.
fn repair_and_check(run: &Run, case: &Case, dead: &[usize], before: u64, what: &str) {
    for &slot in dead {
        let entry = run.slot(slot);
        let repaired = repair(&run.segment, run.payload.schema(), entry);
        assert!(repaired.stuck.is_empty(), "{what}: {repaired:?}");
        entry.release();
    }
    case.assert_repaired(run, dead, 1, before, what);
}

#[test]
fn a_kill_after_any_instruction_of_any_operation_is_repaired() {
    for case in &CASES {
        let run = case.prepared();
        let before = inserted(&run);
        let mut inside = 0;
        let (instructions, states) = sweep(&run.segment, &case.start(&run, 0), |instruction| {
            inside += usize::from(run.slot(0).in_operation());
            repair_and_check(&run, case, &[0], before, &format!("{} killed after instruction {instruction}", case.name));
        });
        assert!(instructions > 100 && states > 5, "{}: {instructions} instructions, {states} states", case.name);
        assert!(inside > 5 || case.name == "stage", "{}: {inside} states inside the operation", case.name);
        report(&format!("{}: {instructions} instructions, {states} different states, all repaired", case.name));
    }
}

#[test]
fn real_kills_after_single_instructions_are_repaired_like_the_states_they_leave() {
    let kills = sampled_kills();
    for case in &CASES {
        let run = case.prepared();
        let before = inserted(&run);
        let start = Snapshot::take(&run.segment);
        let (instructions, _) = sweep(&run.segment, &case.start(&run, 0), |_| ());
        for kill in 0..kills {
            start.put_back(&run.segment);
            let instruction = usize::try_from(kill).expect("small") * instructions / usize::try_from(kills).expect("small");
            let traced = case.start(&run, 0);
            traced.take_steps(instruction);
            drop(traced);
            repair_and_check(&run, case, &[0], before, &format!("{} killed for real after instruction {instruction}", case.name));
        }
    }
}

#[test]
fn two_deaths_at_any_pair_of_states_are_repaired_in_either_order() {
    let case = &SHORT_FLUSH;
    let run = case.prepared();
    let before = inserted(&run);
    let (mut pairs, mut turn) = (0, 0);
    let first = case.start(&run, 0);
    sweep(&run.segment, &first, |first_death| {
        let second = case.start(&run, 1);
        sweep(&run.segment, &second, |second_death| {
            turn += 1;
            let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
            first.bury(&run.segment);
            second.bury(&run.segment);
            let what = format!("killed after instructions {first_death} and {second_death}, repaired as {order:?}");
            repair_and_check(&run, case, &order, before, &what);
            pairs += 1;
        });
    });
    assert!(pairs > 1_000, "{pairs} pairs");
    report(&format!("{pairs} pairs of deaths, all repaired"));
}

/// Insert so many transitions that every slot which nobody is writing is overwritten, and overwritten again.
fn lap(run: &Run) {
    let mut replay = run.replay(SURVIVOR);
    for number in 0..2 * CAPACITY as u32 + 5 {
        run.payload.stage(run.area(SURVIVOR), Identity { life: u32::MAX, number }, None);
        replay.flush(run.area(SURVIVOR));
    }
}

/// Numbers of the transitions of slot 0 that readers can draw now.
fn drawable(run: &Run, case: &Case) -> Vec<u32> {
    let replay = run.view();
    let mut batch = Batch::new(run.payload.schema(), 1);
    let ready = (0..CAPACITY).filter_map(|slot| {
        replay.reader().read(slot, &mut batch.as_rows(), 0, &mut Vec::new()).ok().map(|_| run.payload.verify(&batch, 0))
    });
    ready.filter(|identity| identity.life == FIRST_LIFE && identity.number < case.staged).map(|identity| identity.number).collect()
}

/// Check a quiet run in which slot 0's flush was overtaken by a lap when readers could draw `overtaken` of it.
fn check_overtaken(run: &Run, case: &Case, overtaken: &[u32], what: &str) {
    let contents = run.contents();
    assert!(contents.values().all(|&times| times == 1), "{what}: a transition is there twice: {contents:?}");
    let there = of_life(&contents, FIRST_LIFE);
    let lost: Vec<u32> = (0..case.staged).filter(|number| !there.contains(number) && !overtaken.contains(number)).collect();
    assert!(lost.is_empty(), "{what}: {lost:?} are lost, {there:?} are there, {overtaken:?} were overwritten");
    assert_eq!(run.area(0).pending(), 0, "{what}");
    assert!(run.view().tree().is_none_or(|tree| tree.audit().is_exact()), "{what}");
}

#[test]
fn nothing_is_lost_when_others_overtake_a_process_that_is_killed_after_any_instruction() {
    for case in &CASES[..2] {
        let run = case.prepared();
        sweep(&run.segment, &case.start(&run, 0), |instruction| {
            let overtaken = drawable(&run, case);
            lap(&run);
            assert!(repair(&run.segment, run.payload.schema(), run.slot(0)).stuck.is_empty());
            check_overtaken(&run, case, &overtaken, &format!("{} overtaken and killed after instruction {instruction}", case.name));
        });
    }
}

#[test]
fn a_process_that_others_overtake_after_any_instruction_goes_on_correctly() {
    for case in &CASES[..2] {
        let run = case.prepared();
        let start = Snapshot::take(&run.segment);
        let mut instructions = Vec::new();
        sweep(&run.segment, &case.start(&run, 0), |instruction| instructions.push(instruction));
        for instruction in instructions {
            start.put_back(&run.segment);
            let traced = case.start(&run, 0);
            traced.take_steps(instruction);
            let overtaken = drawable(&run, case);
            lap(&run);
            traced.finish();
            assert!(!run.slot(0).in_operation());
            check_overtaken(&run, case, &overtaken, &format!("{} overtaken after instruction {instruction}", case.name));
        }
    }
}
