//! Table `[checkpoint]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, positive_up_to, whole};

table! {
    /// What a run goes on from after its end, or after it was killed (docs/resume.md).
    [checkpoint] CheckpointConfig {
        /// Time between two checkpoints; one more is written at the end of the run. `"none"` writes none.
        interval_s: Option<f64> = Some(600.0), positive_up_to(31_536_000.0), "seconds";
        /// Environment steps between two checkpoints where `actor.count` is 0, since a reproducible run must not look at the clock.
        /// The trainer begins anew at each, and episodes under way are given up, so this changes what the run learns.
        synchronous_interval_steps: Option<u64> = None, whole(1, 1_000_000_000_000), "environment steps";
        /// When a checkpoint has the replay too. Without it a run goes on with an empty one, and a checkpoint has the size of a few networks.
        replay: KeepReplay = KeepReplay::UntilCompleted, Limits::Any, "";
        /// Checkpoints that are kept, the newest. While another is written there is one more.
        keep_last: usize = 2, whole(1, 10_000), "checkpoints";
        /// Keep the first that has the best weights, too.
        keep_best: bool = false, Limits::Any, "";
        /// Keep the first of every so many environment steps, too.
        keep_every_steps: Option<u64> = None, whole(1, 1_000_000_000_000), "environment steps";
    }
}

choice! {
    /// When the replay is kept.
    KeepReplay {
        /// Until the run has come to its end by itself: solved, or at its last step. What it leaves then is small.
        UntilCompleted = "until_completed",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}
