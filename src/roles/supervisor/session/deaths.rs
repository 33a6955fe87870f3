//! What happens when a process dies: what it left is repaired, what that cost is said, and its replacement is arranged.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::super::watch::{Death, has_ended};
use super::words::{loss, with_details, work_done};
use super::{HOPELESS_FAILURES, Session, SupervisorError};
use crate::replay::{Repair, make_sums_again, repair_beside};
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::processes::Role;
use crate::sync::Ordering;
use crate::telemetry::StopReason;

impl Session {
    /// Repair what a dead process left, say so, and arrange its replacement.
    pub(super) fn handle_exit(&mut self, index: usize, death: &Death) -> Result<(), SupervisorError> {
        let planned = self.watched[index].planned.clone();
        if planned.role == Role::Learner {
            // Its end has been waited for: from here on another may lead.
            let view = self.membership.bury(planned.number);
            self.change_view(view);
        }
        let repaired = self.repair(planned.slot);
        let slot = self.segment.processes().slot(planned.slot);
        let (who, (how, details)) = (planned.name(), death.describe(&slot.last_words()));
        let work = work_done(slot, planned.role);
        let has_stepped = slot.counters().get(Counter::EnvSteps) > death.steps_before;
        slot.release();
        if planned.role == Role::Synchronous && death.ending.is_orderly() {
            self.receive_evaluations();
            // A signal may have come to it alone, or to it first.
            let is_complete = self.segment.control().env_steps().load(Ordering::Relaxed) >= self.config().run.stop_env_steps;
            self.reason.get_or_insert(if is_complete { StopReason::StepLimit } else { StopReason::Interrupted });
            return Ok(());
        }
        if self.reason.is_some() {
            return Ok(());
        }
        if self.watched[index].was_dismissed() {
            if !death.ending.is_orderly() {
                let saved = loss(&repaired, planned.role, None);
                self.sinks.event(&with_details(format!("{who}, which was asked to leave, {how} (after {work}); {saved}"), &details));
            }
            return self.cast_actors();
        }
        let fails_again = self.watched[index].failures_in_a_row() + 1 >= HOPELESS_FAILURES;
        let is_answer = death.is_own_fault()
            && match planned.role {
                Role::Actor => !has_stepped || fails_again,
                Role::Learner => fails_again,
                _ => false,
            };
        let is_of_trial = is_answer && self.is_on_trial();
        if is_of_trial {
            self.blame_setting(&how);
        }
        if is_of_trial && planned.role == Role::Actor {
            // Actors are started as the setting wants them that comes instead.
            if self.fitting.as_ref().is_some_and(|fitting| planned.number < fitting.home().actors) {
                self.segment.processes().slot(planned.slot).count_restart();
                self.watched[index].restarts += 1;
            }
            self.sinks.event(&with_details(format!("{who} {how} (after {work})"), &details));
            return Ok(());
        }
        if matches!(planned.role, Role::Actor | Role::Learner) {
            self.disturb();
        }
        self.segment.processes().slot(planned.slot).count_restart();
        let leader = self.leader_of_all();
        let watched = &mut self.watched[index];
        let wait = watched.schedule_restart();
        let limit = self.prepared.loaded.config.machine.max_restarts;
        let hopeless = !is_of_trial && death.is_own_fault() && watched.failures_in_a_row() >= HOPELESS_FAILURES;
        if planned.role == Role::Visualizer && (watched.restarts > limit || hopeless) {
            watched.give_up();
            let event = format!("{who} {how}; nothing is shown any more, and training goes on ({} times)", watched.restarts);
            self.sinks.event(&with_details(event, &details));
            return Ok(());
        }
        if planned.role == Role::Synchronous || watched.restarts > limit || hopeless {
            let times = watched.restarts;
            let cause = format!("{who} {how} ({times} times; machine.max_restarts is {limit})");
            // What a learner cannot go on from, nobody can.
            let is_of_learning = death.is_own_fault() && matches!(planned.role, Role::Learner | Role::Synchronous);
            let reason = if is_of_learning { StopReason::Failed } else { StopReason::GaveUp };
            self.reason = Some(reason(with_details(cause, &details)));
            return Ok(());
        }
        let next = if wait.is_zero() { "restarting now".into() } else { format!("restarting in {} s", wait.as_secs()) };
        let count = format!("{} of {limit}", watched.restarts);
        let (pid, saved) = (death.pid, loss(&repaired, planned.role, leader));
        let event = format!("{who} (pid {pid}) {how} (after {work}); {saved}; {next} ({count})");
        let details = watched.untold(details);
        self.sinks.event(&with_details(event, &details));
        Ok(())
    }

    /// Who leads the learners, where not each of two learns a half for itself.
    fn leader_of_all(&self) -> Option<usize> {
        self.membership.leader().filter(|_| self.segment.layout().sizes().halves() == 0)
    }

    /// Repair after the owner of `slot`. A process of ours that stands in the way is killed and repaired as well; a guest is
    /// not ours to kill.
    pub(super) fn repair(&mut self, slot: usize) -> Repair {
        let schema = self.prepared.algorithm.schema();
        let mut guests = Vec::new();
        loop {
            let repaired = repair_beside(&self.segment, &schema, self.segment.processes().slot(slot), &guests);
            if repaired.stuck.is_empty() {
                self.provisional |= repaired.provisional;
                if !repaired.exact && !repaired.provisional {
                    self.poison();
                }
                return repaired;
            }
            for stuck in repaired.stuck {
                match self.attachments.guest(stuck) {
                    Some(guest) => {
                        let who = self.attachments.name(guest);
                        let event = "stands still inside an operation: a repair goes on without it, and is completed when it goes on";
                        self.sinks.event(&format!("{who} {event}"));
                        guests.push(stuck);
                    }
                    None => self.fence(stuck),
                }
            }
        }
    }

    /// Make the sums of the tree again that a repair made while a guest stood still inside an operation.
    pub(super) fn make_provisional_sums_exact(&mut self) {
        if !self.provisional {
            return;
        }
        match make_sums_again(&self.segment) {
            Ok(exact) => {
                self.provisional = false;
                if exact {
                    self.sinks.event("no guest stands still inside an operation any more: the sums of the tree are exact again");
                } else {
                    self.poison();
                }
            }
            // As in a repair: ours are killed, guests are not.
            Err(stuck) => {
                for slot in stuck {
                    if self.attachments.guest(slot).is_none() {
                        self.fence(slot);
                    }
                }
            }
        }
    }

    /// Let nobody train on a tree that is known to be wrong, nor go on from it.
    pub(super) fn poison(&mut self) {
        self.segment.control().set_run_state(RunState::Poisoned);
        self.checkpoints.abandon();
        self.reason = Some(StopReason::Failed("the sum tree failed its audit after a repair: this is a bug in Shoal".into()));
    }

    /// Kill a process that stopped in the middle of an operation, so that it cannot go on with it later.
    pub(super) fn fence(&mut self, slot: usize) {
        let Some(index) = self.watched.iter().position(|watched| watched.planned.slot == slot) else {
            self.attachments.kill_actors(&self.segment, Some(slot));
            return;
        };
        let who = self.watched[index].planned.name();
        self.sinks.event(&format!("{who} is stuck in the middle of an operation: killing it"));
        self.watched[index].signal(Signal::SIGKILL);
        // The kernel reports its end within moments; `reap_children` takes it from there.
        while self.watched[index].living.as_ref().is_some_and(|living| !has_ended(&living.descriptor)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
