//! The replay as one of its processes uses it (Reverb: table): insert what is staged, sample, update priorities.

use std::ops::Deref;

use rand::Rng;

use super::batch::{Batch, Rows};
use super::insertion::Insertion;
use super::leaderless::take_over_from_the_dead;
use super::name::Name;
use super::priority::Priority;
use super::sampling::{Drawing, SampleError};
use super::schema::Schema;
use super::staging::StagingArea;
use super::sum_tree::{Differences, SumTree};
use super::view::ReplayView;
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::processes::{Operation, ProcessSlot};
use crate::sync::Ordering;

/// The replay as one process uses it. Every change is announced in the process's slot first. Dereferences to a
/// [`ReplayView`] for reading.
pub struct Replay<'a> {
    hold: Hold<'a>,
    scratch: Scratch,
}

/// The replay with the process that changes it: a [`Replay`] without its scratch, which is borrowed mutably beside it.
struct Hold<'a> {
    segment: &'a Segment,
    view: ReplayView<'a>,
    process: ProcessSlot<'a>,
}

impl<'a> Hold<'a> {
    /// Announce an operation: to be held while the replay is changed.
    fn announce(&self) -> Operation<'a> {
        let Self { segment, view, process } = self;
        process.begin_operation(segment.control(), || take_over_from_the_dead(segment, view.schema()))
    }

    fn count(&self, counter: Counter, amount: u64) {
        if amount != 0 {
            self.process.counters().add(counter, amount);
        }
    }

    /// Take transitions out of the tree that can never be drawn again.
    fn remove(&self, vanished: &[(usize, u64)], differences: &mut Differences) {
        let operation = self.announce();
        if let Some(tree) = self.view.tree() {
            tree.update(vanished.iter().map(|&(slot, generation)| (slot, generation, Priority::NEVER)), differences);
        }
        drop(operation);
    }
}

/// Scratch memory, kept from call to call so that none allocates.
#[derive(Default)]
pub struct Scratch {
    insertion: Insertion,
    drawing: Drawing,
}

impl<'a> Deref for Replay<'a> {
    type Target = ReplayView<'a>;

    fn deref(&self) -> &ReplayView<'a> {
        &self.hold.view
    }
}

impl<'a> Replay<'a> {
    /// The replay in `segment`, for the process in `process`.
    pub fn new(segment: &'a Segment, schema: Schema, process: ProcessSlot<'a>) -> Self {
        Self::with_scratch(segment, schema, process, Scratch::default())
    }

    /// As [`Replay::new`], with the scratch of an earlier `Replay` in the same segment: allocates next to nothing.
    pub fn with_scratch(segment: &'a Segment, schema: Schema, process: ProcessSlot<'a>, scratch: Scratch) -> Self {
        Self { hold: Hold { segment, view: ReplayView::new(segment, schema), process }, scratch }
    }

    /// End the use of the replay and keep the scratch.
    pub fn into_scratch(self) -> Scratch {
        self.scratch
    }

    /// Take the row in `slot` for this process. `false` if another process has taken it, or it has been overwritten.
    pub(super) fn mark_taken(&mut self, slot: usize, generation: u64) -> bool {
        let Self { hold, scratch } = self;
        let control = hold.view.control;
        let operation = hold.announce();
        let tree = hold.view.tree().expect("rows are taken from a replay with a tree");
        let taken = tree.take(slot, generation, &mut scratch.insertion.differences);
        if taken {
            control.sampled().fetch_add(1, Ordering::Relaxed);
        }
        drop(operation);
        if taken {
            hold.count(Counter::Sampled, 1);
            control.signal_progress();
        }
        taken
    }

    /// Move everything staged into the store, and empty the area. Returns how many transitions were moved.
    pub fn flush(&mut self, area: StagingArea<'_>) -> usize {
        self.flush_with(area, |_| ())
    }

    /// As [`Self::flush`]. `moved` is called after each operation with the slot and generation of each transition
    /// that it moved, in order.
    pub fn flush_with(&mut self, area: StagingArea<'_>, mut moved: impl FnMut(&[(usize, u64)])) -> usize {
        let Self { hold, scratch } = self;
        let owner = hold.process.index();
        scratch.insertion.flush(
            &hold.view,
            area,
            owner,
            || hold.announce(),
            |insertion| {
                moved(&insertion.claimed);
                hold.count(Counter::Inserted, insertion.claimed.len() as u64);
                hold.count(Counter::SkippedSlots, insertion.skipped);
                hold.count(Counter::SaturatedPriorities, insertion.saturated);
            },
        )
    }

    /// Draw `batch.rows()` transitions: prioritized with importance exponent `beta` where there is a tree, uniformly
    /// otherwise. Prioritized batches are stratified (one draw per equal part of the total priority).
    ///
    /// # Errors
    /// [`SampleError::Empty`] before anything was inserted; [`SampleError::Contended`] if rows that were drawn kept
    /// changing; [`SampleError::FramesGone`] if most of them had lost a frame.
    pub fn sample(&mut self, batch: &mut Batch, beta: f32, random: &mut impl Rng) -> Result<(), SampleError> {
        batch.vanished.clear();
        batch.largest_weight = self.draw(&mut batch.as_rows(), beta, random)?;
        self.count_sampled(batch.rows(), batch.counted());
        Ok(())
    }

    /// As [`Self::sample`], into the caller's memory. Returns the largest importance weight.
    ///
    /// # Errors
    /// As [`Self::sample`].
    ///
    /// # Panics
    /// If the parts of `rows` do not all have room for the same number of rows of the schema.
    pub fn sample_rows<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        let largest_weight = self.draw(rows, beta, random)?;
        self.count_sampled(rows.slots.len(), rows.slots.len());
        Ok(largest_weight)
    }

    /// As [`Self::sample_rows`], without counting the samples: the rate limiter does not notice.
    ///
    /// # Errors
    /// As [`Self::sample`].
    ///
    /// # Panics
    /// As [`Self::sample_rows`].
    pub fn look<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        let largest_weight = self.draw(rows, beta, random)?;
        self.hold.count(Counter::Sampled, rows.slots.len() as u64);
        Ok(largest_weight)
    }

    fn draw<C: AsMut<[u8]>>(&mut self, rows: &mut Rows<'_, C>, beta: f32, random: &mut impl Rng) -> Result<f32, SampleError> {
        let Self { hold, scratch: Scratch { insertion, drawing } } = self;
        hold.view.draw(drawing, rows, beta, random, |missing, vanished| {
            hold.count(Counter::Redrawn, missing as u64);
            if !vanished.is_empty() {
                hold.remove(vanished, &mut insertion.differences);
                vanished.clear();
            }
        })
    }

    /// Add to this process's counters what its [`super::Sampler`], which has no counters, has drawn.
    pub fn count_drawn_ahead(&self, rows: u64, redrawn: u64) {
        self.hold.count(Counter::Sampled, rows);
        self.hold.count(Counter::Redrawn, redrawn);
    }

    fn count_sampled(&self, rows: usize, counted: usize) {
        self.hold.view.control.count_sampled(rows, counted);
        self.hold.count(Counter::Sampled, rows as u64);
    }

    /// Store a frame for the transitions that will name it. Returns its name.
    ///
    /// # Panics
    /// If no field is made of frames, or the frame has another size than theirs.
    pub fn write_frame(&self, frame: &[u8]) -> Name {
        let hold = &self.hold;
        assert_eq!(frame.len(), hold.segment.layout().sizes().frame_bytes, "bytes of a frame");
        let frames = self.frames().expect("a schema with frames has a frame store");
        let operation = hold.announce();
        let name = frames.write(frame, hold.process.index());
        drop(operation);
        name
    }

    /// Set the priorities of the transitions in `batch`. Transitions that were overwritten meanwhile are left out,
    /// and so are values that are no priority (`None`: NaN, infinite, negative). Both are counted, and so are
    /// priorities above the largest that the tree can hold, which is set in their place. Transitions that a
    /// [`super::Sampler`] met while it drew the batch, and that have lost a frame, are taken out of the tree: the
    /// sampler may not do that itself.
    pub fn update_priorities(&mut self, batch: &Batch, priorities: impl Iterator<Item = Option<Priority>>) {
        self.update_named(&batch.slots, &batch.generations, priorities);
        if !batch.vanished.is_empty() {
            self.hold.remove(&batch.vanished, &mut self.scratch.insertion.differences);
        }
    }

    /// As [`Self::update_priorities`], for the transitions with these slots and generations. Returns how many were
    /// overwritten.
    pub fn update_named(&mut self, slots: &[usize], generations: &[u64], priorities: impl Iterator<Item = Option<Priority>>) -> u64 {
        let Self { hold, scratch } = self;
        let operation = hold.announce();
        let Some(tree) = hold.view.tree() else { return 0 };
        let (mut refused, mut saturated, mut unowned) = (0, 0, 0);
        let names = slots.iter().copied().zip(generations.iter().copied());
        let changes = names.zip(priorities).filter_map(|((slot, generation), priority)| {
            if SumTree::is_unowned(generation) {
                unowned += 1;
                return None;
            }
            let Some(priority) = priority else {
                refused += 1;
                return None;
            };
            saturated += u64::from(priority == Priority::LARGEST);
            Some((slot, generation, priority))
        });
        let (stale, largest) = tree.update_and_compare(changes, &mut scratch.insertion.differences);
        let stale = stale + unowned;
        // Only by priorities that were set: an update that names rows from before `clear` must not raise it again.
        hold.view.control.raise_largest_priority(largest.0);
        drop(operation);
        hold.count(Counter::StalePriorities, stale);
        hold.count(Counter::RefusedPriorities, refused);
        hold.count(Counter::SaturatedPriorities, saturated);
        stale
    }
}
