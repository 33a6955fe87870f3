//! What a run shows of itself: progress line, event files, `metrics.jsonl`, the verdict on the bottleneck.
//!
//! A supervisor creates a [`RunFolder`] and a [`Console`], then feeds [`Sinks`] with a [`Snapshot`] several times a
//! second. Everything runs in the calling thread and returns at once, so the supervisor may fork between any two
//! calls.

// Figures of a run.
mod by_kind; // of learners, actors and the other kinds of process, such as processor time
mod gpus;
mod inserted;
mod mean_rates;
mod remembered; // handed on to the next life of the run
mod snapshot; // all that the supervisor knows at one moment

// Judgement.
pub mod bottleneck;
mod evaluation;
mod goal;
mod reached; // how far a run has come, and what has to change for it to go on
mod stop_reason; // why a run stopped
mod summary; // the closing report

// Files.
mod append; // a file that only grows by whole records
pub mod event_file;
mod folders; // of all runs
pub mod hyper_parameters;
pub mod jsonl;
mod run_folder;
mod run_record; // run.json
mod sinks; // everything that records a run, behind one object
pub mod tensorboard;
mod videos;

// The terminal.
mod console; // the one way to standard error
mod invocation; // how this program was started, and what may be typed next
mod output; // a descriptor that is written only where that does not wait
mod progress;
mod progress_line;
mod table;

mod error;

pub use bottleneck::{Bottleneck, Diagnosis};
pub use by_kind::ByKind;
pub(crate) use console::is_capable;
pub use console::{Abilities, Console};
pub use error::TelemetryError;
pub use evaluation::{EvaluatedWeights, Evaluation, EvaluationCounts, EvaluationKind, ReturnStatistics};
pub use folders::{LATEST, folders_of, is_of_seeds, plain_name, point_latest};
pub use goal::{Attempts, GoalOutcome, proven_return};
pub(crate) use gpus::Gpus;
pub use inserted::{Inserted, InsertedByProcess};
pub(crate) use invocation::Invocation;
pub use progress::Progress;
pub use progress_line::{Look, live_line, plain_line};
pub use reached::Reached;
pub use remembered::Remembered;
pub use run_folder::{CHARTS, FolderSettings, RunFolder};
pub use run_record::{Finished, RunRecord};
pub use sinks::{Sinks, note};
pub use snapshot::{ActorTime, Effort, LearnerTime, Metrics, Snapshot, fault_of};
pub use stop_reason::StopReason;
pub use summary::Summary;
pub use table::Table;
pub use videos::{Video, videos_in};

/// `part` as a share of `whole`; 0 if there is no whole.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
