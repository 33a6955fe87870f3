//! What a run shows of itself: progress line, event files, `metrics.jsonl`, the verdict on the bottleneck.
//!
//! A supervisor creates a [`RunFolder`] and a [`Console`], then feeds [`Sinks`] with a [`Snapshot`] several times a
//! second. Everything runs in the calling thread and returns at once, so the supervisor may fork between any two
//! calls.

mod append;
pub mod bottleneck;
mod by_kind;
mod console;
mod error;
pub mod evaluation;
pub mod event_file;
mod goal;
mod gpus;
pub mod hyper_parameters;
mod inserted;
mod invocation;
pub mod jsonl;
mod mean_rates;
mod output;
mod progress;
mod progress_line;
mod reached;
mod remembered;
mod run_folder;
mod run_record;
mod sinks;
pub mod snapshot;
mod summary;
mod table;
pub mod tensorboard;
mod videos;

pub use bottleneck::{Bottleneck, Diagnosis};
pub use by_kind::ByKind;
pub(crate) use console::is_capable;
pub use console::{Abilities, Console};
pub use error::TelemetryError;
pub use evaluation::{Evaluation, EvaluationKind, ReturnStatistics};
pub use goal::{Attempts, GoalOutcome, proven_return};
pub(crate) use gpus::Gpus;
pub use inserted::{Inserted, InsertedByProcess};
pub(crate) use invocation::Invocation;
pub use progress::Progress;
pub use progress_line::{Look, live_line, plain_line};
pub use reached::Reached;
pub use remembered::Remembered;
pub use run_folder::{CHARTS, FolderSettings, LATEST, RunFolder, folders_of, plain_name, point_latest};
pub use run_record::{Finished, RunRecord};
pub use sinks::{SinkSettings, Sinks, note};
pub use snapshot::{ActorTime, Effort, LearnerTime, Metrics, Snapshot, fault_of};
pub use summary::{EvaluatedWeights, EvaluationCounts, StopReason, Summary};
pub use table::Table;
pub use videos::{Video, videos_in};

/// `part` as a share of `whole`; 0 if there is no whole.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
