//! Table `[evaluator]`.

use super::actor::MOST_ENVIRONMENTS;
use crate::config::define::table;
use crate::config::limits::{Limits, whole};

table! {
    /// The process that evaluates the newest parameters (docs/evaluation.md).
    [evaluator] EvaluatorConfig {
        /// Whether an evaluator process runs.
        enabled: bool = true, Limits::Any, "";
        /// Episodes per evaluation.
        episodes: usize = 20, whole(1, 10_000), "episodes";
        /// Fresh episodes with the same weights, played after an evaluation that reached `run.stop_eval_return` or
        /// did better than the best weights. They decide whether the run is solved, and whether the weights are the
        /// best. At least two, since one has no spread.
        confirm_episodes: usize = 100, whole(2, 10_000), "episodes";
        /// How many environments an evaluation may have, all in one process: each plays one episode after another.
        /// There are fewer if `evaluator.episodes` is less. The limit also holds for `shoal evaluate`. Set 1 for a
        /// simulator of which a process can hold only one.
        environments: usize = 32, whole(1, MOST_ENVIRONMENTS), "environments";
        /// Steps after which an episode is cut off and counts as far as it came: an environment without a limit of
        /// its own may never end one.
        episode_limit_steps: u32 = 100_000, whole(1, u32::MAX as u64), "steps";
        /// Play the action that the policy finds most likely; `false` draws an action, as actors do.
        greedy: bool = true, Limits::Any, "", only ["sac", "appo", "ppo"];
        /// Shortest time between the starts of two evaluations.
        interval_ms: u64 = 500, whole(0, 86_400_000), "milliseconds";
        /// Environment steps between two evaluations if `actor.count` is 0, since a reproducible run must not look
        /// at the clock.
        synchronous_interval_steps: u64 = 5_000, whole(1, 1_000_000_000_000), "environment steps";
    }
}
