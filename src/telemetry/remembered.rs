//! What is known of a run to whoever records it, for whoever goes on recording it.

use serde::{Deserialize, Serialize};

use super::jsonl::{self, EvaluationLine};
use super::{Attempts, EvaluatedWeights, EvaluationCounts, EvaluationKind, RunFolder};

/// What is known of a run at some moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// Environment steps of that moment.
    pub env_steps: u64,
    /// How many evaluations there were.
    pub evaluations: EvaluationCounts,
    /// The best weights.
    pub best: Option<EvaluatedWeights>,
    /// The weights that were evaluated last.
    pub newest: Option<EvaluatedWeights>,
    /// Evaluations that reached the goal and were not confirmed.
    pub unconfirmed: u64,
}

impl Remembered {
    /// What the files in `folder` tell of a run with this `goal` that has taken `env_steps`: all that was known of it, but for what it
    /// could not write.
    pub fn of_files(folder: &RunFolder, goal: Option<f64>, env_steps: u64) -> Self {
        let mut remembered = Self { env_steps, ..Self::default() };
        let mut attempts = Attempts::default();
        for line in jsonl::read::<EvaluationLine>(&folder.evaluations()) {
            let evaluated = line.weights();
            remembered.evaluations.count(evaluated.kind);
            remembered.newest = Some(evaluated);
            if line.is_best() {
                remembered.best = remembered.newest;
            }
            match evaluated.kind {
                EvaluationKind::Routine => attempts.propose(evaluated.statistics.return_mean, goal),
                EvaluationKind::Confirmation => _ = attempts.decide(line.confirms_goal()),
            }
        }
        Self { unconfirmed: attempts.failed(), ..remembered }
    }
}
