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
        /// Fresh episodes, with the same weights, after an evaluation that reached `run.stop_eval_return` or did better than the best
        /// weights: they decide whether the run is solved, and whether the weights are the best. Two are the least that have a spread.
        confirm_episodes: usize = 100, whole(2, 10_000), "episodes";
        /// Steps after which an episode is cut off, and counts as far as it came: an environment without a limit of its own may never end one.
        episode_limit_steps: u32 = 100_000, whole(1, u32::MAX as u64), "steps";
        /// Play the action that the policy takes for the most likely one; `false` draws from it, as actors do.
        greedy: bool = true, Limits::Any, "", only ["sac", "appo", "ppo"];
        /// Shortest time between the starts of two evaluations.
        interval_ms: u64 = 500, whole(0, 86_400_000), "milliseconds";
        /// Environment steps between two evaluations where `actor.count` is 0, since a reproducible run must not look at the clock.
        synchronous_interval_steps: u64 = 5_000, whole(1, 1_000_000_000_000), "environment steps";
    }
}
