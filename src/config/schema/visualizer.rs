//! Table `[visualizer]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, between, positive_up_to, whole};

table! {
    /// The process that plays for people to watch (docs/dashboard.md).
    [visualizer] VisualizerConfig {
        /// Whether a visualizer process runs. It has the lowest priority, and no other process waits for it.
        enabled: bool = false, Limits::Any, "";
        /// Environment steps that it takes per second; each is shown.
        pictures_per_s: f64 = 10.0, between(0.1, 100.0), "pictures per second";
        /// Shortest time between the starts of two videos. A video shows one episode, or its first 1,800 pictures,
        /// and lies in the folder `videos` of the run. `"none"` makes none.
        video_interval_s: Option<f64> = Some(60.0), positive_up_to(31_536_000.0), "seconds";
        /// The file format of videos.
        video_format: VideoFormat = VideoFormat::Gif, Limits::Any, "";
        /// How many of the newest videos are kept. The best video is kept as well.
        keep_videos: usize = 10, whole(1, 10_000), "videos";
    }
}

choice! {
    /// The file format of videos.
    VideoFormat {
        /// An animated GIF, which everything plays.
        Gif = "gif",
        /// H.264: smaller, and in all colours. Only in a program built with `--features mp4`.
        Mp4 = "mp4",
    }
}

impl VideoFormat {
    /// The extension of its files, without the dot.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Mp4 => "mp4",
        }
    }
}
