//! Moves staged transitions into the store: for a participant inside an operation, and for a repair behind the gate.

use std::ops::Range;

use super::name::Name;
use super::priority::Priority;
use super::staging::StagingArea;
use super::sum_tree::Differences;
use super::view::ReplayView;
use crate::sync::Ordering;

/// Scratch memory for inserting, kept from call to call so that none allocates, and what the last operation did.
#[derive(Default)]
pub(super) struct Insertion {
    pub(super) differences: Differences,
    /// Slot and generation of each transition of the last operation.
    pub(super) claimed: Vec<(usize, u64)>,
    /// Slots that the last operation passed over, because another process had stopped in the middle of writing them.
    pub(super) skipped: u64,
    /// Priorities of the last operation that were above the largest that the tree can hold, and became that.
    pub(super) saturated: u64,
}

impl Insertion {
    /// Move everything staged in `area` into the store in the name of `owner`, and empty the area. Returns how many
    /// transitions were moved.
    ///
    /// `announce` is called before each operation; what it returns is dropped after it. `moved` is called after each
    /// operation, with the transitions of that operation in `self`.
    pub(super) fn flush<G>(
        &mut self,
        view: &ReplayView<'_>,
        area: StagingArea<'_>,
        owner: usize,
        mut announce: impl FnMut() -> G,
        mut moved: impl FnMut(&Self),
    ) -> usize {
        let (committed, first) = area.progress();
        let mut flushed = first;
        while flushed < committed {
            let until = committed.min(flushed + view.chunk);
            let operation = announce();
            self.insert(view, area, flushed..until, owner);
            flushed = until;
            area.set_progress(committed, flushed);
            drop(operation);
            moved(self);
        }
        view.control.signal_progress();
        committed - first
    }

    fn insert(&mut self, view: &ReplayView<'_>, area: StagingArea<'_>, staged: Range<usize>, owner: usize) {
        self.claim_slots(view, area, staged.clone(), owner);
        let Self { differences, claimed, saturated, .. } = self;
        let store = view.store();
        // Lazy writing: nobody can draw these slots from here on.
        if let Some(tree) = view.tree() {
            tree.clear(claimed, differences);
        }
        for (index, &(slot, generation)) in staged.clone().zip(&*claimed) {
            store.write(slot, area.row(index));
            store.publish(slot, generation, owner);
        }
        *saturated = 0;
        if let Some(tree) = view.tree() {
            let largest = view.largest_priority();
            let mut largest_given = Priority::SMALLEST;
            let changes = staged.zip(&*claimed).map(|(index, &(slot, generation))| {
                let given = area.priority(index);
                *saturated += u64::from(given == Some(Priority::LARGEST));
                largest_given = largest_given.max(given.unwrap_or(Priority::SMALLEST));
                (slot, generation, given.unwrap_or(largest))
            });
            // A slot that was claimed again meanwhile has a new generation, and its leaf refuses this priority.
            tree.update(changes, differences);
            view.control.raise_largest_priority(largest_given.0);
        }
        view.control.count_inserted(claimed.len());
    }

    /// Claim a slot for each of the staged transitions, and count the slots that had to be skipped.
    fn claim_slots(&mut self, view: &ReplayView<'_>, area: StagingArea<'_>, staged: Range<usize>, owner: usize) {
        let store = view.store();
        let start = view.control.claimed().fetch_add(staged.len() as u64, Ordering::Relaxed);
        self.claimed.clear();
        self.skipped = 0;
        for (index, ticket) in staged.zip(start..) {
            let mut slot = store.slot_of(ticket);
            let generation = loop {
                let announce = |generation| area.set_destination(index, Some(Name { slot, generation }));
                if let Some(generation) = store.claim(slot, owner, announce) {
                    break generation;
                }
                // A process stopped in the middle of writing this slot, and the cursor has come round to it again: it
                // stays that process's.
                self.skipped += 1;
                slot = store.slot_of(view.control.claimed().fetch_add(1, Ordering::Relaxed));
            };
            self.claimed.push((slot, generation));
        }
    }
}
