//! Table `[fragments]`.

use super::FRAGMENT_ALGORITHMS;
use crate::config::define::{choice, table};
use crate::config::limits::{Limits, between, whole};

/// The fewest fragments that `fragments.capacity` may have room for.
pub(crate) const LEAST_FRAGMENTS: usize = 64;

table! {
    /// The fragments of trajectories that actors hand to learners, in order.
    [fragments] FragmentsConfig {
        /// Steps of one fragment. If a time limit cuts an episode off, its last fragment is shorter.
        length_steps: usize = 32, whole(1, 4_096), "environment steps", only FRAGMENT_ALGORITHMS;
        /// The most fragments that wait for learners. `"none"` takes two batches plus what all actors complete at
        /// once.
        capacity: Option<usize> = None, whole(LEAST_FRAGMENTS as u64, 1 << 20), "fragments", only ["appo"];
        /// What actors do when no more fragments may wait.
        on_full: OnFull = OnFull::Wait, Limits::Any, "", only ["appo"];
        /// Fragments whose parameters are older than this when a learner takes them are dropped and counted.
        max_policy_lag_updates: u64 = 100, whole(0, 1_000_000_000), "updates", only ["appo"];
        /// Batches that a learner keeps so as to learn from each several times; an update takes any of them.
        kept_batches: usize = 4, whole(1, 1_024), "batches", only ["appo"];
        /// Updates from each batch.
        uses: usize = 2, whole(1, 1_024), "updates", only ["appo"];
        /// Part of a batch that is drawn at random from fragments that were taken before.
        replay_share: f64 = 0.0, between(0.0, 0.9), "", only ["appo"];
        /// Fragments that stay for `replay_share` after they were taken. `"none"` keeps eight batches.
        retained: Option<usize> = None, whole(1, 1 << 20), "fragments", only ["appo"];
    }
}

choice! {
    /// What actors do when no more fragments may wait.
    OnFull {
        /// Actors wait: no fragment is overwritten.
        Wait = "wait",
        /// Actors go on and overwrite the oldest fragments.
        DropOldest = "drop_oldest",
    }
}
