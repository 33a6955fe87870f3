//! Whom a replay is shared with, and who looks after it.

use super::StandaloneError;
use crate::rendezvous::handshake::Visitor;
use crate::rendezvous::{Attachment, Registry, attach};
use crate::replay::{Schema, leaderless};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::processes::{Phase, ProcessSlot, SlotState};

/// Whom a replay is shared with.
pub(super) enum Company {
    /// It is this process's alone.
    Nobody,
    /// Processes that repair after each other.
    Participants,
    /// A run, whose supervisor repairs.
    Run {
        /// Its process id.
        supervisor: u32,
        /// How it was joined: through this we know whether the supervisor lives, in a child of a fork too.
        attachment: Attachment,
    },
}

impl Company {
    /// Repair after others that have died. In a run the supervisor does it, and in a private replay nobody else can die.
    pub(super) fn repair_after_the_dead(&self, segment: &Segment, schema: &Schema) {
        if let Self::Participants = self {
            leaderless::sweep(segment, schema);
        }
    }

    /// Why nobody will ever open what this process waits for: its run was killed.
    pub(super) fn is_lost(&self) -> Option<StandaloneError> {
        let Self::Run { attachment, .. } = self else { return None };
        (!attachment.supervisor_alive()).then_some(StandaloneError::RunEnded)
    }

    /// Join the run once more: in the child of a fork, whose parent has the first place, or after that one was given up.
    pub(super) fn attach_again(&self, segment: &Segment) -> Result<Attachment, StandaloneError> {
        self.is_lost().map_or(Ok(()), Err)?;
        let Self::Run { supervisor, .. } = self else { return Err(StandaloneError::RunEnded) };
        let again = attach(&Registry::open()?, *supervisor, Visitor::Guest)?;
        if again.segment == segment.name() { Ok(again) } else { Err(StandaloneError::RunEnded) }
    }

    /// An error when the replay is not to be used any more: the run has ended, or the tree is known to be wrong.
    pub(super) fn check(&self, segment: &Segment) -> Result<(), StandaloneError> {
        match (self, segment.control().run_state()) {
            (Self::Run { .. }, state) if state.is_over() => Err(StandaloneError::RunEnded),
            (Self::Nobody | Self::Participants, RunState::Poisoned) => Err(StandaloneError::Inexact),
            _ => Ok(()),
        }
    }

    /// An error when nothing is to be added any more, and nobody to be waited for.
    pub(super) fn check_open(&self, segment: &Segment) -> Result<(), StandaloneError> {
        self.check(segment)?;
        if segment.control().run_state() == RunState::Stopping { Err(StandaloneError::Stopped) } else { Ok(()) }
    }

    /// Let others know, by the place of a process that draws, that it does, for as long as it has the place: who only writes priorities
    /// back has such a place too.
    pub(super) fn tell_of_drawing(&self, place: ProcessSlot<'_>) {
        if matches!(self, Self::Participants) && place.phase() != Some(Phase::Sample) {
            place.enter(Phase::Sample);
        }
    }

    /// Whether processes have drawn from the replay, and none is left that does. How they went: `true` when each of them said
    /// so, `false` when one was killed, which may be started anew, or somebody is there who has only written priorities back.
    pub(super) fn nobody_draws(&self, segment: &Segment) -> Option<bool> {
        let Self::Participants = self else { return None };
        let drawing_places = || segment.processes().iter().skip(segment.layout().sizes().stagers);
        // The samples of a replay that was loaded were drawn before it was saved; what places have counted is since then.
        if !drawing_places().any(|place| place.counters().get(Counter::Sampled) > 0) {
            return None;
        }
        drawing_places().try_fold(true, |all_left, place| match place.state() {
            SlotState::Free => Some(all_left && (place.generation() == 0 || place.phase() == Some(Phase::Leaving))),
            // Perhaps it is about to draw.
            SlotState::Live if place.phase() != Some(Phase::Sample) => Some(false),
            SlotState::Reserved | SlotState::Live => None,
        })
    }
}
