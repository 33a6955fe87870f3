//! Actors and guests from outside: let in, watched, seen off.
//!
//! An attached actor is a process of Shoal's that has nothing else to do: it ends with the run, and is killed if it
//! stands in the way of it. A guest is somebody's program, whatever else it does: nobody here kills it or waits for
//! it. It gives its place back by a word in it, or by its end.

use std::ops::Range;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::death::{Kill, KillCause};
use super::watch::{is_readable, work_counted};
use crate::rendezvous::handshake::Refusal;
use crate::rendezvous::listener::ReservedSlot;
use crate::rendezvous::{Joined, Knock, Listener, Visitor};
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::processes::SlotState;

/// The socket of a run and everybody who came through it.
pub(super) struct Attachments {
    listener: Option<Listener>,
    slots: Range<usize>,
    /// Number of the first attached actor: exploration counts on from the run's own.
    first_number: usize,
    /// What is known of whoever has each of the slots.
    places: Vec<Place>,
    present: Vec<Joined>,
}

/// A slot for somebody from outside, since it was last given away.
#[derive(Default)]
struct Place {
    /// The work that was counted in the slot before.
    work_before: u64,
    /// The supervisor's kill of whoever has it, if it has killed them.
    killed: Option<Kill>,
}

impl Attachments {
    /// Let actors and guests in through `listener`, into `slots`.
    pub(super) fn new(listener: Listener, slots: Range<usize>, first_number: usize) -> Self {
        let places = slots.clone().map(|_| Place::default()).collect();
        Self { listener: Some(listener), places, slots, first_number, present: Vec::new() }
    }

    /// Let actors and guests in through another socket from now on.
    pub(super) fn listen_at(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    /// In a process that was forked: leave the socket and everybody to the supervisor, whose end they are to notice.
    pub(super) fn leave_to_supervisor(&mut self) {
        self.listener = None;
        self.present.clear();
    }

    /// What to poll for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listener = self.listener.iter().filter_map(Listener::descriptor).map(|knock| PollFd::from_borrowed_fd(knock, PollFlags::IN));
        listener.chain(self.present.iter().map(|joined| joined.process.for_poll()))
    }

    /// Whether somebody is at the door and has not spoken yet, so that the next look should be soon.
    pub(super) fn has_connections(&self) -> bool {
        self.listener.as_ref().is_some_and(Listener::has_connections)
    }

    /// The connections whose other ends have said what they want.
    pub(super) fn hear(&mut self) -> Vec<Knock> {
        self.listener.as_mut().map_or_else(Vec::new, Listener::hear)
    }

    /// Let them in, as far as there is room. Returns a line for each that is in.
    pub(super) fn answer(&mut self, knocks: Vec<Knock>, segment: &Segment) -> Vec<String> {
        knocks
            .into_iter()
            .filter_map(|knock| {
                let joined = knock.answer(|visitor| self.reserve(segment, visitor))?;
                let line = format!("{} joins", self.name(&joined));
                self.present.push(joined);
                Some(line)
            })
            .collect()
    }

    fn reserve(&mut self, segment: &Segment, visitor: Visitor) -> Result<ReservedSlot, Refusal> {
        if segment.control().run_state() != RunState::Running {
            return Err(Refusal::Stopping);
        }
        let mut free = self.slots.clone().zip(self.first_number..).filter_map(|(slot, number)| {
            let generation = segment.processes().slot(slot).reserve(visitor.role(), number)?;
            Some((slot, generation, number))
        });
        let (slot, generation, number) = free.next().ok_or(Refusal::Full { slots: self.slots.len() as u64 })?;
        let work_before = work_counted(segment.processes().slot(slot), visitor.role());
        self.places[slot - self.slots.start] = Place { work_before, killed: None };
        Ok(ReservedSlot { segment: segment.name().into(), run_id: segment.identity().run_id, slot, generation, number })
    }

    /// What to call somebody who joined.
    pub(super) fn name(&self, joined: &Joined) -> String {
        let number = self.first_number + joined.slot - self.slots.start;
        format!("{} {number} (pid {})", joined.visitor.role().name(), joined.pid)
    }

    /// The work that was counted in the slot of `joined` before it had that.
    pub(super) fn work_before(&self, joined: &Joined) -> u64 {
        self.places[joined.slot - self.slots.start].work_before
    }

    /// The supervisor's kill of `joined`, if it has killed them.
    pub(super) fn killed(&self, joined: &Joined) -> Option<&Kill> {
        self.places[joined.slot - self.slots.start].killed.as_ref()
    }

    /// Somebody who has left. An actor leaves by its end. A guest that lives on leaves by saying so, or by hanging
    /// up before it has taken the place that it was promised.
    pub(super) fn take_left(&mut self, segment: &Segment) -> Option<Joined> {
        let gave_up = |joined: &Joined| {
            let slot = segment.processes().slot(joined.slot);
            // A visitor says nothing after its request: what there is to read is the end.
            slot.is_leaving() || slot.state() == SlotState::Reserved && is_readable(&joined.connection)
        };
        let has_left = |joined: &Joined| joined.process.has_ended() || joined.visitor == Visitor::Guest && gave_up(joined);
        self.present.iter().position(has_left).map(|index| self.present.remove(index))
    }

    /// The attached actors.
    pub(super) fn actors(&self) -> impl Iterator<Item = &Joined> {
        self.present.iter().filter(|joined| joined.visitor == Visitor::Actor)
    }

    /// Whether the end of the run waits for an attached actor, as for a process of its own.
    pub(super) fn are_waited_for(&self, now: Instant) -> bool {
        self.actors().any(|actor| self.killed(actor).is_none_or(|kill| kill.waits_for(&actor.process, now)))
    }

    /// The guest in `slot`.
    pub(super) fn guest(&self, slot: usize) -> Option<&Joined> {
        self.present.iter().find(|joined| joined.slot == slot && joined.visitor == Visitor::Guest)
    }

    /// The attached actor in `slot`.
    pub(super) fn actor(&self, slot: usize) -> Option<&Joined> {
        self.actors().find(|actor| actor.slot == slot)
    }

    /// Kill the attached actor in `slot` for this `cause`, unless it has ended or been killed for another. Returns what
    /// to call it if this killed it.
    pub(super) fn kill_actor(&mut self, slot: usize, cause: KillCause) -> Option<String> {
        let actor = self.actor(slot).filter(|actor| self.killed(actor).is_none() && !actor.process.has_ended())?;
        actor.process.kill();
        let name = self.name(actor);
        self.places[slot - self.slots.start].killed = Some(Kill::now(cause));
        Some(name)
    }

    /// Kill the attached actors that have not left in time.
    pub(super) fn kill_late_actors(&mut self) {
        for slot in self.slots.clone() {
            self.kill_actor(slot, KillCause::Late);
        }
    }
}
