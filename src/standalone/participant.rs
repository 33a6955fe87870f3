//! A place in the process table, taken by this process for one kind of work.

use super::StandaloneError;
use super::company::Company;
use crate::rendezvous::Attachment;
use crate::replay::{Schema, Scratch, is_unfinished, leaderless};
use crate::segment::Segment;
use crate::segment::processes::{Phase, ProcessSlot, Role};
use crate::sync::monotonic_ns;

/// How often a participant looks whether another has died, and a guest whether its run has ended.
const LOOK_INTERVAL_NS: u64 = 1_000_000_000;
/// How long a place is waited for while dead processes have some: somebody may be about to repair after them.
const PATIENCE_NS: u64 = 1_000_000_000;

/// One side of a process's work, writing or reading, with a place of its own: both may go on at once in two threads.
#[derive(Default)]
pub(super) struct Participant {
    place: Option<Place>,
    next_look_ns: u64,
    pub(super) scratch: Scratch,
}

/// Slot of the process table that is this process's.
struct Place {
    slot: usize,
    /// How the guest came by it, unless its first place; kept for as long as it has this one.
    _attachment: Option<Attachment>,
}

impl Participant {
    /// A guest in the place that the supervisor has promised to it.
    pub(super) fn guest(segment: &Segment, attachment: &Attachment) -> Result<Self, StandaloneError> {
        occupy(segment, attachment)?;
        Ok(Self { place: Some(Place { slot: attachment.slot, _attachment: None }), ..Self::default() })
    }

    /// The place, taken first if need be: among those that stage transitions when `stages`. Now and then looks after the
    /// others. `pause` waits a moment for somebody who repairs, and says when not to wait for more.
    pub(super) fn place<'a>(
        &mut self,
        company: &Company,
        segment: &'a Segment,
        schema: &Schema,
        stages: bool,
        pause: &mut dyn FnMut() -> Result<(), StandaloneError>,
    ) -> Result<ProcessSlot<'a>, StandaloneError> {
        let now = monotonic_ns();
        if now >= self.next_look_ns {
            self.next_look_ns = now + LOOK_INTERVAL_NS;
            company.is_lost().map_or(Ok(()), Err)?;
            company.repair_after_the_dead(segment, schema);
        }
        self.repair(company, segment, schema)?;
        company.check(segment)?;
        let slot = match &self.place {
            Some(place) => place.slot,
            None => self.place.insert(Place::take(company, segment, schema, stages, pause)?).slot,
        };
        Ok(segment.processes().slot(slot))
    }

    /// Leave a place in which an operation of this process ended half-way, by a panic, to whoever repairs it.
    pub(super) fn repair(&mut self, company: &Company, segment: &Segment, schema: &Schema) -> Result<(), StandaloneError> {
        let slot = self.place.as_ref().map(|place| segment.processes().slot(place.slot));
        let Some(slot) = slot.filter(|&slot| is_unfinished(segment, slot)) else { return Ok(()) };
        match company {
            Company::Run { .. } => slot.say_goodbye(),
            Company::Nobody | Company::Participants if leaderless::give_up(segment, schema, slot) => {}
            Company::Nobody | Company::Participants => return Err(StandaloneError::unrepaired(segment)),
        }
        self.place = None;
        Ok(())
    }

    /// Give the place back.
    pub(super) fn leave(&mut self, company: &Company, segment: &Segment, schema: &Schema) {
        if self.repair(company, segment, schema).is_err() {
            // Others are at it: they see to this place after the death of this process.
            return;
        }
        let Some(place) = self.place.take() else { return };
        let slot = segment.processes().slot(place.slot);
        match company {
            Company::Run { .. } => slot.say_goodbye(),
            Company::Nobody | Company::Participants => {
                // Others can tell from it that nobody was killed here.
                slot.enter(Phase::Leaving);
                slot.release();
            }
        }
    }
}

impl Place {
    fn take(
        company: &Company,
        segment: &Segment,
        schema: &Schema,
        stages: bool,
        pause: &mut dyn FnMut() -> Result<(), StandaloneError>,
    ) -> Result<Self, StandaloneError> {
        if let Company::Run { .. } = company {
            let attachment = company.attach_again(segment)?;
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
        let (mut may_be_freed, mut is_late, give_up_ns) = (true, false, monotonic_ns() + PATIENCE_NS);
        loop {
            if let Some(slot) = free() {
                return Ok(Self { slot: slot.index(), _attachment: None });
            }
            if !may_be_freed {
                return Err(StandaloneError::Full { participants: sizes.stagers });
            }
            if is_late {
                return Err(StandaloneError::unrepaired(segment));
            }
            // Whoever stood still for so long looks once more.
            is_late = monotonic_ns() >= give_up_ns;
            // Places of the dead are free only after they have been repaired after, by this process or by another that is at it.
            leaderless::sweep(segment, schema);
            may_be_freed = places.clone().any(|index| segment.processes().slot(index).dead_owner().is_some());
            if may_be_freed {
                pause()?;
            }
        }
    }
}

/// Take the place that a supervisor has promised.
fn occupy(segment: &Segment, attachment: &Attachment) -> Result<(), StandaloneError> {
    let slot = segment.processes().slot(attachment.slot);
    if !slot.occupy(std::process::id(), attachment.generation) {
        return Err(StandaloneError::RunEnded);
    }
    slot.enter(Phase::Idle);
    Ok(())
}
