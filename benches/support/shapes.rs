//! Full replays for the benchmarks of the whole replay, with transitions as well-known environments have them.
#![allow(dead_code, reason = "each benchmark uses a part")]

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use shoal::replay::{Batch, Element, Field, Name, Priority, Replay, Schema, StagingArea};
use shoal::segment::description::Description;
use shoal::segment::processes::Role;
use shoal::segment::{Layout, Segment, SegmentSizes};

/// Transitions that a process stages before it flushes.
pub(crate) const STAGED: usize = 64;
const PROCESSES: usize = 4;
/// Bytes of one frame of Atari, and frames that an observation shows.
const FRAME_BYTES: usize = 84 * 84;
const STACK: usize = 4;

/// The shape of a transition, and how many of them the replay holds.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    observation: fn(&str) -> Field,
    action: Field,
    pub(crate) capacity: usize,
}

impl Shape {
    pub(crate) fn cart_pole() -> Self {
        Self {
            name: "CartPole",
            observation: |name| Field::new(name, Element::F32, 4),
            action: Field::new("action", Element::I32, 1),
            capacity: 1 << 17,
        }
    }

    pub(crate) fn half_cheetah() -> Self {
        Self {
            name: "HalfCheetah",
            observation: |name| Field::new(name, Element::F32, 17),
            action: Field::new("action", Element::F32, 6),
            capacity: 1 << 20,
        }
    }

    /// Transitions of Atari, with each frame stored once.
    pub(crate) fn atari() -> Self {
        Self {
            name: "Atari",
            observation: |name| Field::stacked(name, Element::U8, FRAME_BYTES, STACK),
            action: Field::new("action", Element::I32, 1),
            capacity: 1 << 17,
        }
    }

    pub(crate) fn all() -> [Self; 3] {
        [Self::cart_pole(), Self::half_cheetah(), Self::atari()]
    }

    pub(crate) fn schema(&self) -> Schema {
        Schema::new(vec![
            (self.observation)("observation"),
            self.action.clone(),
            Field::new("reward", Element::F32, 1),
            Field::new("discount", Element::F32, 1),
            Field::new("flags", Element::I32, 1),
            (self.observation)("next_observation"),
        ])
    }

    fn parts(&self, fanout: usize) -> (Layout, Description) {
        let schema = self.schema();
        let observation = &schema.fields()[0];
        let layout = Layout::new(SegmentSizes {
            processes: PROCESSES,
            stagers: PROCESSES,
            staged_rows: STAGED,
            fanout,
            frames: if observation.stack == 0 { 0 } else { self.capacity + self.capacity / 16 },
            frame_bytes: observation.frame_bytes(),
            ..SegmentSizes::of_rows(schema.words(), self.capacity)
        });
        let description = Description { environment: self.name.into(), fields: schema.describe(), ..Description::default() };
        (layout.expect("sizes within their limits"), description)
    }

    /// A segment in `/dev/shm`.
    pub(crate) fn shared(&self, fanout: usize) -> Segment {
        let (layout, description) = self.parts(fanout);
        Segment::create(layout, &description, false).expect("room in /dev/shm")
    }

    /// A segment of this process and those it forks, on huge pages where the kernel has some.
    pub(crate) fn private(&self, fanout: usize) -> Segment {
        let (layout, description) = self.parts(fanout);
        Segment::create_private(layout, &description).expect("memory")
    }

    pub(crate) fn stream(&self) -> Stream {
        Stream { shape: self.clone(), schema: self.schema(), stack: Vec::new(), steps: 0 }
    }

    /// Insert until every slot holds a transition.
    pub(crate) fn fill<'s>(&self, replay: &mut Replay<'s>, area: StagingArea<'s>) {
        let mut stream = self.stream();
        for _ in 0..self.capacity / STAGED {
            stream.stage(replay, area);
            replay.flush(area);
        }
    }
}

/// An environment that never ends.
pub(crate) struct Stream {
    shape: Shape,
    schema: Schema,
    /// The frames that the observation shows.
    stack: Vec<Name>,
    steps: u32,
}

impl Stream {
    /// Fill the staging area.
    pub(crate) fn stage(&mut self, replay: &Replay<'_>, area: StagingArea<'_>) {
        let values = [0.5f32; 17];
        while !area.is_full() {
            self.steps = self.steps.wrapping_add(1);
            let mut writer = area.write(&self.schema);
            let observation = &self.schema.fields()[0];
            if observation.stack == 0 {
                let observation = &values[..observation.length];
                writer.f32(0, observation).f32(5, observation);
            } else {
                let mut frame = [7; FRAME_BYTES];
                frame[..4].copy_from_slice(&self.steps.to_le_bytes());
                let newest = replay.write_frame(&frame);
                self.stack.resize(STACK + 1, newest);
                self.stack.rotate_left(1);
                self.stack[STACK] = newest;
                writer.frames(0, &self.stack[..STACK]).frames(5, &self.stack[1..]);
            }
            writer.f32(2, &[1.0]).f32(3, &[0.99]).i32(4, &[0]);
            match self.shape.action.element {
                Element::I32 => writer.i32(1, &[1]),
                _ => writer.f32(1, &values[..self.shape.action.length]),
            };
            writer.commit(None);
        }
    }
}

pub(crate) fn area(segment: &Segment, slot: usize) -> StagingArea<'_> {
    StagingArea::of(segment, slot)
}

/// Take a slot of the process table for this process and see the replay as its owner does.
pub(crate) fn join(segment: &Segment, schema: Schema, slot: usize) -> Replay<'_> {
    let entry = segment.processes().slot(slot);
    assert!(entry.reserve(Role::Synchronous, slot).is_some_and(|generation| entry.occupy(std::process::id(), generation)));
    Replay::new(segment, schema, entry)
}

/// One step of a learner that learns nothing.
pub(crate) fn learn(replay: &mut Replay<'_>, batch: &mut Batch, random: &mut Pcg64Mcg) {
    replay.sample(batch, 0.4, random).expect("a batch");
    replay.update_priorities(batch, (0..batch.rows()).map(|row| Priority::from_f32(0.1 + (row % 7) as f32)));
}

pub(crate) fn seeded(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}
