//! What the recorder of a run knows of it, handed on to the recorder of its next life.

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
        for EvaluationLine { weights, is_best, confirms_goal, .. } in jsonl::read(&folder.evaluations()) {
            remembered.take_in(weights, is_best);
            match weights.kind {
                EvaluationKind::Routine => attempts.propose(weights.statistics.return_mean, goal),
                EvaluationKind::Confirmation => _ = attempts.decide(confirms_goal),
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
