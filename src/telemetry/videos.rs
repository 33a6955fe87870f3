//! Videos of episodes in the folder of a run: their names, and which of them there are.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use crate::config::schema::VideoFormat;

/// A video of an episode, with what the name of its file tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Video {
    /// Name of the file, for instance `step000000004096-return21.500.gif`.
    pub name: String,
    /// Environment steps of the run when the video had its last picture.
    pub env_steps: u64,
    /// Return of the episode up to the last picture. It may be no number (NaN).
    pub episode_return: f64,
    /// What kind of file it is.
    #[serde(skip)]
    pub format: VideoFormat,
}

impl Video {
    /// The video of an episode with `episode_return`, whose last picture came after `env_steps` of the run.
    pub fn new(env_steps: u64, episode_return: f64, format: VideoFormat) -> Self {
        // The visualizer keeps the best video, which it finds by the returns in the names.
        let name = format!("step{env_steps:012}-return{episode_return:.3}.{}", format.ending());
        Self { name, env_steps, episode_return, format }
    }

    /// The video whose file has this name; `None` if it is not the name of a video.
    pub fn named(name: &str) -> Option<Self> {
        let (figures, ending) = name.strip_prefix("step")?.rsplit_once('.')?;
        let (env_steps, episode_return) = figures.split_once("-return")?;
        // A run that went on with another format has videos of both formats.
        let format = [VideoFormat::Gif, VideoFormat::Mp4].into_iter().find(|format| format.ending() == ending)?;
        Some(Self { name: name.to_owned(), env_steps: env_steps.parse().ok()?, episode_return: episode_return.parse().ok()?, format })
    }
}

/// The videos in `folder`, the oldest file first. Their steps do not order them: a run that went on from a checkpoint
/// repeats some.
pub fn videos_in(folder: &Path) -> Vec<Video> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut videos: Vec<(SystemTime, Video)> = entries
        .filter_map(|entry| {
            let file = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((file.modified().ok()?, Video::named(entry.file_name().to_str()?)?))
        })
        .collect();
    videos.sort_by(|(a_time, a), (b_time, b)| (a_time, &a.name).cmp(&(b_time, &b.name)));
    videos.into_iter().map(|(_, video)| video).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_video_tells_its_steps_and_its_return() {
        let video = Video::new(4_096, -3.0404, VideoFormat::Mp4);
        assert_eq!(video.name, "step000000004096-return-3.040.mp4");
        assert_eq!(Video::named(&video.name), Some(Video { episode_return: -3.04, ..video }));
        assert!(Video::named(&Video::new(1, f64::NAN, VideoFormat::Gif).name).unwrap().episode_return.is_nan());
        for other in [".video.abc", "step000000000002-return-3.0.png", "step2.gif", "stepx-return1.0.gif", "step2-return.gif"] {
            assert_eq!(Video::named(other), None, "{other}");
        }
    }

    #[test]
    fn videos_are_told_in_the_order_in_which_they_were_written_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, age_s| {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age_s)).unwrap();
        };
        write("step000000000009-return1.0.gif", 20);
        write("step000000000002-return5.0.gif", 10);
        write("notes.txt", 5);
        fs::create_dir(folder.path().join("step000000000001-return1.0.gif")).unwrap();
        std::os::unix::fs::symlink("step000000000002-return5.0.gif", folder.path().join("step000000000003-return1.0.gif")).unwrap();
        let steps: Vec<u64> = videos_in(folder.path()).iter().map(|video| video.env_steps).collect();
        assert_eq!(steps, [9, 2]);
        assert_eq!(videos_in(&folder.path().join("missing")), []);
    }
}
