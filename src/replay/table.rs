//! The replay as one of its processes uses it (Reverb: table): insert what is staged, sample, update priorities.

use std::ops::Deref;

use rand::Rng;

use super::batch::{Batch, Rows};
use super::insertion::Insertion;
use super::leaderless::take_over_from_the_dead;
use super::priority::Priority;
use super::sampling::{Drawing, SampleError};
use super::schema::Schema;
use super::staging::StagingArea;
use super::sum_tree::{Differences, SumTree};
use super::target::Target;
use super::view::ReplayView;
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::processes::{Operation, ProcessSlot};
use crate::sync::Ordering;

/// One process's hold on the replay: what changes it is announced in the process's slot first. Reads as a [`ReplayView`] does.
pub struct Replay<'a> {
    segment: &'a Segment,
    view: ReplayView<'a>,
    process: ProcessSlot<'a>,
    scratch: Scratch,
}

/// Room to work in, kept from call to call so that none allocates.
#[derive(Default)]
pub struct Scratch {
    insertion: Insertion,
    drawing: Drawing,
}

impl<'a> Deref for Replay<'a> {
    type Target = ReplayView<'a>;

    fn deref(&self) -> &ReplayView<'a> {
        &self.view
    }
}

impl<'a> Replay<'a> {
    /// The replay in `segment`, for the process in `process`.
    pub fn new(segment: &'a Segment, schema: Schema, process: ProcessSlot<'a>) -> Self {
        Self::with_scratch(segment, schema, process, Scratch::default())
    }

    /// As [`Replay::new`], with the room that an earlier hold on the same replay worked in: then it costs next to nothing.
    pub fn with_scratch(segment: &'a Segment, schema: Schema, process: ProcessSlot<'a>, scratch: Scratch) -> Self {
        Self { segment, view: ReplayView::new(segment, schema), process, scratch }
    }

    /// End this hold and keep the room it worked in.
    pub fn into_scratch(self) -> Scratch {
        self.scratch
    }

    fn begin(&self) -> Operation<'a> {
        begin(self.segment, &self.view, self.process)
    }

    /// Let the row in `slot` be taken by this process; `false` when another has taken it, or it is there no more.
    pub(super) fn mark_taken(&mut self, slot: usize, generation: u64) -> bool {
        let operation = self.begin();
        let tree = self.view.tree.as_ref().expect("rows are taken from a replay with a tree");
        let taken = tree.take(slot, generation, &mut self.scratch.insertion.differences);
        if taken {
            self.view.control.sampled().fetch_add(1, Ordering::Relaxed);
        }
        drop(operation);
        if taken {
            self.count(Counter::Sampled, 1);
            self.view.control.signal_progress();
        }
        taken
    }

    pub(super) fn count(&self, counter: Counter, amount: u64) {
        count(self.process, counter, amount);
    }

    /// Move everything staged into the store, and empty the area. Returns how many transitions were moved.
    pub fn flush(&mut self, area: StagingArea<'_>) -> usize {
        self.flush_with(area, |_| ())
    }

    /// As [`Self::flush`]; `moved` is told the slots and generations of each operation's transitions, in order.
    pub fn flush_with(&mut self, area: StagingArea<'_>, mut moved: impl FnMut(&[(usize, u64)])) -> usize {
        let (segment, process, view) = (self.segment, self.process, &self.view);
        let limits = (segment.layout().sizes().chunk(), process.index());
        view.flush(
            &mut self.scratch.insertion,
            area,
            limits,
            || begin(segment, view, process),
            |insertion| {
                moved(&insertion.claimed);
                count(process, Counter::Inserted, insertion.claimed.len() as u64);
                count(process, Counter::SkippedSlots, insertion.skipped);
                count(process, Counter::SaturatedPriorities, insertion.saturated);
            },
        )
    }

    /// Draw `batch.rows()` transitions: prioritized with importance exponent `beta` where there is a tree, uniformly
    /// otherwise. Prioritized batches are stratified (one draw per equal part of the total priority).
    ///
    /// # Errors
    /// [`SampleError::Empty`] before anything was inserted; [`SampleError::Contended`] where rows that were drawn kept changing;
    /// [`SampleError::FramesGone`] where most of them had lost a frame.
    pub fn sample(&mut self, batch: &mut Batch, beta: f32, random: &mut impl Rng) -> Result<(), SampleError> {
        batch.vanished.clear();
        batch.largest_weight = self.draw(&mut batch.as_rows(), beta, random)?;
        self.count_sampled(batch.rows(), batch.counted());
        Ok(())
    }

    /// As [`Self::sample`], into memory that somebody else provides. Returns the largest importance weight.
    ///
    /// # Errors
    /// As [`Self::sample`].
    ///
    /// # Panics
    /// When the parts of `rows` have not all room for the same number of rows of the schema.
    pub fn sample_rows<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        let largest_weight = self.draw(rows, beta, random)?;
        self.count_sampled(rows.slots.len(), rows.slots.len());
        Ok(largest_weight)
    }

    fn draw<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        let (segment, process, view) = (self.segment, self.process, &self.view);
        let Scratch { insertion: Insertion { differences, .. }, drawing } = &mut self.scratch;
        view.draw(drawing, rows, beta, random, |missing, vanished| {
            count(process, Counter::Redrawn, missing as u64);
            if !vanished.is_empty() {
                let operation = begin(segment, view, process);
                remove(view, vanished, differences);
                vanished.clear();
                drop(operation);
            }
        })
    }

    /// Count to this process what a [`super::Sampler`] of its own has drawn: that one has no counters.
    pub fn count_drawn_ahead(&self, rows: u64, redrawn: u64) {
        self.count(Counter::Sampled, rows);
        self.count(Counter::Redrawn, redrawn);
    }

    fn count_sampled(&self, rows: usize, counted: usize) {
        self.view.count_sampled(rows, counted);
        self.count(Counter::Sampled, rows as u64);
    }

    /// Store a frame for the transitions that will name it.
    ///
    /// # Panics
    /// When no field is made of frames, or the frame has not their size.
    pub fn write_frame(&self, frame: &[u8]) -> Target {
        assert_eq!(frame.len(), self.segment.layout().sizes().frame_bytes, "bytes of a frame");
        let frames = self.frames().expect("a schema with frames has a frame store");
        let operation = self.begin();
        let name = frames.write(frame, self.process.index());
        drop(operation);
        name
    }

    /// Set the priorities of the transitions in `batch`. Those overwritten meanwhile are dropped, and so are values
    /// that are no priority (NaN, infinite, negative); both are counted, and so are those that are kept as the largest that
    /// the tree has, since they are larger. What a [`super::Sampler`] that drew the batch could not take out of the tree is
    /// taken out.
    pub fn update_priorities(&mut self, batch: &Batch, priorities: impl Iterator<Item = Option<Priority>>) {
        self.update_named(&batch.slots, &batch.generations, priorities);
        if !batch.vanished.is_empty() {
            let operation = self.begin();
            remove(&self.view, &batch.vanished, &mut self.scratch.insertion.differences);
            drop(operation);
        }
    }

    /// As [`Self::update_priorities`], of the transitions that were in `slots` in these generations. Returns how many are
    /// there no more.
    pub fn update_named(&mut self, slots: &[usize], generations: &[u64], priorities: impl Iterator<Item = Option<Priority>>) -> u64 {
        let operation = self.begin();
        let Some(tree) = &self.view.tree else { return 0 };
        let (mut refused, mut saturated, mut nobodys) = (0, 0, 0);
        let mut largest = Priority::SMALLEST;
        let names = slots.iter().copied().zip(generations.iter().copied());
        let changes = names.zip(priorities).filter_map(|((slot, generation), priority)| {
            if SumTree::is_nobodys(generation) {
                nobodys += 1;
                return None;
            }
            let Some(priority) = priority else {
                refused += 1;
                return None;
            };
            largest = largest.max(priority);
            saturated += u64::from(priority == Priority::LARGEST);
            Some((slot, generation, priority))
        });
        let stale = tree.update(changes, &mut self.scratch.insertion.differences) + nobodys;
        self.view.raise_largest_priority(largest);
        drop(operation);
        self.count(Counter::StalePriorities, stale);
        self.count(Counter::RefusedPriorities, refused);
        self.count(Counter::SaturatedPriorities, saturated);
        stale
    }
}

/// Announce an operation of `process`.
fn begin<'a>(segment: &'a Segment, view: &ReplayView<'_>, process: ProcessSlot<'a>) -> Operation<'a> {
    process.begin_operation(segment.control(), || take_over_from_the_dead(segment, view.schema()))
}

fn count(process: ProcessSlot<'_>, counter: Counter, amount: u64) {
    if amount != 0 {
        process.counters().add(counter, amount);
    }
}

/// Take out of the tree what can never be drawn again, inside an operation.
fn remove(view: &ReplayView<'_>, vanished: &[(usize, u64)], differences: &mut Differences) {
    if let Some(tree) = view.tree() {
        tree.update(vanished.iter().map(|&(slot, generation)| (slot, generation, Priority::NEVER)), differences);
    }
}
