//! When a run has its checkpoints written, and what is said of them.

use super::super::SupervisorError;
use super::super::checkpoint_writer::Written;
use super::super::resumption::Memory;
use super::Session;
use crate::checkpoint::Content;
use crate::config::Rows;
use crate::replay::Zero;
use crate::sync::Ordering;
use crate::telemetry::StopReason;

impl Session {
    /// Have a checkpoint written when it is time for one, and say what became of the last.
    pub(super) fn keep_checkpoints(&mut self) -> Result<(), SupervisorError> {
        let ended = self.checkpoints.ended();
        self.report_checkpoint(ended);
        if let Some(incarnation) = self.checkpoints.is_due(self.segment.control()) {
            // What the trainer has reported before it waited belongs to this moment.
            self.receive_evaluations();
            self.begin_checkpoint(incarnation)?;
        }
        Ok(())
    }

    fn begin_checkpoint(&mut self, incarnation: Option<u64>) -> Result<(), SupervisorError> {
        let env_steps = self.segment.control().env_steps().load(Ordering::Relaxed);
        let remembered = self.sinks.remembered(env_steps);
        let best_env_steps = remembered.best.map(|best| best.env_steps);
        let memory = Memory { wall_s: self.observer.wall_s(), training_s: self.observer.trained_s(), remembered };
        let best_weights = self.sinks.folder().best_weights();
        self.checkpoints.begin(Content {
            segment: &self.segment,
            schema: self.prepared.algorithm.schema(),
            // A fragment is taken by setting its priority to zero.
            zero: if self.config().rows() == Rows::Fragments { Zero::Taken } else { Zero::Unfinished },
            incarnation,
            with_replay: self.config().checkpoint.replay,
            best_weights: &best_weights,
            best_env_steps,
            memory: serde_json::to_value(memory).expect("figures have a spelling in JSON"),
        })
    }

    fn report_checkpoint(&mut self, ended: Option<Result<Written, String>>) {
        match ended {
            None => return,
            Some(Ok(written)) => self.sinks.event(&written.to_string()),
            Some(Err(reason)) => self.sinks.trouble(reason.clone(), &reason),
        }
        // The trainer goes on, with or without.
        self.segment.control().checkpoint_wanted().store(0, Ordering::Release);
    }

    /// After everybody has left: nothing changes any more. A run that could not go on would not from here either.
    pub(super) fn write_last_checkpoint(&mut self, reason: &StopReason) -> Result<(), SupervisorError> {
        let ended = self.checkpoints.wait();
        self.report_checkpoint(ended);
        if self.checkpoints.is_enabled() && !matches!(reason, StopReason::Failed(_)) {
            self.begin_checkpoint(None)?;
            let ended = self.checkpoints.wait();
            self.report_checkpoint(ended);
        }
        Ok(())
    }
}
