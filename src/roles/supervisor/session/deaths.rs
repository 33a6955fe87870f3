//! What happens when a process dies: what it left is repaired, what that cost is said, and its replacement is arranged.

use std::time::Instant;

use super::super::death::{Death, KillCause};
use super::super::leaving::is_evaluation_wanted;
use super::super::slots::PlannedProcess;
use super::super::watch::{STABLE_AFTER, has_made_progress, work_counted};
use super::words::{loss, loss_at_end, why_evaluation_was_late, with_details, work_done};
use super::{Session, SupervisorError};
use crate::readable::counted;
use crate::replay::{Repair, rebuild_sums, repair_beside};
use crate::roles::configured_environment;
use crate::segment::control::RunState;
use crate::segment::processes::Role;
use crate::segment::system;
use crate::sync::Ordering;
use crate::telemetry::StopReason;

/// A process that fails this often in a row, without progress in between, will not get better.
const HOPELESS_FAILURES: u32 = 3;

/// A death, once what it left has been repaired.
struct Exit {
    planned: PlannedProcess,
    /// Whether the process failed by itself: nobody killed it.
    is_own_fault: bool,
    /// Whether it learned, and that has diverged.
    has_diverged: bool,
    /// It had done all that it was for, and only closed its environments.
    was_closing: bool,
    pid: i32,
    repaired: Repair,
    who: String,
    /// How it ended, and what it said last below its first line.
    how: String,
    details: String,
    /// What it had done, and whether that was anything.
    work: String,
    has_worked: bool,
}

impl Session {
    /// Repair what a dead process left, say so, and arrange its replacement.
    pub(super) fn handle_exit(&mut self, index: usize, death: &Death) -> Result<(), SupervisorError> {
        let exit = self.repair_after_exit(index, death);
        let is_orderly = death.ending.is_orderly();
        let has_done_all = exit.was_closing || is_orderly && !exit.is_own_fault;
        if exit.planned.role == Role::Synchronous && has_done_all {
            // A stop signal may have come to this process alone, or to it first: not that of Ctrl+C, which it ignores.
            let is_complete = self.segment.control().env_steps().load(Ordering::Relaxed) >= self.config().run.stop_env_steps;
            self.reason.get_or_insert(if is_complete { StopReason::StepLimit } else { StopReason::Terminated });
        }
        let was_dismissed = self.watched[index].take_dismissed();
        if self.reason.is_some() {
            // Nothing is said of other processes: what they had staged is saved, and nobody misses them any more.
            let role = exit.planned.role;
            if (role.learns() || role.evaluates()) && (!is_orderly || exit.is_own_fault) {
                let mut lost = loss_at_end(role, exit.was_closing).to_owned();
                if role == Role::Evaluator && death.was_late() && !exit.was_closing && self.may_play_on_and_on() {
                    lost += &why_evaluation_was_late(self.config().evaluator.episode_limit_steps);
                }
                self.tell_without_replacement(&exit, was_dismissed, &lost);
            }
            return Ok(());
        }
        if was_dismissed {
            if !is_orderly {
                let saved = loss(&exit.repaired, exit.planned.role, None, self.config().row_kind());
                self.tell_without_replacement(&exit, was_dismissed, &saved);
            }
            return self.match_actors_to_setting();
        }
        let is_setting_to_blame = self.is_on_trial() && self.may_be_due_to_setting(index, &exit);
        if is_setting_to_blame {
            self.blame_setting(&exit.how);
        }
        if is_setting_to_blame && exit.planned.role == Role::Actor {
            self.leave_to_next_setting(index, &exit);
        } else {
            self.replace_or_give_up(index, exit, is_setting_to_blame);
        }
        Ok(())
    }

    /// Whether the evaluation of the last weights may have been in an episode that does not end. One that was called off ends at its next
    /// step, and what is not in Python says itself how it ends.
    fn may_play_on_and_on(&self) -> bool {
        let was_wanted = self.reason.as_ref().is_some_and(is_evaluation_wanted) && !system::stop_requested();
        was_wanted && self.prepared.evaluation_limit_steps.is_none() && configured_environment::request(self.config()).needs_python()
    }

    /// Say how a process died that nobody replaces, and what that cost; `was_dismissed` says whether it was asked to
    /// leave.
    fn tell_without_replacement(&mut self, exit: &Exit, was_dismissed: bool, cost: &str) {
        let Exit { who, how, details, work, .. } = exit;
        let asked = if was_dismissed { ", which was asked to leave," } else { "" };
        self.sinks.event(&with_details(format!("{who}{asked} {how} (after {work}); {cost}"), details));
    }

    fn repair_after_exit(&mut self, index: usize, death: &Death) -> Exit {
        let planned = self.watched[index].planned.clone();
        if planned.role == Role::Learner {
            // The process is reaped: from here on another may lead.
            self.change_view(|membership| membership.remove(planned.number));
        }
        let repaired = self.repair(planned.slot);
        let slot = self.segment.processes().slot(planned.slot);
        let was_leaving = slot.is_leaving();
        // Others publish or stage what they have while they leave.
        let was_closing = was_leaving && planned.role.evaluates();
        let (how, details) = death.describe(&slot.last_words(), was_closing);
        let work = work_counted(slot, planned.role).saturating_sub(death.work_before);
        let is_own_fault = death.is_own_fault() || death.ending.is_orderly() && !was_leaving;
        let has_made_progress = self.watched[index].has_reported || has_made_progress(planned.role, work, death.setting);
        // What kills a process that works, such as want of memory, is still given time to pass, and a setting on trial
        // answers for its failures.
        if is_own_fault && has_made_progress && !self.is_on_trial() {
            self.watched[index].forgive();
        }
        let exit = Exit {
            is_own_fault,
            has_diverged: planned.role.learns() && death.ending.is_divergence(),
            was_closing,
            pid: death.pid.as_raw(),
            repaired,
            who: planned.name(),
            how,
            details,
            work: work_done(planned.role, work),
            has_worked: work > 0,
            planned,
        };
        slot.release();
        exit
    }

    /// Whether a death may be due to the setting on trial: that of an actor which has taken no step,
    /// or of whoever fails again and again.
    fn may_be_due_to_setting(&self, index: usize, exit: &Exit) -> bool {
        let fails_again = self.watched[index].failures_in_a_row() + 1 >= HOPELESS_FAILURES;
        exit.is_own_fault
            && match exit.planned.role {
                Role::Actor => !exit.has_worked || fails_again,
                Role::Learner => fails_again,
                _ => false,
            }
    }

    /// Say how an actor died whose setting is given up for it: the next setting decides which actors are started.
    fn leave_to_next_setting(&mut self, index: usize, exit: &Exit) {
        if self.fitting.as_ref().is_some_and(|fitting| exit.planned.number < fitting.home().actors) {
            self.segment.processes().slot(exit.planned.slot).count_restarts(1);
            self.watched[index].restarts += 1;
        }
        self.sinks.event(&with_details(format!("{} {} (after {})", exit.who, exit.how, exit.work), &exit.details));
    }

    /// Have the process replaced, or, if it has died too often, end what it was needed for.
    fn replace_or_give_up(&mut self, index: usize, exit: Exit, is_setting_to_blame: bool) {
        let planned = &exit.planned;
        if planned.role.is_fitted() {
            self.disturb();
        }
        self.segment.processes().slot(planned.slot).count_restarts(1);
        let leader = self.leader_of_all();
        let is_excused = self.is_on_trial() && planned.role.is_fitted();
        let watched = &mut self.watched[index];
        let wait = watched.schedule_restart(exit.is_own_fault);
        let times = watched.count_death(Instant::now(), is_excused);
        let limit = self.prepared.loaded.config.machine.max_restarts;
        let failures = if is_setting_to_blame { 0 } else { watched.failures_in_a_row() };
        // The trainer of a synchronous run dies once.
        let often = match planned.role {
            Role::Synchronous => Some(String::new()),
            _ => too_often(failures, times, limit).map(|often| format!(" ({often})")),
        };
        if let Some(often) = often {
            self.give_up(index, &exit, &often);
            return;
        }
        let next = if wait.is_zero() { "restarting now".into() } else { format!("restarting in {} s", wait.as_secs()) };
        let saved = loss(&exit.repaired, planned.role, leader, self.prepared.loaded.config.row_kind());
        let Exit { pid, who, how, details, work, .. } = exit;
        let event = format!("{who} (pid {pid}) {how} (after {work}); {saved}; {next} ({times} of {limit})");
        let details = watched.untold(details);
        self.sinks.event(&with_details(event, &details));
    }

    /// End what a process was needed for that is replaced no more; `often` says how often it has died.
    fn give_up(&mut self, index: usize, exit: &Exit, often: &str) {
        let Exit { planned, has_diverged, who, how, details, .. } = exit;
        if planned.role == Role::Visualizer {
            self.watched[index].give_up();
            let event = format!("{who} {how}{often}; nothing is shown any more, and training goes on");
            self.sinks.event(&with_details(event, details));
            return;
        }
        // What has diverged, nobody can go on from. Any other cause, such as a crash of an environment in the trainer of a synchronous
        // run, or a device that fails, leaves what was learned as it is.
        let reason = if *has_diverged { StopReason::Failed } else { StopReason::GaveUp };
        self.reason = Some(reason(with_details(format!("{who} {how}{often}"), details)));
    }

    /// The leader of the learners that live on; `None` if each of two learns a half for itself. If several die
    /// together, those that have not been removed yet are still members.
    fn leader_of_all(&self) -> Option<usize> {
        if self.segment.layout().sizes().halves() != 0 {
            return None;
        }
        let living = self.watched.iter().filter(|watched| watched.planned.role == Role::Learner && watched.lives_on());
        let living: Vec<usize> = living.map(|watched| watched.planned.number).collect();
        self.membership.members().iter().copied().find(|number| living.contains(number))
    }

    /// Repair after the owner of `slot`. A process of the run that stands in the way is killed, and repaired after
    /// as well. A guest is not killed.
    pub(super) fn repair(&mut self, slot: usize) -> Repair {
        let schema = self.prepared.algorithm().schema();
        let mut not_waited_for = Vec::new();
        loop {
            let repaired = repair_beside(&self.segment, &schema, self.segment.processes().slot(slot), &not_waited_for);
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
                    }
                    None => self.kill_stuck(stuck),
                }
                // A process that was killed has ended by now, which the gate finds out only with a descriptor to spare, or does nothing
                // of its own any more.
                not_waited_for.push(stuck);
            }
        }
    }

    /// Recompute the sums of the tree if a repair made them without waiting for everybody to be outside of operations.
    pub(super) fn make_provisional_sums_exact(&mut self) {
        // One that was killed and is still there may be inside an operation for ever, and its end is repaired anyway.
        if !self.provisional || self.is_anybody_dying() {
            return;
        }
        match rebuild_sums(&self.segment) {
            Ok(exact) => {
                self.provisional = false;
                if exact {
                    self.sinks.event("nobody stands still inside an operation any more: the sums of the tree are exact again");
                } else {
                    self.poison();
                }
            }
            // As in a repair: processes of the run are killed, guests are not.
            Err(stuck) => {
                for slot in stuck {
                    if self.attachments.guest(slot).is_none() {
                        self.kill_stuck(slot);
                    }
                }
            }
        }
    }

    /// Whether somebody is still there whom the supervisor has killed.
    fn is_anybody_dying(&self) -> bool {
        let mut living = self.watched.iter().filter_map(|watched| watched.living.as_ref());
        living.any(|living| living.killed.is_some()) || self.attachments.actors().any(|actor| self.attachments.killed(actor).is_some())
    }

    /// Let nobody train on a tree that is known to be wrong, nor go on from it. Checkpoints have leaves without
    /// sums: the run may go on from one that is complete.
    fn poison(&mut self) {
        self.segment.control().set_run_state(RunState::Poisoned);
        let log = self.folder().log();
        self.checkpoints.abandon();
        self.reason = Some(StopReason::Poisoned(format!(
            "the sum tree failed its audit after a repair: please report it as a bug in Shoal, with {}",
            log.display()
        )));
    }

    /// Kill a process that stopped in the middle of an operation, so that it cannot go on with it later.
    pub(super) fn kill_stuck(&mut self, slot: usize) {
        let killed = match self.watched.iter_mut().find(|watched| watched.planned.slot == slot) {
            Some(watched) => watched.kill(KillCause::Stuck).then(|| watched.planned.name()),
            None => self.attachments.kill_actor(slot, KillCause::Stuck),
        };
        if let Some(who) = killed {
            self.sinks.event(&format!("{who} is stuck in the middle of an operation: killing it"));
        }
        let living = self.watched.iter().find(|watched| watched.planned.slot == slot).and_then(|watched| watched.living.as_ref());
        let attached = || {
            let actor = self.attachments.actor(slot)?;
            Some((&actor.process, self.attachments.killed(actor)?))
        };
        let dying = living.and_then(|living| Some((&living.process, living.killed.as_ref()?))).or_else(attached);
        // The kernel reports its end, mostly within moments; `reap_children` or `serve_attachments` takes it from there.
        if let Some((process, kill)) = dying {
            process.ends_within(kill.patience_left(Instant::now()));
        }
    }
}

/// Why a process is replaced no more that has failed by itself `failures` times in a row, and died `times` within a day;
/// `None` if it is replaced.
fn too_often(failures: u32, times: usize, limit: u32) -> Option<String> {
    if failures >= HOPELESS_FAILURES {
        let soon_s = STABLE_AFTER.as_secs();
        return Some(format!(
            "{failures} times in a row by itself, each replacement after less than {soon_s} s of work and without progress: mend the \
             cause, since a larger machine.max_restarts changes nothing"
        ));
    }
    let often = || format!("{} within a day; machine.max_restarts is {limit}: mend the cause, or raise it", counted(times, "time"));
    (times > limit as usize).then(often)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_two_causes_of_giving_up_has_its_own_words() {
        assert_eq!(too_often(HOPELESS_FAILURES - 1, 10, 10), None);
        assert_eq!(too_often(0, 11, 10).unwrap(), "11 times within a day; machine.max_restarts is 10: mend the cause, or raise it");
        assert_eq!(too_often(1, 1, 0).unwrap(), "1 time within a day; machine.max_restarts is 0: mend the cause, or raise it");
        let hopeless = |limit| too_often(HOPELESS_FAILURES, 3, limit).unwrap();
        assert!(
            hopeless(1_000).starts_with("3 times in a row by itself, each replacement after less than 60 s of work and without progress"),
            "{}",
            hopeless(1_000)
        );
        assert_eq!(hopeless(0), hopeless(1_000), "a larger limit would not have helped");
    }
}
