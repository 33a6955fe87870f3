//! The memory of a replay, which processes share it, and which of them repair it.

use super::ReplayError;
use crate::rendezvous::handshake::Visitor;
use crate::rendezvous::{Attachment, Registry, attach};
use crate::replay::{Schema, leaderless};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::processes::{Phase, ProcessSlot, SlotState};

/// The memory of a replay, the fields of its rows, and which processes share it.
pub(super) struct Memory {
    pub(super) segment: Segment,
    pub(super) schema: Schema,
    pub(super) sharing: Sharing,
}

/// Which processes share a replay.
pub(super) enum Sharing {
    /// None: it is this process's alone.
    Private,
    /// Participants, which repair after each other.
    Participants,
    /// The processes of a run, whose supervisor repairs.
    Run {
        /// Process id of the supervisor.
        supervisor: u32,
        /// The connection to the supervisor, which tells whether it lives, also in a child of a fork.
        attachment: Attachment,
    },
}

impl Memory {
    /// Repair after other processes that have died. In a run the supervisor does that, and a private replay has no
    /// other processes.
    pub(super) fn repair_after_the_dead(&self) {
        if let Sharing::Participants = self.sharing {
            leaderless::sweep(&self.segment, &self.schema);
        }
    }

    /// Join the run once more: in the child of a fork, whose parent has the first place, or after the first place was
    /// given up.
    pub(super) fn attach_again(&self) -> Result<Attachment, ReplayError> {
        self.sharing.is_lost().map_or(Ok(()), Err)?;
        let Sharing::Run { supervisor, .. } = &self.sharing else { return Err(ReplayError::RunEnded) };
        let again = attach(&Registry::open()?, *supervisor, Visitor::Guest)?;
        if again.segment == self.segment.name() { Ok(again) } else { Err(ReplayError::RunEnded) }
    }

    /// An error if the replay must not be used any more: the run has ended, or the tree is known to be wrong.
    pub(super) fn check(&self) -> Result<(), ReplayError> {
        match (&self.sharing, self.segment.control().run_state()) {
            (Sharing::Run { .. }, state) if state.is_over() => Err(ReplayError::RunEnded),
            (Sharing::Private | Sharing::Participants, RunState::Poisoned) => Err(ReplayError::Inexact),
            _ => Ok(()),
        }
    }

    /// An error if nothing may be added any more, so that nobody has to wait either.
    pub(super) fn check_open(&self) -> Result<(), ReplayError> {
        self.check()?;
        if self.segment.control().run_state() == RunState::Stopping { Err(ReplayError::Stopped) } else { Ok(()) }
    }

    /// `Some` if processes have drawn from the replay and none is left that does: with `true` if each of them
    /// announced that it left, with `false` if one was killed, which may be started again, or if a process is there
    /// that has only written priorities back.
    pub(super) fn nobody_draws(&self) -> Option<bool> {
        let Sharing::Participants = self.sharing else { return None };
        let drawing_places = || self.segment.processes().iter().skip(self.segment.layout().sizes().stagers);
        // The count of the replay includes samples from before it was saved and loaded; the counters of the places do
        // not.
        if !drawing_places().any(|place| place.counters().get(Counter::Sampled) > 0) {
            return None;
        }
        drawing_places().try_fold(true, |all_left, place| match place.state() {
            SlotState::Free => Some(all_left && (place.generation() == 0 || place.is_leaving())),
            // Perhaps it is about to draw.
            SlotState::Live if place.phase() != Some(Phase::Sample) => Some(false),
            SlotState::Reserved | SlotState::Live => None,
        })
    }
}

impl Sharing {
    /// The error for a guest whose supervisor is dead, so that nothing that it waits for will ever come.
    pub(super) fn is_lost(&self) -> Option<ReplayError> {
        let Self::Run { attachment, .. } = self else { return None };
        (!attachment.supervisor_alive()).then_some(ReplayError::RunEnded)
    }

    /// Note in the place of a process that it draws, for as long as it has the place: a process that only writes
    /// priorities back has a place of the same kind.
    pub(super) fn tell_of_drawing(&self, place: ProcessSlot<'_>) {
        if matches!(self, Self::Participants) && place.phase() != Some(Phase::Sample) {
            place.enter(Phase::Sample);
        }
    }
}
