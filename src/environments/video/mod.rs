//! Videos: pictures on their way into a file, and an environment that looks the same to its agent while its next episode is recorded.
//!
//! [`VideoWriter`] makes a file of pictures. Each format has a file here.

mod format;
mod gif;
#[cfg(feature = "mp4")]
mod mp4;
mod writer;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use super::{Action, Environment, EnvironmentError, EnvironmentSpec, Step};
use crate::values::ValuesMut;

pub use format::FormatError;
pub use writer::{FinishedVideo, UNFINISHED, VideoError, VideoWriter, check_ending};

/// A video of one episode, an animated GIF or an MP4. It gets its name when it is finished; until then a file of that name stays as it is.
pub struct RecordVideo {
    /// Shared with the environment; nothing once the video is finished.
    writer: Rc<RefCell<Option<VideoWriter>>>,
}

impl RecordVideo {
    /// Prepare a video that will be at `path`, as [`VideoWriter::prepare`] says.
    ///
    /// # Errors
    /// Those of [`VideoWriter::prepare`].
    pub fn prepare(path: &Path, steps_per_second: u16) -> Result<Self, VideoError> {
        let writer = VideoWriter::prepare(path, steps_per_second)?;
        Ok(Self { writer: Rc::new(RefCell::new(Some(writer))) })
    }

    /// `environment`, whose next episode is recorded from its reset to its end. Whoever steps it sees no difference.
    ///
    /// # Errors
    /// [`EnvironmentError::NoPicture`] if it cannot be drawn.
    pub fn of(&self, environment: Box<dyn Environment>) -> Result<Box<dyn Environment>, EnvironmentError> {
        match environment.picture() {
            // An environment that needs a reset first draws once there is something to see.
            Ok(_) | Err(EnvironmentError::NeedsReset { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(Box::new(Recorded { environment, writer: Rc::clone(&self.writer) }))
    }

    /// Give the video its name.
    ///
    /// # Errors
    /// [`VideoError::Write`] if a picture could not be written, [`VideoError::Unfinished`] if no episode ended.
    ///
    /// # Panics
    /// Never: a video is finished once.
    pub fn finish(self) -> Result<FinishedVideo, VideoError> {
        self.writer.borrow_mut().take().expect("a video is finished once").finish()
    }
}

struct Recorded {
    environment: Box<dyn Environment>,
    writer: Rc<RefCell<Option<VideoWriter>>>,
}

impl Recorded {
    /// Add a picture of the environment to a video that `wants_it`, the last one if the episode has `ended`.
    fn add_picture(&self, wants_it: fn(&VideoWriter) -> bool, ended: bool) -> Result<(), EnvironmentError> {
        if let Some(writer) = self.writer.borrow_mut().as_mut().filter(|writer| wants_it(writer)) {
            writer.add(self.environment.picture()?, ended);
        }
        Ok(())
    }
}

impl Environment for Recorded {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.environment.reset(seed, observation)?;
        self.add_picture(VideoWriter::is_waiting, false)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        let step = self.environment.step(action, observation)?;
        self.add_picture(VideoWriter::is_recording, step.ended())?;
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }
}
