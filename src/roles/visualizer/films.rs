//! The films of a run: one now and then, of which the newest are kept, and the best.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::config::schema::{VideoFormat, VisualizerConfig};
use crate::environments::Picture;
use crate::environments::reel::{FilmError, Reel, UNFINISHED};

/// A film ends here though its episode goes on: three minutes at ten pictures a second.
const MOST_PICTURES: usize = 1_800;
/// Steps of a film that are seen in a second.
const STEPS_PER_SECOND: u16 = 30;

/// Where films go, and when the next is due.
pub(super) struct Films {
    folder: PathBuf,
    interval: Option<Duration>,
    keep: usize,
    format: VideoFormat,
    due: Instant,
    /// Those of the folder, the oldest first: those of this process in the order in which they came, since the clock may be set back between two;
    /// before them what it found, by the times of the files.
    films: Vec<PathBuf>,
}

/// A film in the making.
pub(super) struct Rolling(Reel);

impl Rolling {
    /// Add a picture, the last one if the episode has `ended`. Whether the film has its last picture now.
    pub(super) fn add(&mut self, picture: Picture, ended: bool) -> bool {
        self.0.add(picture, ended || self.0.pictures() + 1 >= MOST_PICTURES);
        !self.0.is_rolling()
    }
}

impl Films {
    pub(super) fn new(folder: PathBuf, config: &VisualizerConfig) -> Self {
        remove_unfinished(&folder);
        let interval = config.video_interval_s.map(Duration::from_secs_f64);
        let films = films_in(&folder);
        Self { folder, interval, keep: config.keep_videos, format: config.video_format, due: Instant::now(), films }
    }

    /// A film of the episode that begins now, if it is time for one.
    pub(super) fn begin_if_due(&mut self) -> Result<Option<Rolling>, FilmError> {
        let Some(interval) = self.interval.filter(|_| Instant::now() >= self.due) else { return Ok(None) };
        self.due = Instant::now() + interval;
        let path = self.folder.join(format!("film.{}", self.format.ending()));
        fs::create_dir_all(&self.folder).map_err(|source| FilmError::Write { path: path.clone(), source })?;
        Ok(Some(Rolling(Reel::prepare(&path, STEPS_PER_SECOND)?)))
    }

    /// Keep a film that has its last picture, and drop what is then too many. `episode_return` is the return up to that picture.
    pub(super) fn finish(&mut self, Rolling(reel): Rolling, env_steps: u64, episode_return: f64) -> Result<(), FilmError> {
        let film = self.folder.join(format!("step{env_steps:012}-return{episode_return:.1}.{}", self.format.ending()));
        reel.finish_as(film.clone())?;
        // Somebody may have removed some, and a run that went on from a checkpoint comes by the same steps again.
        self.films.retain(|path| *path != film && path.exists());
        self.films.push(film);
        for path in too_many(&self.films, self.keep) {
            // One that cannot be removed is one too many, no more.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// Remove from the folder of films what one who films had not finished when it was killed. Nobody else writes there.
pub(crate) fn remove_unfinished(folder: &Path) {
    for path in entries(folder).filter(|path| name_of(path).starts_with(UNFINISHED)) {
        let _ = fs::remove_file(path);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The films in `folder`, the oldest first. Not by their steps: a run that went on from a checkpoint has begun anew there.
fn films_in(folder: &Path) -> Vec<PathBuf> {
    let mut films: Vec<(SystemTime, PathBuf)> = entries(folder)
        .filter(|path| return_of(path).is_some())
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    films.sort();
    films.into_iter().map(|(_, path)| path).collect()
}

/// The return that the name of a film tells; `None` if it is none.
fn return_of(path: &Path) -> Option<f64> {
    let (name, ending) = name_of(path).strip_prefix("step")?.rsplit_once('.')?;
    // A run that went on with another format has films of both.
    let is_film = [VideoFormat::Gif, VideoFormat::Mp4].iter().any(|format| format.ending() == ending);
    name.split_once("-return").filter(|_| is_film)?.1.parse().ok()
}

/// Those of `films`, the oldest first, that are neither among the newest nor the best.
fn too_many(films: &[PathBuf], keep: usize) -> Vec<PathBuf> {
    let with_return = films.iter().filter_map(|film| Some((return_of(film).filter(|value| value.is_finite())?, film)));
    let best = with_return.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, film)| film);
    let old = &films[..films.len().saturating_sub(keep)];
    old.iter().filter(|film| Some(*film) != best).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_films_of_whatever_format_are_kept_and_the_best() {
        let films: Vec<PathBuf> = [(5.0, "gif"), (90.5, "gif"), (-3.0, "gif"), (20.0, "mp4"), (10.0, "mp4")]
            .iter()
            .enumerate()
            .map(|(step, (score, ending))| format!("step{step:012}-return{score:.1}.{ending}").into())
            .collect();
        assert_eq!(too_many(&films, 2), [films[0].clone(), films[2].clone()]);
        assert_eq!(too_many(&films, 5), Vec::<PathBuf>::new());
        assert_eq!(too_many(&films, 9), Vec::<PathBuf>::new());
        assert_eq!(return_of(Path::new("videos/step000000000002-return-3.0.gif")), Some(-3.0));
        assert_eq!(return_of(Path::new("videos/.film.abc")), None);
        assert_eq!(return_of(Path::new("videos/step000000000002-return-3.0.png")), None);
        let odd: Vec<PathBuf> = ["90.5", "NaN", "inf", "20.0"].map(|score| format!("step0-return{score}.gif").into()).into();
        assert_eq!(too_many(&odd, 1), odd[1..3], "what is no number is not the best");
    }
}
