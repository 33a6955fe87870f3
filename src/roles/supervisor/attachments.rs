//! Actors from outside: let in, watched, seen off.

use std::ops::Range;

use rustix::event::{PollFd, PollFlags};

use super::watch::has_ended;
use crate::rendezvous::handshake::Refusal;
use crate::rendezvous::listener::Place;
use crate::rendezvous::{Joined, Listener};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::processes::{Role, SlotState};

/// The socket of a run and everybody who came through it.
pub(super) struct Attachments {
    listener: Listener,
    slots: Range<usize>,
    /// Number of the first attached actor: exploration counts on from the run's own.
    first_number: usize,
    present: Vec<Joined>,
}

impl Attachments {
    /// Let actors in through `listener`, into `slots`.
    pub(super) fn new(listener: Listener, slots: Range<usize>, first_number: usize) -> Self {
        Self { listener, slots, first_number, present: Vec::new() }
    }

    /// What to poll for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listener = PollFd::from_borrowed_fd(self.listener.descriptor(), PollFlags::IN);
        std::iter::once(listener).chain(self.present.iter().map(|joined| PollFd::new(&joined.descriptor, PollFlags::IN)))
    }

    /// Whether somebody is at the door and has not spoken yet, so that the next look should be soon.
    pub(super) fn has_company(&self) -> bool {
        self.listener.has_company()
    }

    /// Let in who knocks. Returns a line for each.
    pub(super) fn serve(&mut self, segment: &Segment) -> Vec<String> {
        let (slots, first_number) = (self.slots.clone(), self.first_number);
        let joined = self.listener.serve(|| {
            if segment.control().run_state() != RunState::Running {
                return Err(Refusal::Stopping);
            }
            let reserved = slots.clone().zip(first_number..).find_map(|(slot, number)| {
                let generation = segment.processes().slot(slot).reserve(Role::AttachedActor, number)?;
                Some((slot, generation, number))
            });
            let (slot, generation, number) = reserved.ok_or(Refusal::Full { slots: slots.len() as u64 })?;
            Ok(Place { segment: segment.name().into(), run_id: segment.identity().run_id, slot, generation, number })
        });
        let lines = joined.iter().map(|joined| format!("attached actor {} (pid {}) joins", self.number(joined.slot), joined.pid)).collect();
        self.present.extend(joined);
        lines
    }

    /// Number of the actor in `slot`.
    pub(super) fn number(&self, slot: usize) -> usize {
        self.first_number + slot - self.slots.start
    }

    /// Those who have ended since the last call.
    pub(super) fn take_ended(&mut self) -> Vec<Joined> {
        self.present.extract_if(.., |joined| has_ended(&joined.descriptor)).collect()
    }

    /// Whether anybody is attached.
    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// Process ids of those in `slot`, or of all.
    pub(super) fn kill(&self, segment: &Segment, slot: Option<usize>) {
        for joined in self.present.iter().filter(|joined| slot.is_none_or(|slot| slot == joined.slot)) {
            // Through the descriptor, so that it cannot reach another process with the same number.
            let _ = rustix::process::pidfd_send_signal(&joined.descriptor, rustix::process::Signal::KILL);
            while segment.processes().slot(joined.slot).state() == SlotState::Live && !has_ended(&joined.descriptor) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}
