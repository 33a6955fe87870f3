//! Table `[visualizer]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, between, positive_up_to, whole};

table! {
    /// The process that plays for people to watch (docs/dashboard.md).
    [visualizer] VisualizerConfig {
        /// Whether such a process runs. It has the lowest priority, and nobody waits for it.
        enabled: bool = false, Limits::Any, "";
        /// Steps that it takes in a second, each of which it shows.
        pictures_per_s: f64 = 10.0, between(0.1, 100.0), "pictures per second";
        /// Least time between the starts of two videos, each of one episode or its first 1,800 pictures, in the folder `videos` of the run.
        /// `"none"` makes none.
        video_interval_s: Option<f64> = Some(60.0), positive_up_to(31_536_000.0), "seconds";
        /// What videos are.
        video_format: VideoFormat = VideoFormat::Gif, Limits::Any, "";
        /// Videos that are kept, the newest. The best is kept, too.
        keep_videos: usize = 10, whole(1, 10_000), "videos";
    }
}

choice! {
    /// How videos are kept.
    VideoFormat {
        /// An animated GIF, which everything plays.
        Gif = "gif",
        /// H.264: smaller, and in all colours. Only in a program built with `--features mp4`.
        Mp4 = "mp4",
    }
}

impl VideoFormat {
    /// How the names of its files end, without the dot.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Mp4 => "mp4",
        }
    }
}
