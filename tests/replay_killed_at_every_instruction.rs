//! The strongest proof: a process is killed after every single machine instruction of each operation.
//!
//! The operation runs in a traced child, one instruction at a time. Whatever a SIGKILL leaves behind at an instruction
//! is what the segment holds at that moment: so after each instruction that changed the segment the test repairs it,
//! audits it, compares it with what must be there, puts the bytes back and lets the child take the next instruction.
//! Instructions that changed no shared byte leave what the one before left. A sample of instructions is killed for
//! real, in a child of its own, as a check on that reasoning. Two deaths are swept in pairs: a second child runs
//! through its whole operation at each state that the first can leave.
#![cfg(target_arch = "x86_64")]

mod support;

use std::collections::HashMap;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use shoal::replay::{Batch, Priority, Replay, repair};
use shoal::segment::layout::REGIONS;
use shoal::segment::processes::Role;
use shoal::segment::system;
use shoal::sync::{AtomicU64, Ordering};
use support::{Identity, Run, Sizes, random};

/// A child that stands still before its operation and takes it one instruction at a time.
struct Traced {
    child: Pid,
}

impl Traced {
    /// Fork a child into `slot` and let it come to where `operation` begins.
    fn start<'r>(run: &'r Run, slot: usize, operation: &dyn Fn(&'r Run, &mut Replay<'r>, &mut Batch)) -> Self {
        let entry = run.slot(slot);
        assert!(entry.reserve(Role::Actor, slot), "slot {slot} is not free");
        let child = system::fork_child(|| {
            assert!(entry.occupy(std::process::id()));
            let mut replay = run.replay(Some(slot));
            let mut batch = Batch::new(run.payload.schema(), 5);
            // Whatever grows on first use has grown, and what the operation works on has been drawn.
            if replay.sample(&mut batch, 0.5, &mut random(11)).is_err() {
                return 1;
            }
            ptrace::traceme().expect("being traced by the parent");
            raise(Signal::SIGSTOP).expect("raise");
            operation(run, &mut replay, &mut batch);
            raise(Signal::SIGSTOP).expect("raise");
            0
        });
        let traced = Self { child: child.expect("fork") };
        let status = waitpid(traced.child, None).expect("waitpid");
        assert!(matches!(status, WaitStatus::Stopped(_, Signal::SIGSTOP)), "{status:?}");
        traced
    }

    /// Take one instruction; `false` once the operation is over.
    fn step(&self) -> bool {
        ptrace::step(self.child, None).expect("a single step");
        match waitpid(self.child, None).expect("waitpid") {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            other => panic!("the traced child came to an end: {other:?}"),
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = kill(self.child, Signal::SIGKILL);
        while waitpid(self.child, None).is_ok_and(|status| !matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..))) {}
    }
}

/// All shared bytes behind the header.
struct Snapshot {
    words: Vec<u64>,
}

fn all_words(run: &Run) -> impl Iterator<Item = &AtomicU64> {
    REGIONS.into_iter().flat_map(|region| run.segment.words(region))
}

impl Snapshot {
    fn take(run: &Run) -> Self {
        Self { words: all_words(run).map(|word| word.load(Ordering::Relaxed)).collect() }
    }

    fn is_current(&self, run: &Run) -> bool {
        all_words(run).zip(&self.words).all(|(word, &value)| word.load(Ordering::Relaxed) == value)
    }

    fn put_back(&self, run: &Run) {
        for (word, &value) in all_words(run).zip(&self.words) {
            if word.load(Ordering::Relaxed) != value {
                word.store(value, Ordering::Relaxed);
            }
        }
    }
}

/// An operation to be killed in.
struct Case {
    name: &'static str,
    fanout: usize,
    /// Transitions staged in the area of slot 0, and of slot 1, before the operation begins.
    staged: u32,
    /// Transitions that the operation itself commits at most.
    commits: u32,
    operation: fn(&'static str, usize) -> Operation,
}

type Operation = Box<dyn for<'r> Fn(&'r Run, &mut Replay<'r>, &mut Batch)>;

const CAPACITY: usize = 20;
/// Transitions that are in the replay before the operation: every slot is taken, so that operations overwrite.
const OLDER: u32 = 25;

const FIRST_LIFE: u32 = 1;
const OLD_LIFE: u32 = 9;

fn flush(_: &'static str, slot: usize) -> Operation {
    Box::new(move |run, replay, _| {
        replay.flush(run.area(slot));
    })
}

fn stage(_: &'static str, slot: usize) -> Operation {
    Box::new(move |run, _, _| {
        run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number: 0 }, Some(Priority::ONE));
    })
}

fn stage_and_flush(_: &'static str, slot: usize) -> Operation {
    Box::new(move |run, replay, _| {
        run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number: 2 }, None);
        replay.flush(run.area(slot));
    })
}

fn update(_: &'static str, _: usize) -> Operation {
    Box::new(move |_, replay, batch| {
        replay.update_priorities(batch, [2.0, f32::NAN, 0.5, 900.0, 3.0].into_iter().map(Priority::from_f32));
    })
}

const CASES: [Case; 5] = [
    Case { name: "flush", fanout: 4, staged: 3, commits: 0, operation: flush },
    Case { name: "flush without a tree", fanout: 0, staged: 3, commits: 0, operation: flush },
    Case { name: "stage", fanout: 4, staged: 0, commits: 1, operation: stage },
    Case { name: "stage and flush", fanout: 16, staged: 2, commits: 1, operation: stage_and_flush },
    Case { name: "update priorities", fanout: 4, staged: 1, commits: 0, operation: update },
];

/// A run with a full replay and with staged transitions in the first two areas.
fn prepared(case: &Case) -> Run {
    let sizes = Sizes { capacity: CAPACITY, fanout: case.fanout, processes: 3, staged_transitions: 5, network_parameters: 1, learners: 1 };
    let run = Run::new(sizes);
    let mut replay = run.replay(None);
    for number in 0..OLDER {
        run.payload.stage(run.area(2), Identity { life: OLD_LIFE, number }, Priority::from_f32(0.5 + number as f32));
        replay.flush(run.area(2));
    }
    for slot in 0..2 {
        for number in 0..case.staged {
            let priority = (number != 0).then_some(Priority::ONE);
            run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number }, priority);
        }
    }
    run
}

/// Repair after the deaths of the processes in `dead` and check that all is as it must be.
fn repair_and_check(run: &Run, case: &Case, dead: &[usize], inserted_before: u64, what: &str) {
    let mut replay = run.replay(None);
    for &slot in dead {
        let entry = run.slot(slot);
        let repaired = repair(&run.segment, &mut replay, entry, Some(run.area(slot)));
        assert!(repaired.stuck.is_empty(), "{what}: {repaired:?}");
        entry.release();
        assert_eq!(run.area(slot).pending(), 0, "{what}");
    }
    if let Some(tree) = replay.tree() {
        let audit = tree.audit();
        assert!(audit.is_exact(), "{what}: {audit:?}");
    }
    let contents = run.contents();
    assert!(contents.values().all(|&times| times == 1), "{what}: a transition is there twice: {contents:?}");
    assert_eq!(contents.len(), CAPACITY, "{what}: {contents:?}");
    let mut expected_least = 0;
    for &slot in dead {
        let there = of_life(&contents, FIRST_LIFE + slot as u32);
        let least = case.staged as usize;
        assert!((least..=least + case.commits as usize).contains(&there.len()), "{what}: {there:?} of slot {slot}");
        assert!(there.iter().copied().eq(0..there.len() as u32), "{what}: {there:?} of slot {slot}");
        expected_least += there.len() as u64;
    }
    // The count may be ahead by what a dead process had counted and not yet ticked off, never behind.
    let inserted = run.segment.control().inserted().load(Ordering::Relaxed) - inserted_before;
    assert!((expected_least..=2 * expected_least).contains(&inserted), "{what}: {inserted} for {expected_least} transitions");
    // The oldest ones gave way. A dead process's place in the order may be lost, and then an older one stays a lap longer.
    let old = of_life(&contents, OLD_LIFE);
    let oldest_spared = OLDER - CAPACITY as u32 + 2 * u32::try_from(expected_least).expect("a few");
    assert!((oldest_spared..OLDER).all(|number| old.contains(&number)), "{what}: {old:?}");
    // Area and replay work: another lap goes through every slot, one transition for one.
    let area = run.area(dead[0]);
    for number in 0..CAPACITY as u32 {
        run.payload.stage(area, Identity { life: u32::MAX, number }, None);
        assert_eq!(replay.flush(area), 1, "{what}: the dead process's area was not left empty");
    }
    assert_eq!(of_life(&run.contents(), u32::MAX).len(), CAPACITY, "{what}: slots were lost");
    assert!(replay.tree().is_none_or(|tree| tree.audit().is_exact()), "{what}");
}

fn of_life(contents: &HashMap<Identity, usize>, life: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = contents.keys().filter(|identity| identity.life == life).map(|identity| identity.number).collect();
    numbers.sort_unstable();
    numbers
}

fn inserted(run: &Run) -> u64 {
    run.segment.control().inserted().load(Ordering::Relaxed)
}

/// Let a child in `slot` take its operation instruction by instruction, and hand each different state of the segment
/// to `visit`, with the number of the instruction. Returns instructions and states.
fn sweep(run: &Run, case: &Case, slot: usize, mut visit: impl FnMut(usize)) -> (usize, usize) {
    let traced = Traced::start(run, slot, &*(case.operation)(case.name, slot));
    let (mut instructions, mut states) = (0, 0);
    let mut last: Option<Snapshot> = None;
    loop {
        if last.as_ref().is_none_or(|last| !last.is_current(run)) {
            let now = Snapshot::take(run);
            visit(instructions);
            now.put_back(run);
            last = Some(now);
            states += 1;
        }
        if !traced.step() {
            return (instructions, states);
        }
        instructions += 1;
    }
}

#[test]
fn a_kill_after_any_instruction_of_any_operation_is_repaired() {
    for case in &CASES {
        let run = prepared(case);
        let before = inserted(&run);
        let mut inside = 0;
        let (instructions, states) = sweep(&run, case, 0, |instruction| {
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
    let kills = support::count_from_environment("SHOAL_TEST_INSTRUCTION_KILLS", 25);
    for case in &CASES {
        let run = prepared(case);
        let before = inserted(&run);
        let start = Snapshot::take(&run);
        let (instructions, _) = sweep(&run, case, 0, |_| ());
        for kill in 0..kills {
            start.put_back(&run);
            let instruction = usize::try_from(kill).expect("small") * instructions / usize::try_from(kills).expect("small");
            let traced = Traced::start(&run, 0, &*(case.operation)(case.name, 0));
            for _ in 0..instruction {
                traced.step();
            }
            drop(traced);
            repair_and_check(&run, case, &[0], before, &format!("{} killed for real after instruction {instruction}", case.name));
        }
    }
}

#[test]
fn two_deaths_at_any_pair_of_states_are_repaired_in_either_order() {
    let case = &Case { name: "two flushes", fanout: 4, staged: 2, commits: 0, operation: flush };
    let run = prepared(case);
    let before = inserted(&run);
    let (mut pairs, mut turn) = (0, 0);
    sweep(&run, case, 0, |first| {
        sweep(&run, case, 1, |second| {
            turn += 1;
            let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
            end_both(&run);
            repair_and_check(&run, case, &order, before, &format!("killed after instructions {first} and {second}, repaired as {order:?}"));
            pairs += 1;
        });
    });
    assert!(pairs > 1_000, "{pairs} pairs");
    report(&format!("{pairs} pairs of deaths, all repaired"));
}

/// Insert so many transitions that every slot which nobody is writing is overwritten, and overwritten again.
fn lap(run: &Run) {
    let mut replay = run.replay(None);
    for number in 0..2 * CAPACITY as u32 + 5 {
        run.payload.stage(run.area(2), Identity { life: u32::MAX, number }, None);
        replay.flush(run.area(2));
    }
}

/// Numbers of the transitions of slot 0 that readers can draw now.
fn drawable(run: &Run, case: &Case) -> Vec<u32> {
    let replay = run.replay(None);
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
    assert!(run.replay(None).tree().is_none_or(|tree| tree.audit().is_exact()), "{what}");
}

#[test]
fn nothing_is_lost_when_others_overtake_a_process_that_is_killed_after_any_instruction() {
    for case in &CASES[..2] {
        let run = prepared(case);
        sweep(&run, case, 0, |instruction| {
            let overtaken = drawable(&run, case);
            lap(&run);
            let mut replay = run.replay(None);
            assert!(repair(&run.segment, &mut replay, run.slot(0), Some(run.area(0))).stuck.is_empty());
            check_overtaken(&run, case, &overtaken, &format!("{} overtaken and killed after instruction {instruction}", case.name));
        });
    }
}

#[test]
fn a_process_that_others_overtake_after_any_instruction_goes_on_correctly() {
    for case in &CASES[..2] {
        let run = prepared(case);
        let start = Snapshot::take(&run);
        let mut instructions = Vec::new();
        sweep(&run, case, 0, |instruction| instructions.push(instruction));
        for instruction in instructions {
            start.put_back(&run);
            let traced = Traced::start(&run, 0, &*(case.operation)(case.name, 0));
            for _ in 0..instruction {
                traced.step();
            }
            let overtaken = drawable(&run, case);
            lap(&run);
            ptrace::cont(traced.child, None).expect("letting the child go on");
            let status = waitpid(traced.child, None).expect("waitpid");
            assert!(matches!(status, WaitStatus::Stopped(_, Signal::SIGSTOP)), "{status:?}");
            assert!(!run.slot(0).in_operation());
            check_overtaken(&run, case, &overtaken, &format!("{} overtaken after instruction {instruction}", case.name));
        }
    }
}

/// Let both slots name a process that the kernel knows to be gone, as they would after two kills: the traced children
/// merely stand still.
fn end_both(run: &Run) {
    for slot in 0..2 {
        let words = &run.segment.words(shoal::segment::Region::Processes)[slot * 560..];
        // Start time zero and a process id beyond the kernel's largest.
        words[0].store(words[0].load(Ordering::Relaxed) | 0x7fff_ffff, Ordering::Relaxed);
        assert!(shoal::segment::processes::has_exited(run.slot(slot).pid(), run.slot(slot).start_time()));
    }
}

/// What a sweep covered, for whoever runs it with `--no-capture`.
fn report(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
