//! Inserting what is staged: for a participant inside an operation, and for whoever repairs behind the gate.

use std::ops::Range;

use super::priority::Priority;
use super::staging::StagingArea;
use super::sum_tree::Differences;
use super::target::Target;
use super::view::ReplayView;
use crate::sync::Ordering;

/// Room to insert in, kept from call to call so that none allocates.
#[derive(Default)]
pub(super) struct Insertion {
    pub(super) differences: Differences,
    /// Slots and generations of the last transitions inserted.
    pub(super) claimed: Vec<(usize, u64)>,
    /// Slots that had been left to whoever stopped in the middle of them.
    pub(super) skipped: u64,
    /// Priorities that were larger than the largest that the tree keeps.
    pub(super) saturated: u64,
}

impl ReplayView<'_> {
    /// Move everything staged into the store, at most `most` transitions at once, in the name of `owner`, and empty the area.
    /// Whoever calls may change the replay: `begin` says so before each step and returns what ends it. `moved` is told of each.
    /// Returns how many transitions were moved.
    pub(super) fn flush<G>(
        &self,
        work: &mut Insertion,
        area: StagingArea<'_>,
        (most, owner): (usize, usize),
        mut begin: impl FnMut() -> G,
        mut moved: impl FnMut(&Insertion),
    ) -> usize {
        let (committed, first) = area.progress();
        let mut flushed = first;
        while flushed < committed {
            let until = committed.min(flushed + most);
            let operation = begin();
            self.insert(work, area, flushed..until, owner);
            flushed = until;
            area.set_progress(committed, flushed);
            drop(operation);
            moved(work);
        }
        self.control.signal_progress();
        committed - first
    }

    fn insert(&self, work: &mut Insertion, area: StagingArea<'_>, staged: Range<usize>, owner: usize) {
        let Insertion { differences, claimed, skipped, saturated } = work;
        *skipped = self.claim_slots(claimed, area, staged.clone(), owner);
        // Lazy writing: nobody can draw these slots from here on.
        if let Some(tree) = &self.tree {
            tree.clear(claimed, differences);
        }
        for (index, &(slot, generation)) in staged.clone().zip(&*claimed) {
            self.store().write(slot, area.row(index));
            self.store().publish(slot, generation, owner);
        }
        *saturated = 0;
        if let Some(tree) = &self.tree {
            let largest = self.largest_priority();
            let mut largest_given = Priority::SMALLEST;
            let changes = staged.zip(&*claimed).map(|(index, &(slot, generation))| {
                let given = area.priority(index);
                *saturated += u64::from(given == Some(Priority::LARGEST));
                largest_given = largest_given.max(given.unwrap_or(Priority::SMALLEST));
                (slot, generation, given.unwrap_or(largest))
            });
            // A slot claimed again in between has a new generation, and its leaf refuses this priority.
            tree.update(changes, differences);
            self.raise_largest_priority(largest_given);
        }
        self.control.inserted().fetch_add(claimed.len() as u64, Ordering::Relaxed);
    }

    /// Claim a slot for each of the staged transitions; returns how many were skipped.
    fn claim_slots(&self, claimed: &mut Vec<(usize, u64)>, area: StagingArea<'_>, staged: Range<usize>, owner: usize) -> u64 {
        let store = self.store();
        let count = staged.len();
        let start = self.control.claimed().fetch_add(count as u64, Ordering::Relaxed);
        claimed.clear();
        let mut skipped = 0;
        for offset in 0..count {
            let mut slot = store.slot_of(start + offset as u64);
            let index = staged.start + offset;
            let generation = loop {
                let announce = |generation| area.set_target(index, Some(Target { slot, generation }));
                if let Some(generation) = store.claim(slot, owner, announce) {
                    break generation;
                }
                // Somebody stopped in the middle of this slot and was lapped; leave it to them.
                skipped += 1;
                slot = store.slot_of(self.control.claimed().fetch_add(1, Ordering::Relaxed));
            };
            claimed.push((slot, generation));
        }
        skipped
    }
}
