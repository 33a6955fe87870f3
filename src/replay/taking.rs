//! Taking rows in order, each once: for who learns from trajectories.
//!
//! The sum tree tells what is fresh: a row is inserted with a priority, and whoever takes it sets the priority to zero, by a compare-and-swap
//! that one process alone succeeds in. So there is no cursor that a death could leave astray: the oldest fresh row is the first with a
//! priority behind the place where the next one will be written, and the root says how many there are. What repairs a flush and makes the
//! tree exact again serves these rows as it serves all others.

use super::batch::Batch;
use super::limiter::PATIENCE;
use super::priority::Priority;
use super::sum_tree::SumTree;
use super::table::Replay;
use super::view::ReplayView;
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::sync::Ordering;

/// The priority of a row that nobody has taken.
pub const FRESH: Priority = Priority::ONE;

/// Rows looked at before a call gives up for now: so many were taken by others, or changed, while it looked.
const LOOKS: usize = 64;

/// Rows that nobody has taken yet, of rows inserted with [`FRESH`].
pub fn fresh_rows(tree: &SumTree<'_>) -> u64 {
    tree.total() / FRESH.0
}

impl ReplayView<'_> {
    /// Rows that nobody has taken yet; none in a replay without a tree.
    pub fn fresh(&self) -> u64 {
        self.tree.as_ref().map_or(0, fresh_rows)
    }

    /// The slot of the oldest row that nobody has taken.
    fn oldest_fresh(&self) -> Option<usize> {
        let tree = self.tree.as_ref()?;
        let capacity = self.store().capacity();
        let next = usize::try_from(self.control.claimed().load(Ordering::Relaxed) % capacity as u64).unwrap_or(0);
        (next..capacity).chain(0..next).find(|&slot| tree.raw_priority(slot) != Priority::NEVER)
    }

    /// Wait until so many rows are there that nobody has taken. `false` when the run ends first, or when `idle`, which is called before every
    /// sleep, says so.
    pub fn wait_for_fresh(&self, count: u64, idle: &mut dyn FnMut() -> bool) -> bool {
        let ended = || matches!(self.control.run_state(), RunState::Stopping | RunState::Poisoned);
        while self.fresh() < count {
            if ended() || !idle() {
                return false;
            }
            self.control.wait_for_progress(PATIENCE, || self.fresh() >= count || ended());
        }
        true
    }
}

impl Replay<'_> {
    /// Copy the oldest row that nobody has taken into row `at` of `batch` and take it: no other process will. `false` when there is none
    /// now.
    ///
    /// # Panics
    /// When the replay has no tree, or `batch` not so many rows.
    pub fn take(&mut self, batch: &mut Batch, at: usize) -> bool {
        let mut names = Vec::new();
        for _ in 0..LOOKS {
            let Some(slot) = self.oldest_fresh() else { return false };
            // Copied before it is taken: who has taken it has it whole, whatever overwrites it afterwards.
            let Ok(generation) = self.reader().read(slot, &mut batch.as_rows(), at, &mut names) else { continue };
            if self.mark_taken(slot, generation) {
                (batch.slots[at], batch.generations[at], batch.weights[at]) = (slot, generation, 1.0);
                self.count(Counter::Sampled, 1);
                self.control.sampled().fetch_add(1, Ordering::Relaxed);
                self.control.signal_progress();
                return true;
            }
        }
        false
    }
}
