//! Takes rows in order, each once: for learners of trajectories.
//!
//! The sum tree tells which rows are fresh. A row is inserted with a priority, and the process that takes it leaves
//! its leaf without an owner, by a compare-and-swap in which one process alone succeeds. So there is no cursor that a
//! death could leave astray: the oldest fresh row is the first with a priority behind the place where the next row
//! will be written, and the root says how many there are. The repair of a flush, which also makes the tree exact
//! again, serves these rows as it serves all others; a leaf without an owner under a published row tells it that the
//! row was taken, and is left alone. (One row per dead actor may be learned from twice all the same: if the row was
//! inserted, taken and overwritten while its actor stood still before noting the insertion, and the actor is then
//! killed.)

use rand::{Rng, RngExt};

use super::batch::Batch;
use super::limiter::wait;
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

    /// Wait until there are `count` rows that nobody has taken. `false` if the run ends first, or if `idle`, which is
    /// called before every sleep, returns `false`.
    pub fn wait_for_fresh(&self, count: u64, idle: &mut dyn FnMut() -> bool) -> bool {
        wait(self.control, || self.fresh() >= count, idle)
    }

    /// Copy a row that was taken before, drawn at random, into row `at` of `batch`. `false` if the slot that was
    /// drawn has no such row: its row waits to be taken, or is being written.
    ///
    /// # Panics
    /// If `batch` has no row `at`.
    pub fn draw_taken(&self, batch: &mut Batch, at: usize, random: &mut impl Rng) -> bool {
        let slots = self.claimed_slots();
        if slots == 0 {
            return false;
        }
        let slot = random.random_range(0..slots);
        // The leaf of a row that was taken has no owner. The leaf of a row that is being inserted has its generation
        // already, without a priority.
        let is_taken = || self.leaf_tag(slot).is_none();
        if !is_taken() {
            return false;
        }
        let Ok(generation) = self.reader().read(slot, &mut batch.as_rows(), at, &mut Vec::new()) else { return false };
        // Once more, for the row that was read: the slot may have been written anew in between. The leaf of a new row
        // gets its generation before the row is published with Release, and the read acquired that.
        if !is_taken() {
            return false;
        }
        batch.set_name(at, slot, generation);
        true
    }
}

impl Replay<'_> {
    /// Copy the oldest row that nobody has taken into row `at` of `batch`, and take it: no other process will.
    /// `false` if there is none now. A row that is being overwritten, perhaps for long, does not hold up those behind
    /// it.
    ///
    /// # Panics
    /// If the replay has no tree, or `batch` has no row `at`.
    pub fn take(&mut self, batch: &mut Batch, at: usize) -> bool {
        let mut names = Vec::new();
        for slot in self.store().oldest_first(self.control.claimed().load(Ordering::Relaxed)) {
            if self.tree().is_none_or(|tree| tree.raw_priority(slot) == Priority::NEVER) {
                continue;
            }
            // Copied before it is taken: the process that has taken it has it whole, whatever overwrites it afterwards.
            let Ok(generation) = self.reader().read(slot, &mut batch.as_rows(), at, &mut names) else { continue };
            if self.mark_taken(slot, generation) {
                batch.set_name(at, slot, generation);
                return true;
            }
        }
        false
    }
}
