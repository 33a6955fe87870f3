//! Processes that attach to the run and leave it.

use super::super::watch::work_counted;
use super::Session;
use super::words::{loss, with_details, work_done};
use crate::readable::headline_and_details;
use crate::rendezvous::Visitor;
use crate::segment::processes::SlotState;

impl Session {
    /// See off who left, and let in who knocks: what a visitor had staged is kept like anybody's.
    pub(super) fn serve_attachments(&mut self) {
        // Requests are heard before anybody is seen off, and answered after: a process that leaves and knocks again
        // at once, or sends another, finds its place free.
        let knocks = self.attachments.hear();
        // One at a time: a guest that announced in the middle of an operation that it leaves still counts as one while
        // another is repaired after.
        while let Some(left) = self.attachments.take_left(&self.segment) {
            self.disturb();
            // One that was refused by what it found here has told why where it was started.
            let took_its_place = self.segment.processes().slot(left.slot).state() == SlotState::Live;
            let repaired = self.repair(left.slot);
            let slot = self.segment.processes().slot(left.slot);
            let role = left.visitor.role();
            let work = work_counted(slot, role).saturating_sub(self.attachments.work_before(&left));
            let after = match left.visitor {
                Visitor::Actor => format!(" after {}", work_done(role, work)),
                Visitor::Guest => String::new(),
            };
            let saved = loss(&repaired, role, None, self.config().row_kind());
            let last_words = slot.last_words();
            let (headline, details) = headline_and_details(&last_words);
            let why = if headline.is_empty() { String::new() } else { format!(" ({headline})") };
            // The kernel tells only the parent how a process ended. An actor that ends well says so before.
            let is_cut_short = left.visitor == Visitor::Actor && took_its_place && headline.is_empty() && !slot.is_leaving();
            let how = match self.attachments.killed(&left) {
                Some(kill) => kill.cause.describe(false),
                None if is_cut_short => "was killed, or ended by what it ran,".to_owned(),
                None => "left".to_owned(),
            };
            slot.release();
            let event = format!("{} {how}{why}{after}; {saved}", self.attachments.name(&left));
            self.sinks.event(&with_details(event, details));
        }
        for line in self.attachments.answer(knocks, &self.segment) {
            self.disturb();
            self.sinks.event(&line);
        }
    }
}
