//! A shared replay without a run, of numbers, and what its participants do.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal::replay::{Batch, Reader, Schema};
use shoal::segment::Segment;
use shoal::segment::processes::SlotState;
use shoal::standalone::{FieldOptions, Options, Patience, ReplayHandle, Schedule, Stale};

use super::{Run, Sizes};

/// Transitions that fit.
pub const CAPACITY: usize = 12;
/// Processes that may take part.
pub const PARTICIPANTS: usize = 2;
/// Added before: more than fit.
pub const OLDER: i32 = 17;

/// A shared replay of numbers, full, with this process as its first participant.
pub struct Shared {
    /// Its memory. Given up before `held` is, which leaves last and removes it.
    pub segment: Segment,
    /// This process's hold on it.
    pub held: ReplayHandle,
    /// Its fields.
    pub schema: Schema,
    /// Holds the watchdog, and keeps other tests of this program from forking meanwhile.
    _run: Run,
}

/// What it is made from.
pub fn options() -> Options {
    Options {
        capacity: CAPACITY,
        prioritized: true,
        alpha: 0.6,
        beta: Schedule { start: 0.4, end: 1.0, samples: 1 },
        epsilon: 1e-6,
        min_size: 1,
        samples_per_insert: None,
        error_band: f64::INFINITY,
        participants: PARTICIPANTS,
        frames: 0,
        fields: vec![FieldOptions { name: "number".into(), element: "i32".into(), shape: Vec::new(), stack: 0 }],
        steps: None,
    }
}

/// Work with a timeout that no test should meet.
pub fn patience<T>(work: impl FnOnce(Patience<'_>) -> T) -> T {
    work(Patience::new(Some(Duration::from_secs(60)), &mut || true))
}

/// Add numbers; `slots` is told where they went.
pub fn add(held: &ReplayHandle, numbers: std::ops::Range<i32>, slots: &mut Vec<i64>) {
    let column: Vec<u8> = numbers.clone().flat_map(i32::to_ne_bytes).collect();
    patience(|patience| held.add(&[&column], numbers.len(), None, &[], patience, slots)).expect("room");
}

/// Give the transitions in `slots` other errors, whatever they are now.
pub fn update(held: &ReplayHandle, slots: &[i64], errors: &[f32]) {
    patience(|patience| held.update(slots, None, errors, Stale::Ignore, patience)).expect("transitions");
}

impl Shared {
    /// A replay of the numbers up to `OLDER`, all that still fit.
    pub fn new() -> Self {
        Self::for_participants(PARTICIPANTS)
    }

    /// As [`Self::new`], with room for `participants`.
    pub fn for_participants(participants: usize) -> Self {
        let run = Run::new(Sizes::default());
        let held = ReplayHandle::create(Options { participants, ..options() }, true, Some(1)).expect("a small replay");
        let segment = Segment::attach(held.name().expect("a shared replay")).expect("its segment");
        let schema = held.schema().clone();
        for first in (0..OLDER).step_by(4) {
            add(&held, first..OLDER.min(first + 4), &mut Vec::new());
        }
        update(&held, &[0], &[1.0]);
        Self { held, segment, schema, _run: run }
    }

    /// Another hold on it.
    pub fn open(&self) -> ReplayHandle {
        ReplayHandle::open(self.held.name().expect("a shared replay"), Some(2)).expect("a replay that is there")
    }

    /// Places in the process table that nobody has.
    pub fn free_places(&self) -> usize {
        self.segment.processes().iter().filter(|slot| slot.state() == SlotState::Free).count()
    }

    /// Numbers in the replay, with how often each is there.
    pub fn contents(&self) -> BTreeMap<i32, usize> {
        let reader = Reader::new(&self.segment, self.schema.clone());
        let (mut batch, mut contents) = (Batch::new(&self.schema, 1), BTreeMap::new());
        for slot in 0..CAPACITY {
            reader.read(slot, &mut batch.as_rows(), 0, &mut Vec::new()).expect("a whole transition in every slot");
            *contents.entry(batch.column(0).as_i32()[0]).or_default() += 1;
        }
        contents
    }
}
