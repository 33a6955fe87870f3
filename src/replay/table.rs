//! The replay as a process sees it (Reverb: table): insert what is staged, sample, update priorities.

use std::time::Duration;

use rand::{Rng, RngExt};
use thiserror::Error;

use super::batch::{Batch, Rows};
use super::frames::FrameStore;
use super::leaderless::relieve;
use super::power;
use super::priority::Priority;
use super::reader::{Reader, Unreadable};
use super::schema::Schema;
use super::staging::StagingArea;
use super::store::{NOBODY, TransitionStore};
use super::sum_tree::{Differences, SumTree};
use super::target::Target;
use crate::segment::control::Control;
use crate::segment::counters::Counter;
use crate::segment::processes::{Operation, ProcessSlot};
use crate::segment::{Region, Segment};
use crate::sync::Ordering;

/// Rows fetched ahead of the one being copied.
const PREFETCH_DISTANCE: usize = 16;
/// The same, for the frames that a row names.
const FRAMES_PREFETCH_DISTANCE: usize = 2;
/// Rounds in which rows that changed under the reader are drawn again.
const DRAWING_ROUNDS: usize = 1_000;
/// Rounds after which the reader sleeps between two: what it waits for may be a repair.
const EAGER_ROUNDS: usize = 100;
const DRAWING_PAUSE: Duration = Duration::from_micros(200);
/// Why no batch could be drawn.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleError {
    /// There is nothing to sample yet.
    #[error("the replay is empty: insert transitions first")]
    Empty,
    /// Every row kept changing under the reader.
    #[error(
        "{missing} transitions could not be drawn in {rounds} rounds: the replay is far too small for its writers; raise replay.capacity"
    )]
    Contended {
        /// Rows still missing.
        missing: usize,
        /// Rounds tried.
        rounds: usize,
    },
}

/// Note that somebody gave a priority of this size. Hardly ever writes.
pub fn raise_largest_priority(control: Control<'_>, priority: Priority) {
    if control.largest_priority().load(Ordering::Relaxed) < priority.0 {
        control.largest_priority().fetch_max(priority.0, Ordering::Relaxed);
    }
}

/// As whom the replay is used.
#[derive(Clone, Copy)]
enum Hold<'a> {
    /// To read: as nobody, so nothing may be changed.
    Reading,
    /// As the process in this slot, where it announces its operations.
    Process(ProcessSlot<'a>),
    /// In the name of the dead process in this slot, behind the gate that the repairer has closed.
    Repairing(usize),
}

/// One process's hold on the replay.
pub struct Replay<'a> {
    segment: &'a Segment,
    control: Control<'a>,
    reader: Reader<'a>,
    tree: Option<SumTree<'a>>,
    hold: Hold<'a>,
    /// Transitions that one operation moves at most.
    chunk: usize,
    scratch: Scratch,
}

/// Room to work in, kept from call to call so that none allocates.
#[derive(Default)]
pub struct Scratch {
    differences: Differences,
    claimed: Vec<(usize, u64)>,
    frame_names: Vec<u64>,
    /// Transitions that were met and can never be drawn again, since a frame of theirs has been overwritten.
    vanished: Vec<(usize, u64)>,
    drawing: Drawing,
}

#[derive(Default)]
struct Drawing {
    pending: Vec<usize>,
    targets: Vec<u64>,
    slots: Vec<usize>,
}

impl<'a> Replay<'a> {
    /// The replay in `segment`, for the process in `process`; without one, to read only: to sample, but not to insert or
    /// to update.
    pub fn new(segment: &'a Segment, schema: Schema, process: Option<ProcessSlot<'a>>) -> Self {
        Self::with_scratch(segment, schema, process, Scratch::default())
    }

    /// As [`Replay::new`], with the room that an earlier hold on the same replay worked in: then it costs next to nothing.
    pub fn with_scratch(segment: &'a Segment, schema: Schema, process: Option<ProcessSlot<'a>>, scratch: Scratch) -> Self {
        let layout = segment.layout().parameters();
        let room = layout.transition_words;
        assert!(schema.words() <= room, "a transition takes {} words and the segment has room for {room}", schema.words());
        let tree = (layout.fanout != 0).then(|| SumTree::new(segment.words(Region::Tree), layout.capacity, layout.fanout));
        let hold = process.map_or(Hold::Reading, Hold::Process);
        Self { segment, control: segment.control(), reader: Reader::new(segment, schema), tree, hold, chunk: layout.chunk(), scratch }
    }

    /// The replay for whoever repairs after the dead process in slot `dead`, alone behind the closed gate.
    pub(super) fn repairing(segment: &'a Segment, schema: Schema, dead: usize) -> Self {
        Self { hold: Hold::Repairing(dead), ..Self::new(segment, schema, None) }
    }

    /// End this hold and keep the room it worked in.
    pub fn into_scratch(self) -> Scratch {
        self.scratch
    }

    /// Fields of a transition.
    pub fn schema(&self) -> &Schema {
        self.reader.schema()
    }

    /// The store.
    pub fn store(&self) -> TransitionStore<'a> {
        self.reader.store
    }

    /// The frame store; `None` when no field is made of frames.
    pub fn frames(&self) -> Option<FrameStore<'a>> {
        self.reader.frames
    }

    /// Reads single transitions.
    pub fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// The tree; `None` when sampling is uniform.
    pub fn tree(&self) -> Option<&SumTree<'a>> {
        self.tree.as_ref()
    }

    /// Transitions in the replay.
    pub fn len(&self) -> usize {
        let inserted = self.control.inserted().load(Ordering::Relaxed);
        usize::try_from(inserted).unwrap_or(usize::MAX).min(self.store().capacity())
    }

    /// Whether nothing was inserted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest priority seen so far, one at least: what new transitions get, so that each is drawn soon. Less than one
    /// would leave those of before the first update hardly ever drawn again.
    pub(super) fn largest_priority(&self) -> Priority {
        Priority::from_bits(self.control.largest_priority().load(Ordering::Relaxed)).max(Priority::ONE)
    }

    /// Announce an operation, in whose slot it belongs; whoever repairs is alone and has announced the repair.
    fn begin(&self) -> Option<Operation<'a>> {
        match self.hold {
            Hold::Process(process) => Some(process.begin_operation(self.control, || relieve(self.segment, self.schema()))),
            Hold::Repairing(_) => None,
            Hold::Reading => panic!("a hold on the replay without a process slot is there to read, not to change anything"),
        }
    }

    /// In whose name slots are claimed.
    fn owner(&self) -> usize {
        match self.hold {
            Hold::Process(process) => process.index(),
            Hold::Repairing(dead) => dead,
            Hold::Reading => NOBODY,
        }
    }

    fn count(&self, counter: Counter, amount: u64) {
        if let Hold::Process(process) = self.hold
            && amount != 0
        {
            process.counters().add(counter, amount);
        }
    }

    /// Move everything staged into the store, and empty the area. Returns how many transitions were moved.
    pub fn flush(&mut self, area: StagingArea<'a>) -> usize {
        self.flush_with(area, |_| ())
    }

    /// As [`Self::flush`]; `moved` is told the slots and generations of each operation's transitions, in order.
    pub fn flush_with(&mut self, area: StagingArea<'a>, mut moved: impl FnMut(&[(usize, u64)])) -> usize {
        let (committed, first) = area.progress();
        let mut flushed = first;
        while flushed < committed {
            let count = (committed - flushed).min(self.chunk);
            let operation = self.begin();
            self.insert_chunk(area, flushed, count);
            flushed += count;
            area.set_progress(committed, flushed);
            drop(operation);
            moved(&self.scratch.claimed);
            self.count(Counter::Inserted, count as u64);
        }
        self.control.signal_progress();
        committed - first
    }

    fn insert_chunk(&mut self, area: StagingArea<'a>, first: usize, count: usize) {
        let owner = self.owner();
        self.claim_slots(area, first, count, owner);
        // Lazy writing: nobody can draw these slots from here on.
        if let Some(tree) = &self.tree {
            tree.clear(&self.scratch.claimed, &mut self.scratch.differences);
        }
        for (index, &(slot, generation)) in (first..).zip(&self.scratch.claimed) {
            self.store().write(slot, area.row(index));
            self.store().publish(slot, generation, owner);
        }
        let mut saturated = 0;
        if let Some(tree) = &self.tree {
            let largest = self.largest_priority();
            let changes = (first..).zip(&self.scratch.claimed).map(|(index, &(slot, generation))| {
                let given = area.priority(index);
                saturated += u64::from(given == Some(Priority::LARGEST));
                (slot, generation, given.unwrap_or(largest))
            });
            // A slot claimed again in between has a new generation, and its leaf refuses this priority.
            tree.update(changes, &mut self.scratch.differences);
        }
        self.count(Counter::SaturatedPriorities, saturated);
        self.control.inserted().fetch_add(count as u64, Ordering::Relaxed);
    }

    fn claim_slots(&mut self, area: StagingArea<'a>, first: usize, count: usize, owner: usize) {
        let capacity = self.store().capacity() as u64;
        let slot_of = |ticket: u64| usize::try_from(ticket % capacity).unwrap_or(0);
        let start = self.control.claimed().fetch_add(count as u64, Ordering::Relaxed);
        self.scratch.claimed.clear();
        let mut skipped = 0;
        for offset in 0..count {
            let mut slot = slot_of(start + offset as u64);
            let index = first + offset;
            let generation = loop {
                let announce = |generation| area.set_target(index, Some(Target { slot, generation }));
                if let Some(generation) = self.store().claim(slot, owner, announce) {
                    break generation;
                }
                // Somebody stopped in the middle of this slot and was lapped; leave it to them.
                skipped += 1;
                slot = slot_of(self.control.claimed().fetch_add(1, Ordering::Relaxed));
            };
            self.scratch.claimed.push((slot, generation));
        }
        self.count(Counter::SkippedSlots, skipped);
    }

    /// Draw `batch.rows()` transitions: prioritized with importance exponent `beta` where there is a tree, uniformly
    /// otherwise. Prioritized batches are stratified (one draw per equal part of the total priority).
    pub fn sample(&mut self, batch: &mut Batch, beta: f32, random: &mut impl Rng) -> Result<(), SampleError> {
        batch.vanished.clear();
        let drawn = self.sample_rows(&mut batch.as_rows(), beta, random);
        // Left over by a hold that only reads.
        batch.vanished.append(&mut self.scratch.vanished);
        batch.largest_weight = drawn?;
        Ok(())
    }

    /// As [`Self::sample`], into memory that somebody else provides. Returns the largest importance weight.
    ///
    /// # Panics
    /// When the parts of `rows` have not all room for the same number of rows of the schema.
    pub fn sample_rows<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        rows.check(self.reader.schema());
        let size = self.len();
        if size == 0 {
            return Err(SampleError::Empty);
        }
        let count = rows.slots.len();
        self.scratch.vanished.clear();
        self.scratch.drawing.pending.clear();
        self.scratch.drawing.pending.extend(0..count);
        for round in 0..DRAWING_ROUNDS {
            if round > EAGER_ROUNDS {
                std::thread::sleep(DRAWING_PAUSE);
            }
            let total = self.draw_slots(size, round == 0, random);
            let missing = self.read_rows(rows, size, total);
            if !self.scratch.vanished.is_empty() && !matches!(self.hold, Hold::Reading) {
                self.remove_vanished();
            }
            if missing == 0 {
                if self.tree.is_some() {
                    power::raise(rows.weights, -beta);
                }
                self.control.sampled().fetch_add(count as u64, Ordering::Relaxed);
                self.count(Counter::Sampled, count as u64);
                self.control.signal_progress();
                return Ok(rows.weights.iter().copied().fold(0.0, f32::max));
            }
            self.count(Counter::Redrawn, missing as u64);
        }
        Err(SampleError::Contended { missing: self.scratch.drawing.pending.len(), rounds: DRAWING_ROUNDS })
    }

    /// Choose a slot for every pending row, or nowhere while every slot is being written; returns the total priority
    /// they were drawn from.
    fn draw_slots(&mut self, size: usize, stratified: bool, random: &mut impl Rng) -> u64 {
        let Drawing { pending, targets, slots } = &mut self.scratch.drawing;
        slots.resize(pending.len(), 0);
        let Some(tree) = &self.tree else {
            slots.fill_with(|| random.random_range(0..size));
            return 0;
        };
        let total = tree.total();
        if total == 0 {
            slots.fill(SumTree::NOWHERE);
            return 0;
        }
        targets.clear();
        if stratified {
            // Parts of equal length, the first few one unit longer, so that together they are the total exactly.
            let parts = pending.len().max(1) as u64;
            let (length, longer) = (total / parts, total % parts);
            targets.extend((0..pending.len() as u64).map(|part| {
                let first = part * length + part.min(longer);
                first + random.random_range(0..(length + u64::from(part < longer)).max(1))
            }));
        } else {
            targets.extend(pending.iter().map(|_| random.random_range(0..total)));
        }
        tree.find(targets, slots);
        total
    }

    /// Copy the chosen rows; what changed meanwhile stays pending. Returns how many do. In place of importance weights
    /// it leaves `N P(i)`, to be raised to a power all at once.
    fn read_rows<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, size: usize, total: u64) -> usize {
        let Self { reader, tree, scratch, .. } = self;
        let Scratch { frame_names, vanished, drawing: Drawing { pending, slots, .. }, .. } = scratch;
        let slot_at = |position: usize| slots.get(position).copied().filter(|&slot| slot != SumTree::NOWHERE);
        (0..PREFETCH_DISTANCE).filter_map(slot_at).for_each(|slot| reader.store.prefetch(slot));
        let scale = size as f64 / total as f64;
        let mut missing = 0;
        for index in 0..pending.len() {
            if let Some(slot) = slot_at(index + PREFETCH_DISTANCE) {
                reader.store.prefetch(slot);
            }
            if let Some(slot) = slot_at(index + FRAMES_PREFETCH_DISTANCE) {
                reader.prefetch_frames(slot);
            }
            let (row, slot) = (pending[index], slots[index]);
            let weight = if slot == SumTree::NOWHERE {
                None
            } else {
                match reader.read(slot, rows, row, frame_names) {
                    Ok(generation) => {
                        rows.slots[row] = slot;
                        rows.generations[row] = generation;
                        match &*tree {
                            None => Some(1.0),
                            // The leaf must speak of the transition that was read.
                            Some(tree) => tree
                                .priority(slot, generation)
                                .filter(|priority| priority.0 != 0)
                                .map(|priority| (priority.0 as f64 * scale) as f32),
                        }
                    }
                    Err(Unreadable::Changing) => None,
                    Err(Unreadable::FrameGone(generation)) => {
                        if tree.is_some() {
                            remember(vanished, (slot, generation));
                        }
                        None
                    }
                }
            };
            match weight {
                Some(weight) => rows.weights[row] = weight,
                None => {
                    pending[missing] = row;
                    missing += 1;
                }
            }
        }
        pending.truncate(missing);
        missing
    }

    /// Take out of the tree what can never be drawn again.
    fn remove_vanished(&mut self) {
        let operation = self.begin();
        let Scratch { vanished, differences, .. } = &mut self.scratch;
        if let Some(tree) = &self.tree {
            let changes = vanished.iter().map(|&(slot, generation)| (slot, generation, Priority::NEVER));
            tree.update(changes, differences);
        }
        vanished.clear();
        drop(operation);
    }

    /// The tag of the generation in the leaf of `slot`, which stands for it in [`Self::update_named`]; `None` when nothing is
    /// there, or when there is no tree.
    pub fn leaf_tag(&self, slot: usize) -> Option<u64> {
        Some(self.tree.as_ref()?.tag(slot)).filter(|&tag| tag != SumTree::NOBODYS_TAG)
    }

    /// Whether the leaf of `slot` belongs to this generation.
    pub fn is_current(&self, slot: usize, generation: u64) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.priority(slot, generation).is_some())
    }

    /// Store a frame for the transitions that will name it.
    ///
    /// # Panics
    /// When no field is made of frames, or the frame has not their size.
    pub fn write_frame(&self, frame: &[u8]) -> Target {
        assert_eq!(frame.len(), self.segment.layout().parameters().frame_bytes, "bytes of a frame");
        let frames = self.reader.frames.expect("a schema with frames has a frame store");
        let operation = self.begin();
        let name = frames.write(frame, self.owner());
        drop(operation);
        name
    }

    /// Set the priorities of the transitions in `batch`. Those overwritten meanwhile are dropped, and so are values
    /// that are no priority (NaN, infinite, negative); both are counted, and so are those that are kept as the largest that
    /// the tree has, since they are larger. What a reader that drew the batch could not take out of the tree is taken out.
    pub fn update_priorities(&mut self, batch: &Batch, priorities: impl Iterator<Item = Option<Priority>>) {
        self.update_named(&batch.slots, &batch.generations, priorities);
        if !batch.vanished.is_empty() {
            self.scratch.vanished.clone_from(&batch.vanished);
            self.remove_vanished();
        }
    }

    /// As [`Self::update_priorities`], of the transitions that were in `slots` in these generations. Returns how many are
    /// there no more.
    pub fn update_named(&mut self, slots: &[usize], generations: &[u64], priorities: impl Iterator<Item = Option<Priority>>) -> u64 {
        let operation = self.begin();
        let Some(tree) = &self.tree else { return 0 };
        let (mut refused, mut saturated) = (0, 0);
        let mut largest = Priority::SMALLEST;
        let names = slots.iter().copied().zip(generations.iter().copied());
        let changes = names.zip(priorities).filter_map(|((slot, generation), priority)| {
            let Some(priority) = priority else {
                refused += 1;
                return None;
            };
            largest = largest.max(priority);
            saturated += u64::from(priority == Priority::LARGEST);
            Some((slot, generation, priority))
        });
        let stale = tree.update(changes, &mut self.scratch.differences);
        // Inside the operation, so that what empties the replay meanwhile does not find it changed afterwards.
        raise_largest_priority(self.control, largest);
        drop(operation);
        self.count(Counter::StalePriorities, stale);
        self.count(Counter::RefusedPriorities, refused);
        self.count(Counter::SaturatedPriorities, saturated);
        stale
    }

    /// Finish the insertion of one staged transition whose slot `owner` had claimed when it died.
    pub(super) fn finish(&mut self, area: StagingArea<'_>, index: usize, target: Target, owner: usize) {
        let Target { slot, generation } = target;
        self.store().write(slot, area.row(index));
        self.store().publish(slot, generation, owner);
        if let Some(tree) = &self.tree {
            let largest = self.largest_priority();
            tree.clear(&[(slot, generation)], &mut self.scratch.differences);
            let priority = area.priority(index).unwrap_or(largest);
            tree.update(std::iter::once((slot, generation, priority)), &mut self.scratch.differences);
        }
        self.control.inserted().fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn control(&self) -> Control<'a> {
        self.control
    }
}

/// Out of line: it happens once in many thousand rows, and the loop that reads them is faster without its room to grow.
#[cold]
fn remember(vanished: &mut Vec<(usize, u64)>, name: (usize, u64)) {
    vanished.push(name);
}
