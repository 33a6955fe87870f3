//! What the supervisor remembers of a run, and what else is in its checkpoints.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Prepared;
use crate::checkpoint::Content;
use crate::config::RowKind;
use crate::config::schema::KeepReplay;
use crate::replay::ZeroPriority;
use crate::segment::Segment;
use crate::telemetry::Remembered;

/// What a checkpoint's manifest has of the supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SupervisorRecord {
    /// Seconds that the run has taken.
    pub(super) wall_s: f64,
    /// Seconds of training among those.
    pub(super) training_s: f64,
    /// Processes that died and served training.
    pub(super) restarts: u64,
    /// What was recorded.
    pub(super) remembered: Remembered,
}

impl SupervisorRecord {
    /// The record as it will be after `late`, in the form that a checkpoint keeps; `trains` says whether the run
    /// goes on training meanwhile.
    pub(super) fn after(&self, late: Duration, trains: bool) -> Value {
        let late_s = late.as_secs_f64();
        let training_s = self.training_s + if trains { late_s } else { 0.0 };
        let later = Self { wall_s: self.wall_s + late_s, training_s, ..self.clone() };
        serde_json::to_value(later).expect("figures have a spelling in JSON")
    }

    /// What a checkpoint of a run that is not completed is made of, with the record as `supervisor_record` has it once the rest is written.
    pub(super) fn content<'a>(
        &self,
        prepared: &Prepared,
        segment: &'a Segment,
        best_weights: &'a Path,
        supervisor_record: &'a dyn Fn(Duration) -> Value,
    ) -> Content<'a> {
        let config = &prepared.loaded.config;
        Content {
            segment,
            schema: prepared.algorithm().schema(),
            // A fragment is taken by setting its priority to zero.
            zero: match config.row_kind() {
                RowKind::Transitions => ZeroPriority::Unfinished,
                RowKind::Fragments if config.retained_fragments() == 0 => ZeroPriority::TakenForGood,
                RowKind::Fragments => ZeroPriority::Taken,
            },
            incarnation: None,
            with_replay: config.checkpoint.replay != KeepReplay::Never,
            longest_rest: Duration::ZERO,
            best_weights,
            best_env_steps: self.remembered.best.map(|best| best.env_steps),
            supervisor_record,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_what_is_left_once_a_run_has_ended_is_no_training() {
        let record = SupervisorRecord { wall_s: 9.0, training_s: 7.0, restarts: 0, remembered: Remembered::default() };
        let seconds = |trains| {
            let later = record.after(Duration::from_secs(2), trains);
            [&later["wall_s"], &later["training_s"]].map(|seconds| seconds.as_f64().unwrap())
        };
        assert_eq!((seconds(true), seconds(false)), ([11.0, 9.0], [11.0, 7.0]));
    }
}
