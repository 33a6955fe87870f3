//! Operations to be killed in, and what must be there once somebody has repaired.

use std::collections::HashMap;

use shoal::replay::{Batch, Priority, Replay};
use shoal::segment::processes::Role;
use shoal::sync::Ordering;

use super::traced::Traced;
use super::{Identity, Run, Sizes, random};

/// An operation to be killed in.
pub struct Case {
    /// Name of the case in messages.
    pub name: &'static str,
    /// Children per node of the tree; 0 for none.
    pub fanout: usize,
    /// Transitions staged in the area of slot 0, and of slot 1, before the operation begins.
    pub staged: u32,
    /// Transitions that the operation itself commits at most.
    pub commits: u32,
    operation: fn(usize) -> Operation,
}

type Operation = Box<dyn for<'r> Fn(&'r Run, &mut Replay<'r>, &mut Batch)>;

/// Transitions that fit.
pub const CAPACITY: usize = 20;
/// Transitions that are in the replay before the operation: every slot is taken, so that operations overwrite.
pub const OLDER: u32 = 25;
/// Slot of the process that inserts the rows that are there before, and that goes on when others are dead.
pub const SURVIVOR: usize = 2;

/// Life of what slot 0 writes; slot 1 has the next one.
pub const FIRST_LIFE: u32 = 1;
/// Life of the rows that are there before.
pub const OLD_LIFE: u32 = 9;

fn flush(slot: usize) -> Operation {
    Box::new(move |run, replay, _| {
        replay.flush(run.area(slot));
    })
}

fn stage(slot: usize) -> Operation {
    Box::new(move |run, _, _| {
        run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number: 0 }, Some(Priority::ONE));
    })
}

fn stage_and_flush(slot: usize) -> Operation {
    Box::new(move |run, replay, _| {
        run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number: 2 }, None);
        replay.flush(run.area(slot));
    })
}

fn update(_: usize) -> Operation {
    Box::new(move |_, replay, batch| {
        replay.update_priorities(batch, [2.0, f32::NAN, 0.5, 900.0, 3.0].into_iter().map(Priority::from_f32));
    })
}

/// All of them.
pub const CASES: [Case; 5] = [
    Case { name: "flush", fanout: 4, staged: 3, commits: 0, operation: flush },
    Case { name: "flush without a tree", fanout: 0, staged: 3, commits: 0, operation: flush },
    Case { name: "stage", fanout: 4, staged: 0, commits: 1, operation: stage },
    Case { name: "stage and flush", fanout: 16, staged: 2, commits: 1, operation: stage_and_flush },
    Case { name: "update priorities", fanout: 4, staged: 1, commits: 0, operation: update },
];

/// A flush of fewer transitions, where pairs of deaths are looked at.
pub const SHORT_FLUSH: Case = Case { name: "short flush", fanout: 4, staged: 2, commits: 0, operation: flush };

impl Case {
    /// A run with a full replay and with staged transitions in the first two areas.
    pub fn prepared(&self) -> Run {
        let run = Run::new(Sizes {
            capacity: CAPACITY,
            fanout: self.fanout,
            processes: 3,
            staged_rows: 5,
            network_parameters: 1,
            learners: 1,
            ..Sizes::default()
        });
        let mut replay = run.replay(SURVIVOR);
        for number in 0..OLDER {
            let priority = Priority::from_f32(0.5 + number as f32);
            run.payload.stage(run.area(SURVIVOR), Identity { life: OLD_LIFE, number }, priority);
            replay.flush(run.area(SURVIVOR));
        }
        for slot in 0..2 {
            for number in 0..self.staged {
                let priority = (number != 0).then_some(Priority::ONE);
                run.payload.stage(run.area(slot), Identity { life: FIRST_LIFE + slot as u32, number }, priority);
            }
        }
        run
    }

    /// A process in `slot` that stands still before the operation.
    pub fn start(&self, run: &Run, slot: usize) -> Traced {
        let entry = run.slot(slot);
        let generation = entry.reserve(Role::Actor, slot).unwrap_or_else(|| panic!("slot {slot} is not free"));
        Traced::start(|| {
            assert!(entry.occupy(std::process::id(), generation));
            let mut replay = run.replay(slot);
            let mut batch = Batch::new(run.payload.schema(), 5);
            // Whatever grows on first use has grown, and what the operation works on has been drawn.
            replay.sample(&mut batch, 0.5, &mut random(11)).expect("a batch");
            let operation = (self.operation)(slot);
            move || operation(run, &mut replay, &mut batch)
        })
    }

    /// Check that all is as it must be after `deaths`, of those in the slots `dead` and of who repaired after them. `before`
    /// is how many transitions had been inserted.
    pub fn assert_repaired(&self, run: &Run, dead: &[usize], deaths: u64, before: u64, what: &str) {
        assert_eq!(run.segment.control().gate().load(Ordering::Relaxed), 0, "{what}: the gate is closed");
        let replay = run.replay(dead[0]);
        if let Some(tree) = replay.tree() {
            let audit = tree.audit();
            assert!(audit.is_exact(), "{what}: {audit:?}");
        }
        let contents = run.contents();
        assert!(contents.values().all(|&times| times == 1), "{what}: a transition is there twice: {contents:?}");
        assert_eq!(contents.len(), CAPACITY, "{what}: {contents:?}");
        let mut expected_least = 0;
        for &slot in dead {
            assert_eq!(run.area(slot).progress(), (0, 0), "{what}: its successor has not the whole area");
            let there = of_life(&contents, FIRST_LIFE + slot as u32);
            let least = self.staged as usize;
            assert!((least..=least + self.commits as usize).contains(&there.len()), "{what}: {there:?} of slot {slot}");
            assert!(there.iter().copied().eq(0..there.len() as u32), "{what}: {there:?} of slot {slot}");
            expected_least += there.len() as u64;
        }
        // The count may be ahead by what each of the dead had counted and not yet ticked off, never behind.
        let inserted = inserted(run) - before;
        let expected = expected_least..=(1 + deaths) * expected_least;
        assert!(expected.contains(&inserted), "{what}: {inserted} for {expected_least} transitions");
        // The oldest ones gave way. A dead process's place in the order may be lost, and then an older one stays a lap longer.
        let old = of_life(&contents, OLD_LIFE);
        let oldest_spared = OLDER - CAPACITY as u32 + u32::try_from((1 + deaths) * expected_least).expect("a few");
        assert!((oldest_spared..OLDER).all(|number| old.contains(&number)), "{what}: {old:?}");
        assert_works(run, dead[0], what);
    }
}

/// Area and replay work: another lap goes through every slot, one transition for one.
pub fn assert_works(run: &Run, slot: usize, what: &str) {
    let (area, mut replay) = (run.area(slot), run.replay(slot));
    for number in 0..CAPACITY as u32 {
        run.payload.stage(area, Identity { life: u32::MAX, number }, None);
        assert_eq!(replay.flush(area), 1, "{what}: the dead process's area was not left empty");
    }
    assert_eq!(of_life(&run.contents(), u32::MAX).len(), CAPACITY, "{what}: slots were lost");
    assert!(replay.tree().is_none_or(|tree| tree.audit().is_exact()), "{what}");
}

/// Numbers of what is there of a life.
pub fn of_life(contents: &HashMap<Identity, usize>, life: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = contents.keys().filter(|identity| identity.life == life).map(|identity| identity.number).collect();
    numbers.sort_unstable();
    numbers
}

/// Transitions inserted so far.
pub fn inserted(run: &Run) -> u64 {
    run.segment.control().inserted().load(Ordering::Relaxed)
}
