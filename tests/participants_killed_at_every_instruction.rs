//! The participants of a shared replay without a run: one is killed after every machine instruction of joining and
//! adding, of drawing and updating, and of leaving. Whoever is left repairs: nothing is there twice, the sums are exact,
//! and every place can be taken again. One that lives is never repaired after, wherever it stands.
#![cfg(target_arch = "x86_64")]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use shoal::replay::{Batch, Reader, Replay, Schema, leaderless};
use shoal::segment::Segment;
use shoal::segment::processes::SlotState;
use shoal::standalone::{FieldOptions, Options, Patience, Schedule, Stale, Standalone};
use support::traced::{Snapshot, Traced, report, sweep};
use support::{Run, Sizes};

const CAPACITY: usize = 12;
const PARTICIPANTS: usize = 2;
/// Added before: more than fit.
const OLDER: i32 = 17;

/// A shared replay of numbers, full, with this process as its first participant.
struct Shared {
    held: Standalone,
    segment: Segment,
    schema: Schema,
    /// Holds the watchdog, and keeps other tests of this program from forking meanwhile.
    _run: Run,
}

fn options() -> Options {
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

fn patience<T>(work: impl FnOnce(Patience<'_>) -> T) -> T {
    work(Patience { timeout: Some(Duration::from_secs(60)), go_on: &mut || true })
}

fn add(held: &Standalone, numbers: std::ops::Range<i32>, slots: &mut Vec<i64>) {
    let column: Vec<u8> = numbers.clone().flat_map(i32::to_ne_bytes).collect();
    patience(|patience| held.add(&[&column], numbers.len(), None, &[], patience, slots)).expect("room");
}

fn update(held: &Standalone, slots: &[i64], errors: &[f32]) {
    patience(|patience| held.update(slots, None, errors, Stale::Ignore, patience)).expect("transitions");
}

impl Shared {
    fn new() -> Self {
        let run = Run::new(Sizes::default());
        let held = Standalone::create(options(), true, Some(1)).expect("a small replay");
        let segment = Segment::attach(held.name().expect("a shared replay")).expect("its segment");
        let schema = held.schema().clone();
        for first in (0..OLDER).step_by(4) {
            add(&held, first..OLDER.min(first + 4), &mut Vec::new());
        }
        update(&held, &[0], &[1.0]);
        Self { held, segment, schema, _run: run }
    }

    fn open(&self) -> Standalone {
        Standalone::open(self.held.name().expect("a shared replay"), Some(2)).expect("a replay that is there")
    }

    fn free_places(&self) -> usize {
        self.segment.processes().iter().filter(|slot| slot.state() == SlotState::Free).count()
    }

    /// Numbers in the replay, with how often each is there.
    fn contents(&self) -> BTreeMap<i32, usize> {
        let reader = Reader::new(&self.segment, self.schema.clone());
        let (mut batch, mut contents) = (Batch::new(&self.schema, 1), BTreeMap::new());
        for slot in 0..CAPACITY {
            reader.read(slot, &mut batch.as_rows(), 0, &mut Vec::new()).expect("a whole transition in every slot");
            *contents.entry(batch.column(0).as_i32()[0]).or_default() += 1;
        }
        contents
    }

    /// Take `child` through its operation. Wherever it stands it is left alone while it lives, and its death there is
    /// repaired; then `added` of its own numbers are there at least, and all of them at most.
    fn kill_everywhere(&self, what: &str, child: &Traced, own: std::ops::Range<i32>, added: std::ops::RangeInclusive<usize>) {
        let places = self.free_places();
        let (mut occupied, mut inside) = (0, 0);
        let (instructions, states) = sweep(&self.segment, child, |instruction| {
            let what = format!("{what}, after instruction {instruction}");
            let standing = Snapshot::take(&self.segment);
            assert!(leaderless::sweep(&self.segment, &self.schema).is_empty(), "{what}: a living participant lost its place");
            assert!(standing.is_current(&self.segment), "{what}: a living participant was repaired after");
            occupied += usize::from(self.free_places() != places);
            inside += usize::from(self.segment.processes().iter().any(|slot| slot.in_operation()));
            child.bury(&self.segment);
            self.held.total_priority();
            let replay = Replay::new(&self.segment, self.schema.clone(), None);
            let audit = replay.tree().expect("a tree").audit();
            assert!(audit.is_exact(), "{what}: {audit:?}");
            let contents = self.contents();
            assert_eq!(contents.len(), CAPACITY, "{what}: {contents:?}");
            let there = contents.keys().filter(|number| own.contains(number)).count();
            assert!(added.contains(&there), "{what}: {there} of its own are there");
            assert!(self.free_places() >= places, "{what}: a place was lost");
            add(&self.held, 1_000..1_000 + CAPACITY as i32, &mut Vec::new());
            assert!(self.contents().keys().all(|&number| number >= 1_000), "{what}: a slot was lost");
        });
        report(&format!("{what}: {instructions} instructions, {states} states, {occupied} with a place, {inside} inside"));
        assert!(states > 2 && occupied > 1, "{what}: {states} states, {occupied} with a place");
    }
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
    shared.kill_everywhere("joining and adding", &child, 100..103, 0..=3);
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
    shared.kill_everywhere("drawing and updating", &child, 100..103, 0..=0);
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
    shared.kill_everywhere("leaving", &child, 100..103, 3..=3);
}

#[test]
fn every_writer_can_hold_a_frame_and_one_is_left() {
    let frames = |frames| {
        let mut options = options();
        options.fields = vec![FieldOptions { name: "image".into(), element: "u8".into(), shape: vec![4], stack: 1 }];
        (options.participants, options.capacity, options.frames) = (8, 16, frames);
        Standalone::create(options, false, Some(1))
    };
    let refused = frames(8).err().expect("eight writers could hold every frame").to_string();
    assert_eq!(refused, "frame_capacity is 8; it must be between 9 and 16777216");
    assert!(frames(9).is_ok());
}
