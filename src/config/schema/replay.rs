//! Table `[replay]`.

use super::TRANSITION_ALGORITHMS;
use crate::config::define::{choice, table};
use crate::config::limits::{Limits, at_least, between, positive, positive_up_to, whole};
use crate::segment::layout::{FANOUTS, MAX_CAPACITY};

const LARGEST_CAPACITY: u64 = MAX_CAPACITY as u64;

table! {
    /// The prioritized replay between actors and learners.
    [replay] ReplayConfig {
        /// Transitions that the replay keeps.
        capacity: usize = 100_000, whole(64, LARGEST_CAPACITY), "transitions", only TRANSITION_ALGORITHMS;
        /// Children per node of the sum tree.
        fanout: usize = 16, Limits::OneOf(&FANOUTS), "children", only TRANSITION_ALGORITHMS;
        /// Sample by priority (Schaul et al. 2016); `false` samples uniformly.
        prioritized: bool = true, Limits::Any, "", only TRANSITION_ALGORITHMS;
        /// Exponent of the priorities.
        alpha: f64 = 0.6, between(0.0, 1.0), "", only TRANSITION_ALGORITHMS;
        /// Importance-sampling exponent at the first update.
        beta_start: f64 = 0.4, between(0.0, 1.0), "", only TRANSITION_ALGORITHMS;
        /// Importance-sampling exponent at the end of the schedule.
        beta_end: f64 = 1.0, between(0.0, 1.0), "", only TRANSITION_ALGORITHMS;
        /// Environment steps over which beta grows linearly.
        beta_anneal_steps: u64 = 100_000, at_least(1), "environment steps", only TRANSITION_ALGORITHMS;
        /// Constant that is added to the absolute temporal-difference error in a priority.
        priority_epsilon: f64 = 1e-2, positive_up_to(1_000.0), "", only TRANSITION_ALGORITHMS;
        /// Priority of a new transition.
        initial_priority: InitialPriority = InitialPriority::Max, Limits::Any, "", only TRANSITION_ALGORITHMS;
        /// Transitions stored before the first batch is sampled.
        min_size: usize = 1_000, whole(1, LARGEST_CAPACITY), "transitions", only TRANSITION_ALGORITHMS;
        /// Transitions sampled per transition inserted. `"none"` lets actors and learners run freely. For DDPG, TD3 and
        /// SAC the default follows `learner.batch_size`: an update for each environment step.
        samples_per_insert: Option<f64> = Some(32.0), positive(), "samples per insert", only TRANSITION_ALGORITHMS;
        /// How far sampling may run ahead or fall behind by that ratio, in samples, before the faster side waits.
        /// `"none"` chooses the band.
        error_band: Option<f64> = None, positive(), "samples", only TRANSITION_ALGORITHMS;
    }
}

choice! {
    /// Priority of a new transition.
    InitialPriority {
        /// The largest priority seen so far.
        Max = "max",
        /// The temporal-difference error under the actor's own parameters (Ape-X).
        TdError = "td_error",
    }
}
