//! What the evaluator reports.

use ipc_channel::TryRecvError;

use super::Session;
use crate::roles::evaluator::EvaluationReport;
use crate::telemetry::{Evaluation, StopReason};

impl Session {
    pub(super) fn receive_evaluations(&mut self) {
        while let Some(receiver) = &self.reports {
            match receiver.try_recv() {
                Ok(report) => self.evaluated(report),
                Err(TryRecvError::Empty) => break,
                // The evaluator is gone; its replacement gets a channel of its own.
                Err(TryRecvError::IpcError(_)) => self.reports = None,
            }
        }
    }

    fn evaluated(&mut self, report: EvaluationReport) {
        if let Some(unsaved) = &report.unsaved {
            self.unsaved_best = Some(report.version);
            self.sinks.trouble(unsaved.cause.clone(), &unsaved.message);
        }
        let evaluation = Evaluation {
            wall_s: self.observer.wall_s(),
            env_steps: report.env_steps,
            updates: report.updates,
            version: report.version,
            kind: report.kind,
            is_best: report.is_best,
            confirms_goal: report.confirms_goal,
            returns: report.returns,
            lengths: report.lengths,
        };
        self.observer.evaluated(&evaluation);
        self.sinks.evaluation(&evaluation);
        if evaluation.confirms_goal {
            self.reason.get_or_insert(StopReason::Solved);
        }
    }
}
