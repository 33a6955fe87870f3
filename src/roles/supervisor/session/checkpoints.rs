//! When a run has its checkpoints written, and what is said of them.

use std::path::Path;

use super::super::checkpoint_writer::{Failed, Written};
use super::super::resumption::Memory;
use super::super::{Prepared, SupervisorError};
use super::Session;
use crate::checkpoint::Content;
use crate::config::Rows;
use crate::config::schema::KeepReplay;
use crate::replay::Zero;
use crate::segment::Segment;
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
            self.begin_checkpoint(incarnation, self.config().checkpoint.replay != KeepReplay::Never)?;
        }
        Ok(())
    }

    fn begin_checkpoint(&mut self, incarnation: Option<u64>, with_replay: bool) -> Result<(), SupervisorError> {
        let env_steps = self.segment.control().env_steps().load(Ordering::Relaxed);
        let remembered = self.sinks.remembered(env_steps);
        let memory = Memory { wall_s: self.observer.wall_s(), training_s: self.observer.trained_s(), remembered };
        let best_weights = self.sinks.folder().best_weights();
        let content = checkpoint_content(&self.prepared, &self.segment, &best_weights, &memory);
        self.checkpoints.begin(Content { incarnation, with_replay, ..content })
    }

    fn report_checkpoint(&mut self, ended: Option<Result<Written, Failed>>) {
        match ended {
            None => return,
            Some(Ok(written)) => self.sinks.event(&written.to_string()),
            Some(Err(Failed { cause, message })) => self.sinks.trouble(cause, &message),
        }
        // The trainer goes on, with or without.
        self.segment.control().checkpoint_wanted().store(0, Ordering::Release);
    }

    /// After everybody has left: nothing changes any more. A run that could not go on would not from here either.
    pub(super) fn write_last_checkpoint(&mut self, reason: &StopReason) -> Result<(), SupervisorError> {
        let ended = self.checkpoints.wait();
        self.report_checkpoint(ended);
        if self.checkpoints.is_enabled() && !matches!(reason, StopReason::Failed(_)) {
            let is_completed = matches!(reason, StopReason::Solved | StopReason::StepLimit);
            let keep = self.config().checkpoint.replay;
            self.begin_checkpoint(None, keep == KeepReplay::Always || keep == KeepReplay::UntilCompleted && !is_completed)?;
            let ended = self.checkpoints.wait();
            let is_written = matches!(ended, Some(Ok(_)));
            self.report_checkpoint(ended);
            if is_written && is_completed && keep == KeepReplay::UntilCompleted {
                // Those with the replay are not wanted any more.
                self.checkpoints.keep_one();
            }
        }
        Ok(())
    }
}

/// What a checkpoint of a run that is not completed is made of.
pub(in super::super) fn checkpoint_content<'a>(
    prepared: &Prepared,
    segment: &'a Segment,
    best_weights: &'a Path,
    memory: &Memory,
) -> Content<'a> {
    let config = &prepared.loaded.config;
    Content {
        segment,
        schema: prepared.algorithm.schema(),
        // A fragment is taken by setting its priority to zero.
        zero: if config.rows() == Rows::Fragments { Zero::Taken } else { Zero::Unfinished },
        incarnation: None,
        with_replay: config.checkpoint.replay != KeepReplay::Never,
        best_weights,
        best_env_steps: memory.remembered.best.map(|best| best.env_steps),
        memory: serde_json::to_value(memory).expect("figures have a spelling in JSON"),
    }
}
