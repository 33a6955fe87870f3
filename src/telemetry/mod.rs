//! What a run shows of itself: progress line, event files, `metrics.jsonl`, the verdict on the bottleneck.

pub mod snapshot;

pub use snapshot::{ActorTime, LearnerTime, Snapshot};
