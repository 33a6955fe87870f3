//! A film of an episode: an environment that looks the same to its agent, and draws what happens.

use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gif::EncodingError;
use serde::Serialize;
use tempfile::NamedTempFile;
use thiserror::Error;

use super::drawing::Animation;
use super::{Action, Environment, EnvironmentError, EnvironmentSpec, Outcome, Picture, Step};
use crate::values::ValuesMut;

/// How long the last picture stays before the film begins again.
const LAST_PICTURE_HUNDREDTHS: u16 = 100;

/// Why there is no film.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FilmError {
    /// The file cannot be written.
    #[error("cannot write the film {path}: {source}; name another file, or make room")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: EncodingError,
    },
    /// No episode ended while it was made.
    #[error("the film {path} was not written: it has {pictures} pictures and no end, because no episode ended")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// How many there are.
        pictures: usize,
    },
}

/// A film of one episode, as an animated GIF. It gets its name when it is finished; until then a file of that name stays as it is.
pub struct Film {
    path: PathBuf,
    file: NamedTempFile,
    recording: Rc<RefCell<Recording>>,
}

impl Film {
    /// Prepare a film that will be at `path`. A step is seen for `1 / steps_per_second`, rounded to hundredths of a second: a GIF
    /// is no more exact.
    ///
    /// # Errors
    /// [`FilmError::Write`] if no file can be made there.
    pub fn prepare(path: &Path, steps_per_second: u16) -> Result<Self, FilmError> {
        let failed = |error: std::io::Error| FilmError::Write { path: path.to_owned(), source: error.into() };
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // What any other file would get, less the umask; the default of a temporary file is for its owner only.
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".film.").permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(failed)?;
        let step_hundredths = (100 + steps_per_second / 2) / steps_per_second.max(1);
        let state = State::Waiting(file.reopen().map_err(failed)?);
        let recording = Rc::new(RefCell::new(Recording { step_hundredths, pictures: 0, state }));
        Ok(Self { path: path.to_owned(), file, recording })
    }

    /// `environment`, whose next episode is filmed from its reset to its end. Whoever steps it sees no difference.
    ///
    /// # Errors
    /// [`EnvironmentError::NoPicture`] if it cannot be drawn.
    pub fn of(&self, environment: Box<dyn Environment>) -> Result<Box<dyn Environment>, EnvironmentError> {
        environment.picture()?;
        Ok(Box::new(Filmed { environment, recording: Rc::clone(&self.recording) }))
    }

    /// Give the film its name.
    ///
    /// # Errors
    /// [`FilmError::Write`] if one of them could not be written, [`FilmError::Unfinished`] if no episode ended.
    pub fn finish(self) -> Result<FinishedFilm, FilmError> {
        let Self { path, file, recording } = self;
        let mut recording = recording.borrow_mut();
        let pictures = recording.pictures;
        match std::mem::replace(&mut recording.state, State::Over(Ok(()))) {
            State::Over(Ok(())) => {}
            State::Over(Err(source)) => return Err(FilmError::Write { path, source }),
            State::Waiting(_) | State::Rolling(_) => return Err(FilmError::Unfinished { path, pictures }),
        }
        match file.persist(&path) {
            Ok(_) => Ok(FinishedFilm { path, pictures }),
            Err(error) => Err(FilmError::Write { path, source: error.error.into() }),
        }
    }
}

/// A film that has its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinishedFilm {
    /// The file.
    pub path: PathBuf,
    /// How many pictures it has: one of the reset and one of each step.
    pub pictures: usize,
}

/// What the film and the environment share.
struct Recording {
    step_hundredths: u16,
    pictures: usize,
    state: State,
}

enum State {
    /// No episode has begun.
    Waiting(File),
    Rolling(Box<Animation<File>>),
    /// The episode has ended, or something could not be written.
    Over(Result<(), EncodingError>),
}

impl Recording {
    /// The environment has been reset, or stepped: into the end of its episode if it `ended`.
    fn look_at(&mut self, environment: &dyn Environment, is_reset: bool, ended: bool) -> Result<(), EnvironmentError> {
        let wanted = matches!((&self.state, is_reset), (State::Waiting(_), true) | (State::Rolling(_), false));
        if !wanted {
            return Ok(());
        }
        let picture = environment.picture()?;
        self.pictures += 1;
        let hundredths = if ended { LAST_PICTURE_HUNDREDTHS } else { self.step_hundredths };
        let filmed = match std::mem::replace(&mut self.state, State::Over(Ok(()))) {
            State::Waiting(file) => Animation::begin(file, picture, hundredths).map(Box::new),
            State::Rolling(mut animation) => animation.add(picture, hundredths).map(|()| animation),
            State::Over(_) => return Ok(()),
        };
        self.state = match filmed {
            Ok(animation) if ended => State::Over(animation.end()),
            Ok(animation) => State::Rolling(animation),
            Err(error) => State::Over(Err(error)),
        };
        Ok(())
    }
}

struct Filmed {
    environment: Box<dyn Environment>,
    recording: Rc<RefCell<Recording>>,
}

impl Environment for Filmed {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, observation)?;
        self.recording.borrow_mut().look_at(&*self.environment, true, false)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let step = self.environment.step(action, observation)?;
        self.recording.borrow_mut().look_at(&*self.environment, false, step.ended())?;
        Ok(step)
    }

    fn picture(&self) -> Result<Picture, EnvironmentError> {
        self.environment.picture()
    }

    fn outcome(&self) -> Outcome {
        self.environment.outcome()
    }
}
