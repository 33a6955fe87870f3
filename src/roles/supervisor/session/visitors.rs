//! Whoever attaches to the run and leaves it.

use super::Session;
use super::words::{loss, with_details, work_done};
use crate::rendezvous::Visitor;
use crate::segment::processes::{Role, SlotState};

impl Session {
    /// See off who left, and let in who knocks: what a visitor had staged is kept like anybody's.
    pub(super) fn serve_attachments(&mut self) {
        // One at a time: a guest that said goodbye in the middle of an operation is one still while another is repaired after.
        while let Some(left) = self.attachments.take_left(&self.segment) {
            self.disturb();
            // One that was refused by what it found here has told why where it was started.
            let took_its_place = self.segment.processes().slot(left.slot).state() == SlotState::Live;
            let repaired = self.repair(left.slot);
            let slot = self.segment.processes().slot(left.slot);
            let after = match left.visitor {
                Visitor::Actor => format!(" after {}", work_done(slot, Role::AttachedActor)),
                Visitor::Guest => String::new(),
            };
            let saved = loss(&repaired, left.visitor.role(), None, self.config().rows());
            let last_words = slot.last_words();
            let (headline, details) = last_words.split_once('\n').unwrap_or((&last_words, ""));
            let why = if headline.is_empty() { String::new() } else { format!(" ({headline})") };
            // Nobody tells how somebody else's child ended. An actor that ends well says so before.
            let is_cut_short = left.visitor == Visitor::Actor && took_its_place && headline.is_empty() && !slot.said_goodbye();
            let how = if is_cut_short { "was killed, or ended by what it ran," } else { "left" };
            slot.release();
            let event = format!("{} {how}{why}{after}; {saved}", self.attachments.name(&left));
            self.sinks.event(&with_details(event, details));
        }
        for line in self.attachments.serve(&self.segment) {
            self.disturb();
            self.sinks.event(&line);
        }
    }
}
