//! The films of a run: one now and then, of which the newest are kept, and the best.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::config::schema::VisualizerConfig;
use crate::environments::Picture;
use crate::environments::reel::{FilmError, Reel};

/// A film ends here though its episode goes on: three minutes at ten pictures a second.
const MOST_PICTURES: usize = 1_800;
/// Steps of a film that are seen in a second.
const STEPS_PER_SECOND: u16 = 30;
const EXTENSION: &str = "gif";

/// Where films go, and when the next is due.
pub(super) struct Films {
    folder: PathBuf,
    interval: Option<Duration>,
    keep: usize,
    due: Instant,
}

/// A film in the making.
pub(super) struct Rolling(Reel);

impl Rolling {
    /// Add a picture, the last one if the episode has `ended`.
    pub(super) fn add(&mut self, picture: Picture, ended: bool) {
        self.0.add(picture, ended || self.0.pictures() + 1 >= MOST_PICTURES);
    }
}

impl Films {
    pub(super) fn new(folder: PathBuf, config: &VisualizerConfig) -> Self {
        let interval = config.video_interval_s.map(Duration::from_secs_f64);
        Self { folder, interval, keep: config.keep_videos, due: Instant::now() }
    }

    /// A film of the episode that begins now, if it is time for one.
    pub(super) fn begin_if_due(&mut self) -> Result<Option<Rolling>, FilmError> {
        let Some(interval) = self.interval.filter(|_| Instant::now() >= self.due) else { return Ok(None) };
        self.due = Instant::now() + interval;
        let path = self.folder.join("film.gif");
        fs::create_dir_all(&self.folder).map_err(|error| FilmError::Write { path: path.clone(), source: error.into() })?;
        Ok(Some(Rolling(Reel::prepare(&path, STEPS_PER_SECOND)?)))
    }

    /// Keep the film of an episode that has ended, and drop what is then too many.
    pub(super) fn finish(&self, film: Option<Rolling>, env_steps: u64, episode_return: f64) -> Result<(), FilmError> {
        let Some(Rolling(reel)) = film else { return Ok(()) };
        // A film that has ended before its episode shows a part of it; the return is the whole one's.
        reel.finish_as(self.folder.join(format!("step{env_steps:012}-return{episode_return:.1}.{EXTENSION}")))?;
        for path in too_many(&films_in(&self.folder), self.keep) {
            // One that cannot be removed is one too many, no more.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// The films in `folder`, the oldest first.
fn films_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut films: Vec<PathBuf> = entries.filter(|path| return_of(path).is_some()).collect();
    films.sort();
    films
}

/// The return that the name of a film tells; `None` if it is none.
fn return_of(path: &Path) -> Option<f64> {
    let name = path.file_name()?.to_str()?;
    name.starts_with("step").then_some(())?;
    name.strip_suffix(&format!(".{EXTENSION}"))?.split_once("-return")?.1.parse().ok()
}

/// Those of `films`, the oldest first, that are neither among the newest nor the best.
fn too_many(films: &[PathBuf], keep: usize) -> Vec<PathBuf> {
    let best = films.iter().max_by(|a, b| return_of(a).partial_cmp(&return_of(b)).unwrap_or(std::cmp::Ordering::Equal));
    let old = &films[..films.len().saturating_sub(keep)];
    old.iter().filter(|film| Some(*film) != best).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_films_are_kept_and_the_best() {
        let films: Vec<PathBuf> = [5.0, 90.5, -3.0, 20.0, 10.0]
            .iter()
            .enumerate()
            .map(|(step, score)| format!("step{step:012}-return{score:.1}.gif").into())
            .collect();
        assert_eq!(too_many(&films, 2), [films[0].clone(), films[2].clone()]);
        assert_eq!(too_many(&films, 5), Vec::<PathBuf>::new());
        assert_eq!(too_many(&films, 9), Vec::<PathBuf>::new());
        assert_eq!(return_of(Path::new("videos/step000000000002-return-3.0.gif")), Some(-3.0));
        assert_eq!(return_of(Path::new("videos/.film.abc")), None);
    }
}
