//! When a run has its checkpoints written, and what is said of them.

use std::thread;
use std::time::{Duration, Instant};

use super::super::checkpoint_writer::{Due, Failed, Written};
use super::super::record::SupervisorRecord;
use super::super::weights::ROOM_PATIENCE;
use super::Session;
use crate::checkpoint::Content;
use crate::config::schema::KeepReplay;
use crate::segment::control::RunState;
use crate::segment::system;
use crate::sync::Ordering;
use crate::telemetry::StopReason;

/// Time between two attempts to write the last checkpoint on a disk that does not take it.
const ROOM_PAUSE: Duration = Duration::from_millis(250);

/// How the causes begin for which there is no checkpoint: those for which other files are missing may be known already.
const NO_CHECKPOINT: &str = "no checkpoint: ";

/// What is particular to one checkpoint.
#[derive(Clone, Copy)]
struct Terms {
    due: Due,
    with_replay: bool,
    /// How many of the newest checkpoints stay; `None` for as many as the configuration says.
    last: Option<usize>,
    /// Whether the run goes on while it is written.
    trains: bool,
}

impl Session {
    /// Have a checkpoint written when it is time for one, and say what became of the last.
    pub(super) fn keep_checkpoints(&mut self) {
        self.notice_checkpoint();
        if let Some(late) = self.checkpoints.late() {
            self.sinks.event(&late);
        }
        if let Err(failed) = self.begin_due_checkpoint(true) {
            self.report_checkpoint(&Err(failed));
        }
    }

    /// Begin a checkpoint when it is time for one; `trains` says whether the run goes on meanwhile.
    fn begin_due_checkpoint(&mut self, trains: bool) -> Result<(), Failed> {
        if self.segment.control().run_state() == RunState::Poisoned {
            // Nobody may go on from a poisoned run.
            return Ok(());
        }
        let Some(due) = self.checkpoints.is_due(self.segment.control()) else { return Ok(()) };
        // What the trainer has reported before it waited belongs to this moment.
        self.receive_evaluations();
        let with_replay = self.config().checkpoint.replay != KeepReplay::Never;
        self.begin_checkpoint(Terms { due, with_replay, last: None, trains })
    }

    /// Say what became of the checkpoint under way, if it has ended.
    pub(super) fn notice_checkpoint(&mut self) {
        if let Some(ended) = self.checkpoints.ended() {
            self.report_checkpoint(&ended);
        }
    }

    fn wait_for_checkpoint(&mut self, requests: u32, heard: &mut u32) -> Option<Result<Written, Failed>> {
        let sinks = &mut self.sinks;
        self.checkpoints.wait(requests, heard, |news| sinks.event(news))
    }

    fn begin_checkpoint(&mut self, terms: Terms) -> Result<(), Failed> {
        let Terms { due: Due { incarnation, longest_rest }, with_replay, last, trains } = terms;
        let env_steps = self.segment.control().env_steps().load(Ordering::Relaxed);
        let remembered = self.sinks.remembered(env_steps);
        let (wall_s, training_s) = (self.observer.wall_s(), self.observer.training_s());
        let record = SupervisorRecord { wall_s, training_s, restarts: self.restarts(), remembered };
        let best_weights = self.folder().best_weights();
        let later = |late| record.after(late, trains);
        let content = record.content(&self.prepared, &self.segment, &best_weights, &later);
        self.checkpoints.begin(Content { incarnation, with_replay, longest_rest, ..content }, last)
    }

    fn report_checkpoint(&mut self, ended: &Result<Written, Failed>) {
        match ended {
            Ok(written) => {
                // The next that is missing is news, whatever the reason.
                self.sinks.forget(NO_CHECKPOINT);
                self.sinks.event(&written.to_string());
            }
            Err(Failed { cause, message, .. }) => self.sinks.trouble(format!("{NO_CHECKPOINT}{cause}"), message),
        }
        // The trainer goes on, whether there is a checkpoint or not. At the end of the run it does not go on, and a
        // checkpoint that has failed is tried once more.
        if ended.is_ok() || self.reason.is_none() {
            self.segment.control().checkpoint_wanted().store(0, Ordering::Release);
        }
    }

    /// Write the last checkpoint, after everybody has left and nothing changes any more. A run that gave up has one
    /// if it had learned anything.
    pub(super) fn write_last_checkpoint(&mut self, reason: &StopReason) {
        let has_learned = self.segment.control().updates().load(Ordering::Relaxed) > 0;
        let is_of_use = match reason {
            StopReason::Failed(_) | StopReason::Poisoned(_) => false,
            StopReason::GaveUp(_) => has_learned,
            _ => true,
        };
        if !self.checkpoints.is_enabled() {
            // No later checkpoint will be there. The trainer may have asked for one as the run ended, and has
            // changed nothing since.
            return self.insist_on_last_checkpoint(|session| session.begin_due_checkpoint(false));
        }
        // Either a later checkpoint is about to have all that the one under way would have, or nobody may go on
        // from what that reads now.
        self.checkpoints.abandon();
        if !is_of_use {
            return;
        }
        let is_completed = matches!(reason, StopReason::Solved | StopReason::StepLimit);
        let keep = self.config().checkpoint.replay;
        let with_replay = keep == KeepReplay::Always || keep == KeepReplay::UntilCompleted && !is_completed;
        // Once a run is completed, checkpoints with the replay are not wanted any more.
        let last = (is_completed && keep == KeepReplay::UntilCompleted).then_some(1);
        let terms = Terms { due: Due::default(), with_replay, last, trains: false };
        self.insist_on_last_checkpoint(|session| session.begin_checkpoint(terms));
    }

    /// Write the last checkpoint, which `begin` begins, and say what became of it. If the disk does not take it, it
    /// is tried for a while, until a second request to stop comes.
    fn insist_on_last_checkpoint(&mut self, begin: impl Fn(&mut Self) -> Result<(), Failed>) {
        // The request that ended the run is counted by now, since the handler counts it before it says that there is one. If none did, the
        // first is still to come, and is no impatience: a service manager sends it to whatever runs, and leaves time for a last checkpoint.
        let mut heard = system::stop_requests();
        let requests = heard.max(1);
        let mut attempt = |session: &mut Self| match begin(session) {
            Ok(()) => session.wait_for_checkpoint(requests, &mut heard),
            Err(failed) => Some(Err(failed)),
        };
        let mut ended = attempt(self);
        if let Some(Err(Failed { message, is_of_disk: true, .. })) = &ended {
            self.sinks.event(&format!("{message}; the run waits up to {} s with its end", ROOM_PATIENCE.as_secs()));
            let deadline = Instant::now() + ROOM_PATIENCE;
            while matches!(&ended, Some(Err(failed)) if failed.is_of_disk) {
                thread::sleep(ROOM_PAUSE);
                if Instant::now() >= deadline || system::stop_requests() > requests {
                    break;
                }
                ended = attempt(self);
            }
        }
        match ended {
            Some(Err(Failed { message, .. })) => self.sinks.lose(format!("the last checkpoint: {message}")),
            Some(Ok(written)) => self.sinks.event(&written.to_string()),
            None => {}
        }
    }
}
