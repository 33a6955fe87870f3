//! Table `[actor]`.

use super::TRANSITION_ALGORITHMS;
use crate::config::define::table;
use crate::config::limits::{at_least, whole};
use crate::segment::layout::MAX_PROCESSES;
use crate::segment::membership::MOST_LEARNERS;

/// The most actors of a run.
pub(super) const MOST_ACTORS: u64 = 1_024;
/// The most environments of an actor.
pub(super) const MOST_ENVIRONMENTS: u64 = 4_096;
const MOST_ATTACH_SLOTS: usize = 256;
const EVALUATORS: usize = 1;
const _: () =
    assert!(MOST_ACTORS as usize + MOST_ATTACH_SLOTS + MOST_LEARNERS + EVALUATORS <= MAX_PROCESSES, "every allowed run fits a segment");

table! {
    /// The processes that step environments.
    [actor] ActorConfig {
        /// Actor processes. With 0 everything runs in one process, and the seed reproduces the run bit for bit.
        /// `"auto"` takes the cores that learners leave, at least one (docs/adaptation.md).
        count: usize = 1, whole(0, MOST_ACTORS), "processes";
        /// Environments of each actor, which it steps with one batched inference.
        environments: usize = 8, whole(1, MOST_ENVIRONMENTS), "environments";
        /// Transitions that an actor stages before it flushes them into the replay.
        flush_transitions: usize = 64, whole(1, 65_536), "transitions", only TRANSITION_ALGORITHMS;
        /// Longest time that a staged transition waits for a flush.
        flush_interval_ms: u64 = 50, whole(1, 60_000), "milliseconds", only TRANSITION_ALGORITHMS;
        /// Environment steps with random actions, summed over all actors, before the policy acts.
        random_steps: u64 = 1_000, at_least(0), "environment steps", only TRANSITION_ALGORITHMS;
        /// Slots kept for actors that join with `attach` and for programs that use the replay as guests; there are
        /// none if `actor.count` is 0.
        attach_slots: usize = 8, whole(0, MOST_ATTACH_SLOTS as u64), "processes";
    }
}
