//! What the evaluator reports.

use ipc_channel::TryRecvError;

use super::super::weights::UnsavedBest;
use super::Session;
use crate::roles::evaluator::EvaluationReport;
use crate::segment::processes::Role;
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
        let evaluators = self.watched.iter_mut().filter(|watched| watched.planned.role == Role::Evaluator);
        evaluators.for_each(|watched| watched.has_reported = true);
        let evaluation = Evaluation { wall_s: self.observer.wall_s(), ..report.evaluation };
        if evaluation.is_best {
            let (version, env_steps) = (evaluation.version, evaluation.env_steps);
            self.unsaved_best = report.unsaved.as_ref().map(|_| UnsavedBest::reported(version, env_steps, self.sinks.folder()));
        }
        if let Some(unsaved) = &report.unsaved {
            self.sinks.trouble(unsaved.cause.clone(), &unsaved.message);
        }
        self.tell_of_episodes_cut_off(&evaluation);
        self.observer.evaluated(&evaluation);
        self.sinks.evaluation(&evaluation);
        if evaluation.confirms_goal {
            self.reason.get_or_insert(StopReason::Solved);
        }
    }

    fn tell_of_episodes_cut_off(&mut self, evaluation: &Evaluation) {
        if evaluation.cut_off > 0 {
            let limit_steps = self.config().evaluator.episode_limit_steps;
            let cut = format!("an evaluated episode was not over after step {limit_steps} (evaluator.episode_limit_steps)");
            self.sinks.event_once(cut.clone(), &format!("{cut}: such episodes are cut off there, and count as far as they came"));
        }
    }
}
