//! The replay from outside: how full it is, how much it is used, and what waits in the staging areas.

use serde::Serialize;

use crate::replay::{Priority, StagingArea};
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::sync::Ordering;

/// The replay's counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Transitions that fit.
    pub capacity: usize,
    /// Transitions in the replay.
    pub size: u64,
    /// Size over capacity.
    pub fill: f64,
    /// Transitions for which a slot was claimed: the insert cursor.
    pub claimed: u64,
    /// Transitions inserted completely.
    pub inserted: u64,
    /// Transitions drawn.
    pub sampled: u64,
    /// Transitions drawn per transition inserted; absent before the first insert.
    pub samples_per_insert: Option<f64>,
    /// Slots passed over because another process was writing them.
    pub skipped_slots: u64,
    /// Transitions drawn again because their slot changed meanwhile.
    pub redrawn: u64,
    /// Priority updates dropped because their transition was overwritten.
    pub stale_priorities: u64,
    /// Priorities refused because they were not finite or negative.
    pub refused_priorities: u64,
    /// Priorities that were larger than the largest that the tree keeps (524,288), and were lowered to it.
    pub saturated_priorities: u64,
    /// Largest priority seen so far, which new transitions get.
    pub largest_priority: f64,
}

impl ReplayReport {
    /// The counts of `segment` now.
    pub(super) fn of(segment: &Segment) -> Self {
        let control = segment.control();
        let total = |counter| segment.processes().total(counter);
        let capacity = segment.layout().sizes().capacity;
        let inserted = control.inserted().load(Ordering::Relaxed);
        let sampled = control.sampled().load(Ordering::Relaxed);
        let size = inserted.min(capacity as u64);
        Self {
            capacity,
            size,
            fill: size as f64 / capacity as f64,
            claimed: control.claimed().load(Ordering::Relaxed),
            inserted,
            sampled,
            samples_per_insert: (inserted > 0).then(|| sampled as f64 / inserted as f64),
            skipped_slots: total(Counter::SkippedSlots),
            redrawn: total(Counter::Redrawn),
            stale_priorities: total(Counter::StalePriorities),
            refused_priorities: total(Counter::RefusedPriorities),
            saturated_priorities: total(Counter::SaturatedPriorities),
            largest_priority: control.largest_priority().load(Ordering::Relaxed) as f64 * Priority::SMALLEST.to_f64(),
        }
    }
}

/// One staging area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StagingReport {
    /// Slot of the process whose area it is.
    pub slot: usize,
    /// Transitions that fit.
    pub capacity: usize,
    /// Transitions written completely.
    pub committed: usize,
    /// Committed transitions that are already in the store.
    pub flushed: usize,
    /// Committed transitions that are not yet in the store.
    pub pending: usize,
}

/// All staging areas of `segment`.
pub(super) fn staging(segment: &Segment) -> Vec<StagingReport> {
    let area = |slot| {
        let area = StagingArea::of(segment, slot);
        let (committed, flushed) = area.progress();
        StagingReport { slot, capacity: area.capacity(), committed, flushed, pending: committed.saturating_sub(flushed) }
    };
    (0..segment.layout().sizes().stagers).map(area).collect()
}
