//! Putting batches of fragments together, in the order in which fragments were inserted, each taken by one learner. A part of each batch
//! may be replayed: drawn at random from fragments that were taken before.

use std::thread;
use std::time::Duration;

use super::fragment::PARAMETER_UPDATES;
use super::fragments::Reuse;
use super::{Random, Seat};
use crate::replay::{Batch, Replay, Schema};
use crate::segment::control::Control;
use crate::segment::counters::Counter;
use crate::segment::processes::ProcessSlot;
use crate::sync::Ordering;

/// Draws for each fragment to be replayed: some find one that is too old, or that nobody has taken yet.
const REPLAY_ATTEMPTS: usize = 16;
/// Time between two looks for fragments where others took what was there.
const PAUSE: Duration = Duration::from_micros(200);

/// A learner's part of a batch, which is being put together.
pub(super) struct Assembly<'a> {
    reuse: Reuse,
    control: Control<'a>,
    process: ProcessSlot<'a>,
    replay: Replay<'a>,
    batch: Batch,
    /// How many of its rows are there: other learners take fragments too.
    filled: usize,
}

impl<'a> Assembly<'a> {
    /// Of so many fragments.
    pub(super) fn new(reuse: Reuse, fragments: usize, schema: &Schema, seat: &Seat<'a, '_>) -> Self {
        Self {
            reuse,
            control: seat.segment.control(),
            process: seat.process,
            replay: Replay::new(seat.segment, schema.clone(), seat.process),
            batch: Batch::new(schema, fragments),
            filled: 0,
        }
    }

    /// Whether there are as many fragments as it lacks.
    pub(super) fn is_ready(&self) -> bool {
        self.replay.fresh() >= self.missing()
    }

    /// Wait until there are. `idle` is called before every sleep and may end the waiting by returning `false`, which is then the answer, as
    /// when the run ends.
    pub(super) fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        self.replay.wait_for_fresh(self.missing(), idle)
    }

    /// Take what there is; whether the batch is complete.
    pub(super) fn fill(&mut self, random: &mut Random) -> bool {
        if self.filled == 0 {
            self.replay_some(random);
        }
        while self.filled < self.batch.rows() && self.replay.take(&mut self.batch, self.filled) {
            if self.is_too_old(self.filled) {
                self.process.counters().add(Counter::DroppedRows, 1);
            } else {
                self.filled += 1;
            }
        }
        self.filled == self.batch.rows()
    }

    /// The complete batch; `room`, if there is any, becomes the next one.
    pub(super) fn finish(&mut self, room: Option<Batch>) -> Batch {
        self.filled = 0;
        let room = room.unwrap_or_else(|| self.batch.clone());
        std::mem::replace(&mut self.batch, room)
    }

    /// Take until the batch is complete. `false` when the run ends before that, or nobody wants it any more.
    pub(super) fn complete(&mut self, random: &mut Random, is_wanted: &dyn Fn() -> bool) -> bool {
        while !self.fill(random) {
            // Others may have taken what was there, or its slots are being written for long: they need the core more.
            thread::sleep(PAUSE);
            if !is_wanted() || !self.wait(&mut || is_wanted()) {
                return false;
            }
        }
        true
    }

    /// New fragments that it lacks; it begins with those that are replayed.
    fn missing(&self) -> u64 {
        let replayed = if self.filled == 0 { self.reuse.replayed } else { 0 };
        (self.batch.rows() - self.filled - replayed) as u64
    }

    /// Begin the batch with fragments that were taken before. What is not found, as at the beginning of a run, new ones make up for.
    fn replay_some(&mut self, random: &mut Random) {
        for _ in 0..self.reuse.replayed * REPLAY_ATTEMPTS {
            if self.filled == self.reuse.replayed {
                break;
            }
            if self.replay.draw_taken(&mut self.batch, self.filled, random) && !self.is_too_old(self.filled) {
                self.filled += 1;
            }
        }
        self.process.counters().add(Counter::ReplayedRows, self.filled as u64);
    }

    /// Whether fragment number `row` was made by parameters of too long ago.
    fn is_too_old(&self, row: usize) -> bool {
        let updates = self.control.updates().load(Ordering::Relaxed);
        let lag_updates = updates.saturating_sub(self.updates_of(row));
        self.reuse.max_policy_lag_updates.is_some_and(|most| lag_updates > most)
    }

    /// Updates in the parameters that made fragment number `row`.
    fn updates_of(&self, row: usize) -> u64 {
        let bytes = &self.batch.column(PARAMETER_UPDATES).bytes()[8 * row..][..8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}
