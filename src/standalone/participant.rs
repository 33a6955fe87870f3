//! A place in the process table, taken by this process for one kind of work.

use super::StandaloneError;
use crate::replay::{Schema, Scratch, leaderless};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::processes::{ProcessSlot, Role};
use crate::segment::system::forks;
use crate::sync::monotonic_ns;

/// How often a participant looks whether another has died.
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// One side of a process's work, writing or reading, with a place of its own: both may go on at once in two threads.
pub(super) struct Participant {
    slot: Option<usize>,
    /// Forks behind this process when it took the place: a child of a fork needs a place of its own.
    forks: u32,
    next_sweep_ns: u64,
    pub(super) scratch: Scratch,
}

impl Participant {
    /// Without a place yet.
    pub(super) fn new() -> Self {
        Self { slot: None, forks: 0, next_sweep_ns: 0, scratch: Scratch::default() }
    }

    /// In a place that somebody else gave us and takes back.
    pub(super) fn in_place(slot: usize) -> Self {
        Self { slot: Some(slot), forks: forks(), next_sweep_ns: u64::MAX, scratch: Scratch::default() }
    }

    /// The place, taken first if need be: among those that stage transitions when `stages`. Now and then looks after the
    /// others.
    pub(super) fn place<'a>(&mut self, segment: &'a Segment, schema: &Schema, stages: bool) -> Result<ProcessSlot<'a>, StandaloneError> {
        self.look_after_the_others(segment, schema);
        if segment.control().run_state() == RunState::Poisoned {
            return Err(StandaloneError::Inexact);
        }
        let index = match self.slot {
            // The place of a private replay was copied with everything else.
            Some(slot) if self.forks == forks() || segment.name().is_empty() => slot,
            _ => {
                let slot = take(segment, schema, stages)?;
                (self.slot, self.forks) = (Some(slot), forks());
                slot
            }
        };
        Ok(segment.processes().slot(index))
    }

    /// Repair after participants that have died, now and then.
    pub(super) fn look_after_the_others(&mut self, segment: &Segment, schema: &Schema) {
        let now = monotonic_ns();
        if now >= self.next_sweep_ns && !segment.name().is_empty() {
            self.next_sweep_ns = now + SWEEP_INTERVAL_NS;
            leaderless::sweep(segment, schema);
        }
    }

    /// Give the place back, if it is this process's.
    pub(super) fn leave(&mut self, segment: &Segment) {
        if let Some(slot) = self.slot.take()
            && self.forks == forks()
            && self.next_sweep_ns != u64::MAX
            // After a panic inside an operation the place stays taken: it is repaired once this process has ended.
            && !segment.processes().slot(slot).in_operation()
        {
            segment.processes().slot(slot).release();
        }
    }
}

fn take(segment: &Segment, schema: &Schema, stages: bool) -> Result<usize, StandaloneError> {
    let layout = segment.layout().parameters();
    let places = if stages { 0..layout.stagers } else { layout.stagers..layout.processes };
    let free = || places.clone().map(|index| segment.processes().slot(index)).find_map(occupied);
    // Places of the dead are free only after they have been repaired after.
    let slot = free().or_else(|| (!leaderless::sweep(segment, schema).is_empty()).then(free).flatten());
    slot.map(ProcessSlot::index).ok_or(StandaloneError::Full { participants: layout.stagers })
}

/// The slot, if it was free: then it is this process's.
fn occupied(slot: ProcessSlot<'_>) -> Option<ProcessSlot<'_>> {
    let generation = slot.reserve(Role::Participant, slot.index())?;
    slot.occupy(std::process::id(), generation).then_some(slot)
}
