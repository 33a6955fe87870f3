//! A film of an episode: an environment that looks the same to its agent, and draws what happens.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use super::reel::{FilmError, FinishedFilm, Reel};
use super::{Action, Environment, EnvironmentError, EnvironmentSpec, Outcome, Picture, Step};
use crate::values::ValuesMut;

/// A film of one episode, an animated GIF or an MP4. It gets its name when it is finished; until then a file of that name stays as it is.
pub struct Film {
    /// Shared with the environment; nothing once the film is finished.
    reel: Rc<RefCell<Option<Reel>>>,
}

impl Film {
    /// Prepare a film that will be at `path`, as [`Reel::prepare`] says.
    ///
    /// # Errors
    /// Those of [`Reel::prepare`].
    pub fn prepare(path: &Path, steps_per_second: u16) -> Result<Self, FilmError> {
        let reel = Reel::prepare(path, steps_per_second)?;
        Ok(Self { reel: Rc::new(RefCell::new(Some(reel))) })
    }

    /// `environment`, whose next episode is filmed from its reset to its end. Whoever steps it sees no difference.
    ///
    /// # Errors
    /// [`EnvironmentError::NoPicture`] if it cannot be drawn.
    pub fn of(&self, environment: Box<dyn Environment>) -> Result<Box<dyn Environment>, EnvironmentError> {
        match environment.picture() {
            // It draws, once there is something to see.
            Ok(_) | Err(EnvironmentError::NeedsReset { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(Box::new(Filmed { environment, reel: Rc::clone(&self.reel) }))
    }

    /// Give the film its name.
    ///
    /// # Errors
    /// [`FilmError::Write`] if one of them could not be written, [`FilmError::Unfinished`] if no episode ended.
    ///
    /// # Panics
    /// Never: a film is finished once.
    pub fn finish(self) -> Result<FinishedFilm, FilmError> {
        self.reel.borrow_mut().take().expect("a film is finished once").finish()
    }
}

struct Filmed {
    environment: Box<dyn Environment>,
    reel: Rc<RefCell<Option<Reel>>>,
}

impl Filmed {
    /// The environment has been reset, or stepped: into the end of its episode if it `ended`.
    fn look(&self, is_reset: bool, ended: bool) -> Result<(), EnvironmentError> {
        let mut reel = self.reel.borrow_mut();
        let Some(reel) = reel.as_mut() else { return Ok(()) };
        if reel.is_waiting() && is_reset || reel.is_rolling() && !is_reset {
            reel.add(self.environment.picture()?, ended);
        }
        Ok(())
    }
}

impl Environment for Filmed {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, observation)?;
        self.look(true, false)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let step = self.environment.step(action, observation)?;
        self.look(false, step.ended())?;
        Ok(step)
    }

    fn picture(&self) -> Result<Picture, EnvironmentError> {
        self.environment.picture()
    }

    fn outcome(&self) -> Outcome {
        self.environment.outcome()
    }
}
