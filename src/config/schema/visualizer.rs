//! Table `[visualizer]`.

use crate::config::define::table;
use crate::config::limits::{Limits, above_up_to, between, whole};

table! {
    /// The process that plays for people to watch (docs/dashboard.md).
    [visualizer] VisualizerConfig {
        /// Whether such a process runs. It has the lowest priority, and nobody waits for it.
        enabled: bool = false, Limits::Any, "";
        /// Steps that it takes in a second, each of which it shows.
        pictures_per_s: f64 = 10.0, between(0.1, 100.0), "pictures per second";
        /// Time between the starts of two films, each of one episode: GIFs in the folder `videos` of the run. `"none"` makes none.
        video_interval_s: Option<f64> = Some(60.0), above_up_to(0.0, 31_536_000.0), "seconds";
        /// Films that are kept, the newest. The best is kept, too.
        keep_videos: usize = 10, whole(1, 10_000), "films";
    }
}
