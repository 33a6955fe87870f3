//! Table `[checkpoint]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, positive_up_to, whole};

table! {
    /// The checkpoints from which a run is resumed after its end, or after it was killed (docs/resume.md).
    [checkpoint] CheckpointConfig {
        /// Time between two checkpoints. One more is written at the end of the run. `"none"` writes none.
        interval_s: Option<f64> = Some(600.0), positive_up_to(31_536_000.0), "seconds";
        /// Environment steps between two checkpoints if `actor.count` is 0, since a reproducible run must not look
        /// at the clock. At each checkpoint the trainer begins anew and gives up the episodes under way, so this
        /// interval changes what the run learns. PPO and APPO put each checkpoint off until all environments have
        /// taken whole fragments since the one before, the others until all have taken `algorithm.n_step` steps.
        synchronous_interval_steps: Option<u64> = None, whole(1, 1_000_000_000_000), "environment steps";
        /// When a checkpoint includes the replay. Without it a resumed run begins with an empty replay, and a checkpoint
        /// has the size of a few networks.
        replay: KeepReplay = KeepReplay::UntilCompleted, Limits::Any, "";
        /// How many of the newest checkpoints are kept. While another is written there is one more, if the disk has room.
        keep_last: usize = 2, whole(1, 10_000), "checkpoints";
        /// Also keep the first checkpoint that has the best weights.
        keep_best: bool = false, Limits::Any, "";
        /// Also keep the first checkpoint of every so many environment steps.
        keep_every_steps: Option<u64> = None, whole(1, 1_000_000_000_000), "environment steps";
    }
}

choice! {
    /// When a checkpoint includes the replay.
    KeepReplay {
        /// Until the run completes: it is solved, or has taken its last step. The checkpoint of a completed run is
        /// small. With `actor.count = 0` the same as `"always"`.
        UntilCompleted = "until_completed",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}
