//! The end of a run.

use std::time::Instant;

use nix::sys::signal::Signal;

use super::super::death::KillCause;
use super::super::hang::{LookClock, silence};
use super::super::leaving::Leaving;
use super::super::watch::Watched;
use super::super::{RunOutcome, SupervisorError, weights};
use super::Session;
use crate::machine::cores;
use crate::roles::visualizer;
use crate::segment::control::RunState;
use crate::segment::system;
use crate::telemetry::StopReason;

impl Session {
    /// Let everybody leave, keep what was learned, report.
    pub(super) fn end(mut self) -> Result<RunOutcome, SupervisorError> {
        let reason = self.reason.clone().unwrap_or(StopReason::Interrupted);
        let trained = self.snapshot();
        self.sinks.training_ended(&trained, cores::time_now());
        self.end_probe();
        if self.segment.control().run_state() != RunState::Poisoned {
            self.segment.control().set_run_state(RunState::Stopping);
        }
        self.watched.iter_mut().for_each(Watched::leave_with_run);
        self.wait_until_all_have_left(Leaving::new(&reason, Instant::now()))?;
        // A process that died while it left may have damaged the tree: that is the reason then.
        let reason = self.reason.clone().unwrap_or(StopReason::Interrupted);
        self.receive_evaluations();
        visualizer::remove_unfinished(&self.folder().videos());
        let saved = weights::save_last(&self.prepared, &self.segment, &mut self.sinks);
        if let Some(unsaved) = self.unsaved_best {
            unsaved.look_for(&mut self.sinks);
        }
        self.write_last_checkpoint(&reason);
        let snapshot = self.snapshot();
        let outcome = match reason {
            _ if reason.is_failure() || !saved => RunOutcome::Failed,
            StopReason::Interrupted | StopReason::Terminated => {
                // Without one here, SIGTERM has come to the synchronous trainer alone.
                RunOutcome::Interrupted { signal: system::stop_signal().unwrap_or(Signal::SIGTERM as u32) }
            }
            _ => RunOutcome::Completed,
        };
        let folder = self.folder().clone();
        if let Some((setting, config)) = self.fitted() {
            self.sinks.fitted_to(setting, config);
        }
        self.sinks.finish(reason, &snapshot);
        drop((self.segment, self.announcement));
        if let Some(sentinel) = self.sentinel {
            sentinel.dismiss();
        }
        // Processes that environments have started may live longer, and must not keep anybody from going on with
        // the run.
        folder.give_back();
        Ok(outcome)
    }

    /// Whether the end of the run waits for a process.
    fn waits_for_somebody(&self) -> bool {
        let now = Instant::now();
        self.watched.iter().any(|watched| watched.is_waited_for(now)) || self.attachments.are_waited_for(now)
    }

    /// Have processes leave as `leaving` says, and serve those that have not left.
    fn wait_until_all_have_left(&mut self, mut leaving: Leaving) -> Result<(), SupervisorError> {
        while self.waits_for_somebody() {
            let now = Instant::now();
            let pause = self.look_clock.look(now);
            if system::stop_requested() {
                leaving.interrupt(now);
            }
            for watched in &mut self.watched {
                let slot = self.segment.processes().slot(watched.planned.slot);
                let silent = watched.unwatched.look(slot.heartbeat_ns(), silence(slot), pause);
                let closing = slot.is_leaving().then_some(silent);
                match leaving.signal(watched.planned.role, closing, now) {
                    Some(Signal::SIGKILL) => {
                        watched.kill(KillCause::Late);
                    }
                    Some(signal) => watched.signal(signal),
                    None => {}
                }
            }
            if leaving.is_late(now) {
                self.attachments.kill_late_actors();
            }
            let mut sleep_clock = LookClock::new(Instant::now());
            self.sleep();
            // A stop of the whole run finds the supervisor asleep, but for a moment in many. What holds it up awake, such as a slow disk,
            // holds up nobody else.
            leaving.put_off(sleep_clock.look(Instant::now()));
            self.reap_children()?;
            self.serve_attachments();
            self.receive_evaluations();
            self.notice_checkpoint();
            self.keep_up();
            let living = || self.watched.iter().filter(|watched| watched.living.is_some());
            let evaluates = |watched: &Watched| {
                let is_closing = self.segment.processes().slot(watched.planned.slot).is_leaving();
                watched.planned.role.evaluates() && !is_closing
            };
            let are_evaluators = living().count() > 0 && living().all(evaluates);
            self.observer.only_evaluates(leaving.evaluates() && are_evaluators && self.attachments.actors().next().is_none());
            self.observe()?;
        }
        self.observer.only_evaluates(false);
        self.tell_who_does_not_end();
        Ok(())
    }

    /// Say who is left although it was killed. What it left unfinished is not repaired: nobody trains any more.
    fn tell_who_does_not_end(&mut self) {
        let name = |watched: &Watched| Some(format!("{} (pid {})", watched.planned.name(), watched.living.as_ref()?.pid));
        let attached = self.attachments.actors().map(|actor| self.attachments.name(actor));
        let left: Vec<String> = self.watched.iter().filter_map(name).chain(attached).collect();
        for who in left {
            let why = "it waits in the kernel, for a device or a disk";
            self.sinks.event(&format!("{who} does not end although it was killed: {why}; the run ends without it"));
        }
    }
}
