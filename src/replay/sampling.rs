//! Draws batches, without changing store or tree. The caller is told which transitions can never be drawn again, and
//! takes them out of the tree if it may.

use std::time::Duration;

use rand::{Rng, RngExt};
use thiserror::Error;

use super::batch::{Batch, Rows};
use super::power;
use super::reader::Unreadable;
use super::schema::Schema;
use super::sum_tree::SumTree;
use super::view::ReplayView;
use crate::segment::Segment;
use crate::sync::{Ordering, sleep};

/// Rows fetched ahead of the one being copied.
const PREFETCH_DISTANCE: usize = 16;
/// Rows ahead of the one being copied whose frames are fetched.
const FRAMES_PREFETCH_DISTANCE: usize = 2;
/// Rounds in which rows that changed under the reader are drawn again.
const DRAWING_ROUNDS: usize = 1_000;
/// Rounds before the reader begins to sleep between rounds: it may be waiting for a repair.
const EAGER_ROUNDS: usize = 100;
/// After the eager rounds, one round in so many draws by the leaves alone, whatever the sums say: a walk over all
/// leaves.
const BY_LEAVES_EVERY: usize = 16;
const DRAWING_PAUSE: Duration = Duration::from_micros(200);

/// Why no batch could be drawn.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleError {
    /// There is nothing to sample: nothing was inserted yet, or another process has emptied the replay.
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
    /// Most rows that were drawn had lost a frame.
    #[error("{missing} transitions could not be drawn in {rounds} rounds: most in the replay have lost a frame")]
    FramesGone {
        /// Rows still missing.
        missing: usize,
        /// Rounds tried.
        rounds: usize,
    },
}

/// Draws batches and changes nothing but the count of samples ([`Self::look`] not even that): for a thread that has
/// no slot in the process table, and for readers.
pub struct Sampler<'a> {
    view: ReplayView<'a>,
    drawing: Drawing,
    redrawn: u64,
}

impl<'a> Sampler<'a> {
    /// A sampler of the replay in `segment`, whose rows follow `schema`.
    pub fn new(segment: &'a Segment, schema: Schema) -> Self {
        Self { view: ReplayView::new(segment, schema), drawing: Drawing::default(), redrawn: 0 }
    }

    /// As [`super::Replay::sample`], but transitions that have lost a frame stay in the tree until the priorities of
    /// the batch are written back.
    ///
    /// # Errors
    /// As [`super::Replay::sample`].
    pub fn sample(&mut self, batch: &mut Batch, beta: f32, random: &mut impl Rng) -> Result<(), SampleError> {
        self.look(batch, beta, random)?;
        self.view.control.count_sampled(batch.rows(), batch.counted());
        Ok(())
    }

    /// Rows that were drawn again because their slot changed meanwhile, since the last call.
    pub fn take_redrawn(&mut self) -> u64 {
        std::mem::take(&mut self.redrawn)
    }

    /// As [`Self::sample`], without counting the samples: the rate limiter does not notice.
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub fn look(&mut self, batch: &mut Batch, beta: f32, random: &mut impl Rng) -> Result<(), SampleError> {
        batch.vanished.clear();
        let redrawn = &mut self.redrawn;
        let drawn = self.view.draw(&mut self.drawing, &mut batch.as_rows(), beta, random, |missing, _| *redrawn += missing as u64);
        batch.vanished.append(&mut self.drawing.vanished);
        batch.largest_weight = drawn?;
        Ok(())
    }
}

/// Scratch memory for drawing, kept from call to call so that none allocates.
#[derive(Default)]
pub(super) struct Drawing {
    pending: Vec<usize>,
    targets: Vec<u64>,
    slots: Vec<usize>,
    frame_names: Vec<u64>,
    /// Transitions that were met and have lost a frame: they can never be drawn again.
    vanished: Vec<(usize, u64)>,
    /// Rows that the last round missed because their transition has lost a frame.
    frames_gone: usize,
}

impl ReplayView<'_> {
    /// Fill `rows`, without counting them as sampled; returns the largest importance weight. After every round `met`
    /// is called with the number of rows that are still missing and with the transitions that can never be drawn
    /// again; those that it does not take out of the list stay in `drawing`.
    ///
    /// # Panics
    /// If the parts of `rows` do not all have room for the same number of rows of the schema.
    pub(super) fn draw<C: AsMut<[u8]>>(
        &self,
        drawing: &mut Drawing,
        rows: &mut Rows<'_, C>,
        beta: f32,
        random: &mut impl Rng,
        mut met: impl FnMut(usize, &mut Vec<(usize, u64)>),
    ) -> Result<f32, SampleError> {
        rows.check(self.reader.schema());
        let size = self.len();
        if size == 0 {
            return Err(SampleError::Empty);
        }
        let count = rows.slots.len();
        drawing.vanished.clear();
        drawing.pending.clear();
        drawing.pending.extend(0..count);
        let mut total = 0;
        let mut has_met_losses = false;
        for round in 0..DRAWING_ROUNDS {
            // Without a tree, no waiting brings a frame back. Out of a tree, other processes may take such
            // transitions meanwhile.
            let waits_in_vain = self.tree.is_none() && drawing.frames_gone == drawing.pending.len();
            if round > EAGER_ROUNDS {
                if self.is_emptied() {
                    return Err(SampleError::Empty);
                }
                if !waits_in_vain {
                    sleep(DRAWING_PAUSE);
                }
            }
            total = self.draw_slots(drawing, round, random);
            let missing = self.read_rows(drawing, rows, size, total);
            has_met_losses |= drawing.frames_gone > 0;
            met(missing, &mut drawing.vanished);
            if missing == 0 {
                if self.tree.is_some() {
                    power::raise(rows.weights, -beta);
                }
                return Ok(rows.weights.iter().copied().fold(0.0, f32::max));
            }
        }
        let missing = drawing.pending.len();
        let rounds = DRAWING_ROUNDS;
        // Transitions that have lost a frame may leave the tree as soon as they are met: if all have, the last rounds
        // met none.
        let is_emptied = self.tree.is_some() && total == 0 && has_met_losses;
        if is_emptied || 2 * drawing.frames_gone > missing {
            return Err(SampleError::FramesGone { missing, rounds });
        }
        Err(SampleError::Contended { missing, rounds })
    }

    /// Whether the replay was emptied, or is being emptied, by another process: there is nothing to draw then, however
    /// often rows are drawn again.
    fn is_emptied(&self) -> bool {
        // Relaxed: who misses it finds nothing to draw, and looks again.
        self.is_empty() || self.control.clearing().load(Ordering::Relaxed) != 0
    }

    /// Choose a slot for every pending row; returns the total priority that the slots were drawn from. The first
    /// round draws one slot from each equal part of the total, unless parts would be empty. While the total is zero,
    /// as when every slot is being written, each row gets [`SumTree::NOWHERE`].
    fn draw_slots(&self, drawing: &mut Drawing, round: usize, random: &mut impl Rng) -> u64 {
        let Drawing { pending, targets, slots, .. } = drawing;
        slots.resize(pending.len(), 0);
        let Some(tree) = &self.tree else {
            // A process claims a slot before it counts an insertion, but the two words may be seen in the other
            // order, which would leave nothing to draw from.
            let claimed = self.claimed_slots().max(1);
            slots.fill_with(|| random.random_range(0..claimed));
            return 0;
        };
        // Not at once: what the sums lack or promise too much has mostly arrived, or gone, sooner than all leaves are
        // added up.
        let is_in_vain = round > EAGER_ROUNDS && round.is_multiple_of(BY_LEAVES_EVERY);
        let goes_by_leaves = is_in_vain || round > 0 && tree.is_overdrawn();
        let total = if goes_by_leaves { tree.leaf_sum() } else { tree.total() };
        if total == 0 {
            slots.fill(SumTree::NOWHERE);
            return 0;
        }
        targets.clear();
        if round == 0 && total >= pending.len() as u64 {
            // Parts of equal length, the first few one unit longer, so that together they are the total exactly.
            let parts = pending.len().max(1) as u64;
            let (length, longer) = (total / parts, total % parts);
            targets.extend((0..pending.len() as u64).map(|part| {
                let first = part * length + part.min(longer);
                first + random.random_range(0..length + u64::from(part < longer))
            }));
        } else {
            targets.extend(pending.iter().map(|_| random.random_range(0..total)));
        }
        if goes_by_leaves {
            tree.find_by_leaves(targets, slots);
        } else {
            tree.find(targets, slots);
        }
        total
    }

    /// Copy the chosen rows. Rows that changed meanwhile stay pending; returns how many do. In place of importance
    /// weights this leaves `N P(i)`, to be raised to a power all at once.
    fn read_rows<C: AsMut<[u8]>>(&self, drawing: &mut Drawing, rows: &mut Rows<'_, C>, size: usize, total: u64) -> usize {
        let Drawing { pending, slots, frame_names, vanished, frames_gone, .. } = drawing;
        *frames_gone = 0;
        let slot_at = |position: usize| slots.get(position).copied().filter(|&slot| slot != SumTree::NOWHERE);
        (0..PREFETCH_DISTANCE).filter_map(slot_at).for_each(|slot| self.reader.store.prefetch(slot));
        let scale = size as f64 / total as f64;
        let mut missing = 0;
        for index in 0..pending.len() {
            if let Some(slot) = slot_at(index + PREFETCH_DISTANCE) {
                self.reader.store.prefetch(slot);
            }
            if let Some(slot) = slot_at(index + FRAMES_PREFETCH_DISTANCE) {
                self.reader.prefetch_frames(slot);
            }
            let row = pending[index];
            let slot = slots[index];
            let weight = if slot == SumTree::NOWHERE {
                None
            } else {
                match self.reader.read(slot, rows, row, frame_names) {
                    Ok(generation) => {
                        rows.slots[row] = slot;
                        rows.generations[row] = generation;
                        match &self.tree {
                            None => Some(1.0),
                            // The leaf must belong to the generation that was read.
                            Some(tree) => tree
                                .priority(slot, generation)
                                .filter(|priority| priority.0 != 0)
                                .map(|priority| (priority.0 as f64 * scale) as f32),
                        }
                    }
                    Err(Unreadable::Changing) => None,
                    Err(Unreadable::FrameGone(generation)) => {
                        *frames_gone += 1;
                        if self.tree.is_some() {
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
}

/// Out of line: this happens once in many thousand rows, and the loop that reads rows is faster without the code that
/// grows the vector.
#[cold]
fn remember(vanished: &mut Vec<(usize, u64)>, name: (usize, u64)) {
    vanished.push(name);
}
