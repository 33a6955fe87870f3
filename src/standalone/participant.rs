//! A place in the process table that this process has taken for one kind of work.

use super::ReplayError;
use super::sharing::{Memory, Sharing};
use crate::rendezvous::Attachment;
use crate::replay::{Scratch, is_unfinished, leaderless};
use crate::segment::Segment;
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::sync::monotonic_ns;

/// How often a participant looks whether another has died, and a guest whether its run has ended.
const LOOK_INTERVAL_NS: u64 = 1_000_000_000;
/// How long a process waits for a place while dead processes have some: another process may be about to repair after
/// them.
const PATIENCE_NS: u64 = 1_000_000_000;

/// One side of a process's work, writing or reading, with a place of its own: both may go on at once in two threads.
pub(super) struct Participant {
    /// Whether its place is among those that stage transitions.
    stages: bool,
    place: Option<Place>,
    next_look_ns: u64,
    pub(super) scratch: Scratch,
}

/// A slot of the process table that is this process's.
struct Place {
    slot: usize,
    /// The connection by which a guest has got the place, kept for as long as it has it; `None` for the first place,
    /// whose connection the handle has.
    _attachment: Option<Attachment>,
}

impl Participant {
    /// The side that adds transitions.
    pub(super) fn writer() -> Self {
        Self { stages: true, place: None, next_look_ns: 0, scratch: Scratch::default() }
    }

    /// The side that draws.
    pub(super) fn reader() -> Self {
        Self { stages: false, ..Self::writer() }
    }

    /// A guest in the place that the supervisor has promised to it.
    pub(super) fn guest(segment: &Segment, attachment: &Attachment) -> Result<Self, ReplayError> {
        occupy(segment, attachment)?;
        Ok(Self { place: Some(Place { slot: attachment.slot, _attachment: None }), ..Self::writer() })
    }

    /// The place, taken first if there is none yet. Now and then repairs after other processes that have died. `pause`
    /// waits a moment for another process that repairs; its error ends the wait for a place.
    pub(super) fn place<'a>(
        &mut self,
        memory: &'a Memory,
        pause: &mut dyn FnMut() -> Result<(), ReplayError>,
    ) -> Result<ProcessSlot<'a>, ReplayError> {
        let now = monotonic_ns();
        if now >= self.next_look_ns {
            // First, and again with every call once it fails: nothing else tells a guest of a run without checkpoints.
            memory.sharing.is_lost().map_or(Ok(()), Err)?;
            self.next_look_ns = now + LOOK_INTERVAL_NS;
            memory.repair_after_the_dead();
        }
        self.repair(memory)?;
        memory.check()?;
        let slot = match &self.place {
            Some(place) => place.slot,
            None => self.place.insert(Place::take(memory, self.stages, pause)?).slot,
        };
        Ok(memory.segment.processes().slot(slot))
    }

    /// Repair after an operation of this process that ended half-way, by a panic, and give up the place in which it
    /// did: in a run, to the supervisor, which repairs.
    pub(super) fn repair(&mut self, memory: &Memory) -> Result<(), ReplayError> {
        let Memory { segment, schema, sharing } = memory;
        let slot = self.place.as_ref().map(|place| segment.processes().slot(place.slot));
        let Some(slot) = slot.filter(|&slot| is_unfinished(segment, slot)) else { return Ok(()) };
        match sharing {
            Sharing::Run { .. } => slot.announce_leaving(),
            Sharing::Private | Sharing::Participants if leaderless::repair_and_release(segment, schema, slot) => {}
            Sharing::Private | Sharing::Participants => return Err(ReplayError::unrepaired(segment)),
        }
        self.place = None;
        Ok(())
    }

    /// Give the place back.
    pub(super) fn leave(&mut self, memory: &Memory) {
        if self.repair(memory).is_err() {
            // Another process repairs: this place is repaired and freed after the death of this process.
            return;
        }
        let Some(place) = self.place.take() else { return };
        let slot = memory.segment.processes().slot(place.slot);
        match memory.sharing {
            Sharing::Run { .. } => slot.announce_leaving(),
            Sharing::Private | Sharing::Participants => {
                // The phase tells others that the process was not killed.
                slot.enter(Phase::Leaving);
                slot.release();
            }
        }
    }
}

impl Place {
    fn take(memory: &Memory, stages: bool, pause: &mut dyn FnMut() -> Result<(), ReplayError>) -> Result<Self, ReplayError> {
        let Memory { segment, schema, sharing } = memory;
        if let Sharing::Run { .. } = sharing {
            let attachment = memory.attach_again()?;
            occupy(segment, &attachment)?;
            return Ok(Self { slot: attachment.slot, _attachment: Some(attachment) });
        }
        segment.check_namespaces()?;
        let sizes = segment.layout().sizes();
        let places = if stages { 0..sizes.stagers } else { sizes.stagers..sizes.processes };
        let free = || {
            places.clone().map(|index| segment.processes().slot(index)).find(|slot| {
                let generation = slot.reserve(Role::Participant, slot.index());
                generation.is_some_and(|generation| slot.occupy(std::process::id(), generation))
            })
        };
        let mut may_be_freed = true;
        let mut is_late = false;
        let give_up_ns = monotonic_ns() + PATIENCE_NS;
        loop {
            if let Some(slot) = free() {
                return Ok(Self { slot: slot.index(), _attachment: None });
            }
            if !may_be_freed {
                return Err(ReplayError::Full { participants: sizes.stagers });
            }
            if is_late {
                return Err(ReplayError::unrepaired(segment));
            }
            // Noted before the last look: a process that stood still for so long itself looks once more.
            is_late = monotonic_ns() >= give_up_ns;
            // A dead process's place is free only once it was repaired after, by this process or by another that is
            // doing so.
            leaderless::sweep(segment, schema);
            may_be_freed = places.clone().any(|index| segment.processes().slot(index).dead_owner().is_some());
            if may_be_freed {
                pause()?;
            }
        }
    }
}

/// Take the place that the supervisor has promised.
fn occupy(segment: &Segment, attachment: &Attachment) -> Result<(), ReplayError> {
    let slot = segment.processes().slot(attachment.slot);
    if !slot.occupy(std::process::id(), attachment.generation) {
        return Err(ReplayError::RunEnded);
    }
    slot.enter(Phase::Idle);
    Ok(())
}
