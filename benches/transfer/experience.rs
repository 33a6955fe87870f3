//! Experience: an actor stages rows and flushes them once the rate limiter allows it; a learner waits for them and draws as many.

use std::cell::RefCell;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use shoal::environments::{ActionSpace, EnvironmentSpec, ObservationSpace, registry};
use shoal::experience::fragment::FragmentShape;
use shoal::experience::transition::{self, OBSERVATION};
use shoal::replay::{Batch, FRESH, Field, Name, RateLimiter, Replay, Schema, StagingArea};
use shoal::segment::processes::{ProcessSlot, Role};
use shoal::segment::{Description, Layout, Segment, SegmentSizes};
use shoal::sync::Ordering;

use crate::measure::{Path, Receiver, Sender};

const FRAME_BYTES: usize = 42 * 42;
const STACK: usize = 4;
const ACTS: usize = 0;
const LEARNS: usize = 1;
/// Messages that an actor may be ahead.
const BAND_MESSAGES: f64 = 8.0;

/// The kind of rows, and how many are flushed together.
#[derive(Clone)]
pub(crate) struct Shape {
    schema: Schema,
    /// Rows of one flush.
    pub(crate) rows: usize,
    capacity: usize,
    /// Whether each row is taken once, in order, rather than drawn at random.
    takes_once: bool,
}

impl Shape {
    pub(crate) fn cart_pole() -> Self {
        Self { schema: transition::schema(&cart_pole()), rows: 64, capacity: 1 << 17, takes_once: false }
    }

    /// Transitions of HalfCheetah as in its presets, whose actors flush every row.
    pub(crate) fn half_cheetah() -> Self {
        let action = ActionSpace::Box { low: vec![-1.0; 6], high: vec![1.0; 6] };
        let environment = EnvironmentSpec::new("HalfCheetah-shaped", ObservationSpace::unbounded(17), action);
        Self { schema: transition::schema(&environment), rows: 1, capacity: 1 << 17, takes_once: false }
    }

    /// Transitions that show four frames each, of which one is new.
    pub(crate) fn frames() -> Self {
        Self { schema: transition::schema(&cart_pole_in_frames()), rows: 64, capacity: 1 << 14, takes_once: false }
    }

    /// Fifty steps in one row.
    pub(crate) fn fragment() -> Self {
        Self { schema: FragmentShape::new(50, &cart_pole_in_frames()).schema(), rows: 1, capacity: 256, takes_once: true }
    }

    /// Bytes that the writer hands over, with each frame counted once.
    pub(crate) fn message_bytes(&self) -> usize {
        self.rows * (8 * self.schema.words() + if self.has_frames() { FRAME_BYTES } else { 0 })
    }

    fn has_frames(&self) -> bool {
        self.schema.frame_bytes() > 0
    }

    /// A limiter in lock-step: a row is drawn for each row that is inserted. The actor may be ahead by the band, the learner never.
    fn limiter(&self, min_size: u64) -> RateLimiter {
        let error_band = BAND_MESSAGES * self.rows as f64;
        RateLimiter { min_size, samples_per_insert: Some(1.0), takes_once: self.takes_once, error_band }
    }
}

fn cart_pole() -> EnvironmentSpec {
    registry::spec("CartPole-v1").expect("a native environment")
}

/// The actions of CartPole, and observations of four frames.
fn cart_pole_in_frames() -> EnvironmentSpec {
    let observation = ObservationSpace { stack: STACK, ..ObservationSpace::bytes(&[STACK, 42, 42]) };
    EnvironmentSpec { observation, ..cart_pole() }
}

/// A replay with an actor and a learner. A replay of transitions is full.
pub(crate) struct Experience {
    shape: Shape,
    segment: Segment,
    stack: RefCell<Vec<Name>>,
}

impl Experience {
    pub(crate) fn new(shape: &Shape) -> Self {
        let sizes = SegmentSizes {
            processes: 2,
            stagers: 2,
            staged_rows: shape.rows,
            frames: if shape.has_frames() { shape.capacity + shape.capacity / 16 } else { 0 },
            frame_bytes: shape.schema.frame_bytes(),
            ..SegmentSizes::of_rows(shape.schema.words(), shape.capacity)
        };
        let layout = Layout::new(sizes).expect("sizes within their limits");
        let segment = Segment::create(layout, &Description::default(), false).expect("room in /dev/shm");
        let experience = Self { shape: shape.clone(), segment, stack: RefCell::default() };
        if !shape.takes_once {
            let mut actor = experience.actor();
            for _ in 0..shape.capacity / shape.rows {
                actor.stage();
                actor.replay.flush(actor.area);
            }
        }
        experience
    }

    /// The `min_size` with which rows that are inserted from now on call for samples.
    fn rows_before(&self) -> u64 {
        if self.shape.takes_once { 0 } else { self.shape.capacity as u64 + 1 }
    }

    fn actor(&self) -> Actor<'_> {
        let process = enter(&self.segment, Role::Actor, ACTS);
        Actor {
            path: self,
            process,
            replay: Replay::new(&self.segment, self.shape.schema.clone(), process),
            area: StagingArea::of(&self.segment, ACTS),
            content: vec![7; self.shape.schema.fields().iter().map(Field::size_bytes).fold(FRAME_BYTES, usize::max)],
        }
    }
}

/// Take a slot of the process table for this process. The process that had it before has ended, or is this one.
pub(crate) fn enter(segment: &Segment, role: Role, slot: usize) -> ProcessSlot<'_> {
    let entry = segment.processes().slot(slot);
    entry.release();
    assert!(entry.reserve(role, 0).is_some_and(|generation| entry.occupy(std::process::id(), generation)));
    entry
}

impl Path for Experience {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(self.actor())
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let process = enter(&self.segment, Role::Learner, LEARNS);
        Box::new(Learner {
            path: self,
            replay: Replay::new(&self.segment, self.shape.schema.clone(), process),
            // Only the actor has a band here: a learner that is ahead would find older rows.
            limiter: RateLimiter { error_band: 0.0, ..self.shape.limiter(self.rows_before()) },
            batch: Batch::new(&self.shape.schema, self.shape.rows),
            random: Pcg64Mcg::seed_from_u64(1),
        })
    }
}

struct Actor<'a> {
    path: &'a Experience,
    process: ProcessSlot<'a>,
    replay: Replay<'a>,
    area: StagingArea<'a>,
    content: Vec<u8>,
}

impl Actor<'_> {
    fn stage(&mut self) {
        let shape = &self.path.shape;
        let mut stack = self.path.stack.borrow_mut();
        while !self.area.is_full() {
            if shape.has_frames() {
                let newest = self.replay.write_frame(&self.content[..FRAME_BYTES]);
                stack.resize(STACK + 1, newest);
                stack.rotate_left(1);
                stack[STACK] = newest;
            }
            let mut writer = self.area.write(&shape.schema);
            for (index, field) in shape.schema.fields().iter().enumerate() {
                match field.stack {
                    0 => writer.bytes(index, &self.content[..field.size_bytes()]),
                    _ if index == OBSERVATION => writer.frames(index, &stack[..STACK]),
                    _ => writer.frames(index, &stack[1..]),
                };
            }
            writer.commit(shape.takes_once.then_some(FRESH));
        }
    }
}

impl Sender for Actor<'_> {
    fn send(&mut self, _number: u64) {
        let mut turn = self.path.shape.limiter(self.path.rows_before()).turn(&self.path.segment, self.process);
        self.stage();
        turn.wait(|| true);
        self.replay.flush(self.area);
    }
}

struct Learner<'a> {
    path: &'a Experience,
    replay: Replay<'a>,
    limiter: RateLimiter,
    batch: Batch,
    random: Pcg64Mcg,
}

impl Learner<'_> {
    fn may_sample(&self) -> bool {
        let control = self.path.segment.control();
        let [inserted, sampled] = [control.inserted(), control.sampled()].map(|word| word.load(Ordering::Relaxed));
        self.limiter.may_sample(inserted, sampled, self.path.shape.rows as u64)
    }
}

impl Receiver for Learner<'_> {
    fn look(&mut self) -> usize {
        if self.path.shape.takes_once {
            return usize::from(self.replay.fresh() > 0 && self.replay.take(&mut self.batch, 0));
        }
        if !self.may_sample() {
            return 0;
        }
        self.replay.sample(&mut self.batch, 0.4, &mut self.random).expect("a batch");
        1
    }

    fn wait(&mut self) {
        // Both kinds of wait look once more, sleep until a row is inserted or two milliseconds have passed, and return.
        let mut looks = 0;
        let mut once = || {
            looks += 1;
            looks == 1
        };
        if self.path.shape.takes_once {
            self.replay.wait_for_fresh(1, &mut once);
        } else {
            self.limiter.wait_to_sample(self.path.segment.control(), self.path.shape.rows as u64, once);
        }
    }
}
