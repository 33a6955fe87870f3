//! Putting batches together from fragments, in the order in which these were inserted; each fragment is taken by one
//! learner. A part of each batch may be replayed: drawn at random from fragments that were taken before.

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

/// Most draws for each fragment to be replayed: a draw may find one that is too old, or that nobody has taken yet.
const REPLAY_ATTEMPTS: usize = 16;
/// Time between two looks for fragments, if others took those that were there.
const PAUSE: Duration = Duration::from_micros(200);

/// A learner's part of a batch, while it is put together.
pub(super) struct Assembly<'a> {
    reuse: Reuse,
    control: Control<'a>,
    process: ProcessSlot<'a>,
    replay: Replay<'a>,
    batch: Batch,
    /// Rows of the batch that are filled. It may stay incomplete for a while, since other learners take fragments too.
    filled: usize,
}

impl<'a> Assembly<'a> {
    /// An empty batch for so many fragments.
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

    /// Whether there are as many new fragments as the batch lacks.
    pub(super) fn is_ready(&self) -> bool {
        self.replay.fresh() >= self.missing()
    }

    /// Wait until there are as many new fragments as the batch lacks. `idle` is called before every sleep and may end
    /// the waiting by returning `false`, which is then the answer. When the run ends, the answer is `false` too.
    pub(super) fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        self.replay.wait_for_fresh(self.missing(), idle)
    }

    /// Take the fragments that are there, up to a complete batch. Returns whether the batch is complete.
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

    /// Hand out the complete batch. The next one is put together in `room`, or in a new buffer without it.
    pub(super) fn finish(&mut self, room: Option<Batch>) -> Batch {
        self.filled = 0;
        let room = room.unwrap_or_else(|| self.batch.clone());
        std::mem::replace(&mut self.batch, room)
    }

    /// Take fragments until the batch is complete. Returns `false` if the run ends before that, or nobody
    /// wants the batch any more.
    pub(super) fn complete(&mut self, random: &mut Random, is_wanted: &dyn Fn() -> bool) -> bool {
        while !self.fill(random) {
            // Others may have taken what was there, or take long to write its slots: they need the core more.
            thread::sleep(PAUSE);
            if !is_wanted() || !self.wait(&mut || is_wanted()) {
                return false;
            }
        }
        true
    }

    /// New fragments that the batch lacks. An empty batch begins with replayed ones, which need not be new.
    fn missing(&self) -> u64 {
        let replayed = if self.filled == 0 { self.reuse.replayed } else { 0 };
        (self.batch.rows() - self.filled - replayed) as u64
    }

    /// Begin the batch with fragments that were taken before. If there are too few, as at the beginning of a run, new
    /// ones make up for them.
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

    /// Whether the parameters that made fragment number `row` are too many updates behind the newest ones.
    fn is_too_old(&self, row: usize) -> bool {
        let updates = self.control.updates().load(Ordering::Relaxed);
        let lag_updates = updates.saturating_sub(self.updates_of(row));
        self.reuse.max_policy_lag_updates.is_some_and(|most| lag_updates > most)
    }

    /// Number of updates in the parameters that made fragment number `row`.
    fn updates_of(&self, row: usize) -> u64 {
        let bytes = &self.batch.column(PARAMETER_UPDATES).bytes()[8 * row..][..8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}
