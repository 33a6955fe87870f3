//! The videos of a run: one now and then, of which the newest are kept, and the best.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::schema::{VideoFormat, VisualizerConfig};
use crate::environments::Picture;
use crate::environments::video::{UNFINISHED, VideoError, VideoWriter};
use crate::telemetry::{RunFolder, Video, videos_in};

/// A video ends here though its episode goes on: three minutes at ten pictures a second.
const MOST_PICTURES: usize = 1_800;
/// Steps of a video that are seen in a second.
const STEPS_PER_SECOND: u16 = 30;

/// Where videos go, and when the next is due.
pub(super) struct Videos {
    /// The folder of the run, which somebody may move.
    run_folder: RunFolder,
    interval: Option<Duration>,
    keep: usize,
    format: VideoFormat,
    due: Instant,
    /// The videos in the folder, the oldest first. Those that were found come first, by the times of their files; those of this process
    /// follow in the order in which they were made, since the clock may be set back between two.
    videos: Vec<Video>,
}

/// A video in the making.
pub(super) struct Recording(VideoWriter);

impl Recording {
    /// Add a picture, the last one if the episode has `ended`. Whether the video has its last picture now.
    pub(super) fn add(&mut self, picture: Picture, ended: bool) -> bool {
        self.0.add(picture, ended || self.0.pictures() + 1 >= MOST_PICTURES);
        !self.0.is_recording()
    }
}

impl Videos {
    pub(super) fn new(run_folder: RunFolder, config: &VisualizerConfig) -> Self {
        let folder = run_folder.current().videos();
        remove_unfinished(&folder);
        let interval = config.video_interval_s.map(Duration::from_secs_f64);
        let videos = videos_in(&folder);
        Self { run_folder, interval, keep: config.keep_videos, format: config.video_format, due: Instant::now(), videos }
    }

    /// A video of the episode that begins now, if it is time for one.
    pub(super) fn begin_if_due(&mut self) -> Result<Option<Recording>, VideoError> {
        let Some(interval) = self.interval.filter(|_| Instant::now() >= self.due) else { return Ok(None) };
        self.due = Instant::now() + interval;
        let folder = self.run_folder.current().videos();
        let path = folder.join(format!("video.{}", self.format.ending()));
        // Without its parents: if the folder of the run is nowhere to be found, it must not be made again in its old place.
        if !folder.is_dir() {
            fs::create_dir(&folder).map_err(|source| VideoError::Write { path: path.clone(), source })?;
        }
        Ok(Some(Recording(VideoWriter::prepare(&path, STEPS_PER_SECOND)?)))
    }

    /// Keep a video that has its last picture, and drop what is then too many. `episode_return` is the return up to that picture.
    pub(super) fn finish(&mut self, Recording(writer): Recording, env_steps: u64, episode_return: f64) -> Result<(), VideoError> {
        let video = Video::new(env_steps, episode_return, self.format);
        let folder = self.run_folder.current().videos();
        writer.finish_as(folder.join(&video.name))?;
        // A run that went on from a checkpoint comes by the same steps, and names, again.
        self.videos.retain(|other| other.name != video.name);
        // Somebody may have removed videos. Who moves the folder meanwhile has removed none.
        let there = self.videos.iter().filter(|other| folder.join(&other.name).exists()).cloned().collect();
        if folder.is_dir() {
            self.videos = there;
        }
        self.videos.push(video);
        for video in too_many(&self.videos, self.keep) {
            // One that cannot be removed is one too many, no more.
            let _ = fs::remove_file(folder.join(&video.name));
        }
        Ok(())
    }
}

/// Remove the videos that a killed visualizer left unfinished in the folder of videos, where nobody else writes.
pub(crate) fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Those of `videos`, the oldest first, that are neither among the newest nor the best.
fn too_many(videos: &[Video], keep: usize) -> Vec<&Video> {
    let with_return = videos.iter().filter(|video| video.episode_return.is_finite());
    let best = with_return.max_by(|a, b| a.episode_return.total_cmp(&b.episode_return));
    let old = &videos[..videos.len().saturating_sub(keep)];
    old.iter().filter(|video| Some(*video) != best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_returns(returns: &[f64]) -> Vec<Video> {
        (0..).zip(returns).map(|(step, episode_return)| Video::new(step, *episode_return, VideoFormat::Gif)).collect()
    }

    #[test]
    fn a_video_begins_once_the_interval_since_the_last_one_began_is_over() {
        let runs = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(runs.path(), "test", "").unwrap();
        for (video_interval_s, expected) in [(Some(1e6), [true, false]), (Some(1e-9), [true, true]), (None, [false, false])] {
            let config = VisualizerConfig { video_interval_s, ..VisualizerConfig::default() };
            let mut videos = Videos::new(folder.clone(), &config);
            let begun = [(); 2].map(|()| videos.begin_if_due().unwrap().is_some());
            assert_eq!(begun, expected, "{video_interval_s:?}");
        }
    }

    #[test]
    fn the_folder_of_a_run_that_was_removed_is_not_made_again() {
        let runs = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(runs.path(), "test", "").unwrap();
        let config = VisualizerConfig { video_interval_s: Some(1e-9), ..VisualizerConfig::default() };
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(Videos::new(folder.clone(), &config).begin_if_due().is_err());
        assert!(!folder.path().exists());
        fs::create_dir(folder.path()).unwrap();
        assert!(Videos::new(folder.clone(), &config).begin_if_due().is_ok() && folder.videos().is_dir());
    }

    #[test]
    fn the_newest_videos_are_kept_and_the_best() {
        let videos = of_returns(&[5.0, 90.5, -3.0, 20.0, 10.0]);
        assert_eq!(too_many(&videos, 2), [&videos[0], &videos[2]]);
        assert_eq!(too_many(&videos, 5), Vec::<&Video>::new());
        assert_eq!(too_many(&videos, 9), Vec::<&Video>::new());
        let steps = |videos: Vec<&Video>| videos.iter().map(|video| video.env_steps).collect::<Vec<_>>();
        let odd = of_returns(&[90.5, f64::NAN, f64::INFINITY, 20.0]);
        assert_eq!(steps(too_many(&odd, 1)), [1, 2], "what is no number is not the best");
    }
}
