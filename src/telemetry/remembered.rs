//! What the recorder of a run knows of it, handed on to the recorder of its next life.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::BuildHasher;

use serde::{Deserialize, Serialize};

use super::jsonl::{self, EvaluationLine};
use super::{Attempts, EvaluatedWeights, EvaluationCounts, EvaluationKind, RunFolder};

/// What is known of a run when it has taken `env_steps`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// Environment steps taken.
    pub env_steps: u64,
    /// How many evaluations there were.
    pub evaluations: EvaluationCounts,
    /// The best weights.
    pub best: Option<EvaluatedWeights>,
    /// The weights that were evaluated last.
    pub newest: Option<EvaluatedWeights>,
    /// How many evaluations reached the goal and were not confirmed.
    pub unconfirmed: u64,
}

impl Remembered {
    /// Reads from the files in `folder` what is known of a run with this `goal` that has taken `env_steps`.
    /// Evaluations that could not be written are missing.
    pub fn of_files(folder: &RunFolder, goal: Option<f64>, env_steps: u64) -> Self {
        let mut remembered = Self { env_steps, ..Self::default() };
        let mut attempts = Attempts::default();
        let (mut known, mut text) = (HashSet::<u64>::new(), String::new());
        for EvaluationLine { weights, is_best, .. } in jsonl::read(&folder.evaluations()) {
            // A synchronous run that was killed has found the same again since its checkpoint. A number stands for each evaluation,
            // since a run of weeks has millions.
            text.clear();
            let _ = write!(text, "{weights:?}");
            let is_new = known.insert(known.hasher().hash_one(&text));
            if is_new {
                remembered.take_in(weights, is_best);
            }
            match weights.kind {
                // Also again: a life begins with the weights that the one before it had, and may confirm them once more.
                EvaluationKind::Routine => attempts.propose(weights.statistics.return_mean, goal),
                // The line says whether it confirmed the goal of its time, which may have been another.
                EvaluationKind::Confirmation if is_new => _ = attempts.decide(attempts.proves_goal(&weights.statistics, goal)),
                EvaluationKind::Confirmation => {}
            }
        }
        Self { unconfirmed: attempts.failed(), ..remembered }
    }

    /// Takes in the newest evaluation. Its part in the attempts to confirm the goal is counted elsewhere.
    pub(super) fn take_in(&mut self, weights: EvaluatedWeights, is_best: bool) {
        self.evaluations.count(weights.kind);
        self.newest = Some(weights);
        if is_best {
            self.best = self.newest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Evaluation;
    use super::*;

    #[test]
    fn whether_an_attempt_failed_is_judged_by_the_goal_that_a_run_goes_on_with() {
        // Whether it confirmed the goal of its time, as a lower one, or there was none or a higher one.
        for confirms_goal in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let folder = RunFolder::create(root.path(), "run", "").unwrap();
            let mut lines = jsonl::JsonLines::open(&folder.evaluations(), false).unwrap();
            // The mean is 195, and the 95 % interval begins at 193.7.
            let routine = Evaluation { returns: vec![194.0, 195.0, 196.0, 195.0], ..Evaluation::default() };
            lines.append(&EvaluationLine::from(&routine)).unwrap();
            let confirmation = Evaluation { kind: EvaluationKind::Confirmation, confirms_goal, ..routine };
            lines.append(&EvaluationLine::from(&confirmation)).unwrap();

            let unconfirmed = |goal| Remembered::of_files(&folder, goal, 0).unconfirmed;
            assert_eq!(unconfirmed(None), 0, "nothing was attempted");
            assert_eq!(unconfirmed(Some(160.0)), 0, "a lower goal is proven");
            assert_eq!(unconfirmed(Some(194.9)), 1, "a higher goal was reached and is not proven");
            assert_eq!(unconfirmed(Some(200.0)), 0, "a goal far above was not reached");
        }
    }

    #[test]
    fn what_a_synchronous_run_found_again_after_a_kill_counts_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "run", "").unwrap();
        let mut lines = jsonl::JsonLines::open(&folder.evaluations(), false).unwrap();
        let routine = Evaluation { version: 3, returns: vec![194.0, 195.0, 196.0, 195.0], ..Evaluation::default() };
        let confirmation = Evaluation { kind: EvaluationKind::Confirmation, ..routine.clone() };
        for wall_s in [7.0, 9.0] {
            for evaluation in [&routine, &confirmation] {
                lines.append(&EvaluationLine::from(&Evaluation { wall_s, ..evaluation.clone() })).unwrap();
            }
        }
        // Other parameters may have the same number in another life of a run.
        lines.append(&EvaluationLine::from(&Evaluation { returns: vec![9.0, 10.0], ..routine })).unwrap();

        let Remembered { evaluations, unconfirmed, .. } = Remembered::of_files(&folder, Some(194.9), 0);
        assert_eq!((evaluations.routine, evaluations.confirmations, unconfirmed), (2, 1, 1));
    }

    #[test]
    fn every_attempt_counts_also_after_a_routine_evaluation_that_found_the_same_as_one_in_an_earlier_life() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "run", "").unwrap();
        let mut lines = jsonl::JsonLines::open(&folder.evaluations(), false).unwrap();
        let routine = Evaluation { version: 3, returns: vec![500.0; 4], ..Evaluation::default() };
        for lowest in [300.0, 400.0] {
            let returns = vec![lowest, 500.0, 500.0, 500.0];
            let confirmation = Evaluation { kind: EvaluationKind::Confirmation, returns, ..routine.clone() };
            for evaluation in [&routine, &confirmation] {
                lines.append(&EvaluationLine::from(evaluation)).unwrap();
            }
        }
        assert_eq!(Remembered::of_files(&folder, Some(499.0), 0).unconfirmed, 2);
    }
}
