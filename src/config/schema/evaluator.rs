//! Table `[evaluator]`.

use crate::config::define::table;
use crate::config::limits::{Limits, whole};

table! {
    /// The process that measures the newest parameters.
    [evaluator] EvaluatorConfig {
        /// Whether an evaluator process runs.
        enabled: bool = true, Limits::Any, "";
        /// Episodes per evaluation.
        episodes: usize = 20, whole(1, 10_000), "episodes";
        /// Shortest time between the starts of two evaluations.
        interval_ms: u64 = 500, whole(0, 86_400_000), "milliseconds";
    }
}
