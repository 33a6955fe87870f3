//! Taking rows in order, each once: for who learns from trajectories.
//!
//! The sum tree tells what is fresh: a row is inserted with a priority, and whoever takes it hands the leaf to nobody, by a
//! compare-and-swap that one process alone succeeds in. So there is no cursor that a death could leave astray: the oldest fresh row is the
//! first with a priority behind the place where the next one will be written, and the root says how many there are. What repairs a flush
//! and makes the tree exact again serves these rows as it serves all others; it finds a leaf that belongs to nobody under a published row,
//! and leaves what was taken alone. (A row may be learned from twice all the same, one for each actor that dies: when it was inserted,
//! taken and overwritten while its actor stood still before noting the insertion, and that actor is then killed.)

use rand::{Rng, RngExt};

use super::batch::Batch;
use super::limiter::PAUSE;
use super::priority::Priority;
use super::sum_tree::SumTree;
use super::table::Replay;
use super::view::ReplayView;
use crate::sync::Ordering;

/// The priority of a row that nobody has taken.
pub const FRESH: Priority = Priority::ONE;

/// Rows that nobody has taken yet, of rows inserted with [`FRESH`].
pub fn fresh_rows(tree: &SumTree<'_>) -> u64 {
    tree.total() / FRESH.0
}

impl ReplayView<'_> {
    /// Rows that nobody has taken yet; none in a replay without a tree.
    pub fn fresh(&self) -> u64 {
        self.tree.as_ref().map_or(0, fresh_rows)
    }

    /// Wait until so many rows are there that nobody has taken. `false` when the run ends first, or when `idle`, which is called before
    /// every sleep, says so.
    pub fn wait_for_fresh(&self, count: u64, idle: &mut dyn FnMut() -> bool) -> bool {
        let ended = || self.control.run_state().is_over();
        while self.fresh() < count {
            if ended() || !idle() {
                return false;
            }
            self.control.wait_for_progress(PAUSE, || self.fresh() >= count || ended());
        }
        true
    }

    /// Copy a row that was taken, drawn at random, into row `at` of `batch`. `false` when the draw found none: the row there waits to be
    /// taken, or is being written.
    ///
    /// # Panics
    /// When `batch` has not so many rows.
    pub fn draw_taken(&self, batch: &mut Batch, at: usize, random: &mut impl Rng) -> bool {
        let slots = self.claimed_slots();
        if slots == 0 {
            return false;
        }
        let slot = random.random_range(0..slots);
        // The leaf of a row that was taken is nobody's. That of one that is being inserted is its own already, if without a priority.
        let is_taken = || self.leaf_tag(slot).is_none();
        if !is_taken() {
            return false;
        }
        let Ok(generation) = self.reader().read(slot, &mut batch.as_rows(), at, &mut Vec::new()) else { return false };
        // Again, of the row that was read: the slot may have been written anew in between. Its leaf was made its own before it was
        // published with release, and reading it acquires that.
        if !is_taken() {
            return false;
        }
        (batch.slots[at], batch.generations[at], batch.weights[at]) = (slot, generation, 1.0);
        true
    }
}

impl Replay<'_> {
    /// Copy the oldest row that nobody has taken into row `at` of `batch` and take it: no other process will. `false` when there is none
    /// now. A row that somebody is just overwriting, perhaps for long, holds up none of those behind it.
    ///
    /// # Panics
    /// When the replay has no tree, or `batch` not so many rows.
    pub fn take(&mut self, batch: &mut Batch, at: usize) -> bool {
        let mut names = Vec::new();
        for slot in self.store().oldest_first(self.control.claimed().load(Ordering::Relaxed)) {
            if self.tree().is_none_or(|tree| tree.raw_priority(slot) == Priority::NEVER) {
                continue;
            }
            // Copied before it is taken: who has taken it has it whole, whatever overwrites it afterwards.
            let Ok(generation) = self.reader().read(slot, &mut batch.as_rows(), at, &mut names) else { continue };
            if self.mark_taken(slot, generation) {
                (batch.slots[at], batch.generations[at], batch.weights[at]) = (slot, generation, 1.0);
                return true;
            }
        }
        false
    }
}
