//! Pictures on their way into a file, which gets its name when it is finished.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use tempfile::NamedTempFile;
use thiserror::Error;

use super::format::{Animation, Format, FormatError};
use crate::environments::Picture;

/// How long the last picture stays before the video begins again.
const LAST_PICTURE_HUNDREDTHS: u16 = 100;

/// Begins the name of every video that is not finished.
pub const UNFINISHED: &str = ".video.";

/// Why there is no video.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VideoError {
    /// The file cannot be written.
    #[error(
        "cannot write the video {path}: {source}{}",
        if source.kind() == io::ErrorKind::Other { "" } else { "; name another file, or make room" }
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not: of the kind [`io::ErrorKind::Other`] if that is due to the pictures, not to the disk.
        source: io::Error,
    },
    /// The video would be in a folder that is not there.
    #[error("cannot write the video {path}: there is no folder {folder}; make it, or name another file")]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The name asks for a format that this program does not make.
    #[error("cannot make the video {path}: {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: FormatError,
    },
    /// No episode ended while the video was made.
    #[error("the video {path} was not written: it has {pictures} pictures and no end, because no episode ended")]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Pictures up to then.
        pictures: usize,
    },
}

/// Refuse an `ending` (without its dot) of names of videos that this program cannot make.
///
/// # Errors
/// [`FormatError`] says why it cannot.
pub fn check_ending(ending: &str) -> Result<(), FormatError> {
    Format::of(&Path::new("video").with_extension(ending)).map(drop)
}

/// A video that has its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinishedVideo {
    /// The file. A path that is not UTF-8 is serialised nearly as it is.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// How many pictures it has: one of the reset and one of each step.
    pub pictures: usize,
}

/// Serialises any path: serde refuses one that is not UTF-8.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// A video in the making. Until it is finished, a file of its name stays as it is. One that is given up leaves nothing, and one
/// that is killed a file whose name begins with [`UNFINISHED`].
pub struct VideoWriter {
    path: PathBuf,
    format: Format,
    file: NamedTempFile,
    step_hundredths: u16,
    pictures: usize,
    state: State,
}

enum State {
    /// Nothing has been seen.
    Waiting(File),
    Recording(Box<dyn Animation>),
    /// The episode has ended, or something could not be written.
    Over(io::Result<()>),
}

impl VideoWriter {
    /// Prepare a video that will be at `path`, a GIF or an MP4 as its name ends. A step is seen for `1 / steps_per_second`, rounded to
    /// hundredths of a second: a GIF is no more exact.
    ///
    /// # Errors
    /// [`VideoError::Format`] if its name ends otherwise, [`VideoError::NoFolder`] and [`VideoError::Write`] if no file can be made there.
    pub fn prepare(path: &Path, steps_per_second: u16) -> Result<Self, VideoError> {
        let format = Format::of(path).map_err(|source| VideoError::Format { path: path.to_owned(), source })?;
        let failed = |source: io::Error| VideoError::Write { path: path.to_owned(), source };
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(VideoError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
        }
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // What any other file would get, less the umask; the default of a temporary file is for its owner only.
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(UNFINISHED).permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(failed)?;
        let step_hundredths = (100 + steps_per_second / 2) / steps_per_second.max(1);
        let state = State::Waiting(file.reopen().map_err(failed)?);
        Ok(Self { path: path.to_owned(), format, file, step_hundredths, pictures: 0, state })
    }

    /// Whether it has its first picture and not its last.
    pub fn is_recording(&self) -> bool {
        matches!(self.state, State::Recording(_))
    }

    /// Whether it has no picture yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// How many pictures it has.
    pub fn pictures(&self) -> usize {
        self.pictures
    }

    /// Add a picture, the last one if the episode has `ended`. Nothing is added after that. What cannot be written is told at the end.
    pub fn add(&mut self, picture: Picture, ended: bool) {
        let picture = picture.within(Picture::LARGEST_SHOWN_BYTES);
        let hundredths = if ended { LAST_PICTURE_HUNDREDTHS } else { self.step_hundredths };
        let recorded = match std::mem::replace(&mut self.state, State::Over(Ok(()))) {
            State::Waiting(file) => self.format.begin(file, picture, hundredths),
            State::Recording(mut animation) => animation.add(picture, hundredths).map(|()| animation),
            State::Over(result) => {
                self.state = State::Over(result);
                return;
            }
        };
        self.pictures += 1;
        self.state = match recorded {
            Ok(animation) if ended => State::Over(animation.end()),
            Ok(animation) => State::Recording(animation),
            Err(error) => State::Over(Err(error)),
        };
    }

    /// Give the video its name.
    ///
    /// # Errors
    /// [`VideoError::Write`] if it could not be written, [`VideoError::Unfinished`] if no episode ended.
    pub fn finish(self) -> Result<FinishedVideo, VideoError> {
        let path = self.path.clone();
        self.finish_as(path)
    }

    /// Give the video another name, in the same folder, that is only known now.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_as(self, path: PathBuf) -> Result<FinishedVideo, VideoError> {
        let Self { file, pictures, state, .. } = self;
        match state {
            State::Over(Ok(())) => {}
            State::Over(Err(source)) => return Err(VideoError::Write { path, source }),
            State::Waiting(_) | State::Recording(_) => return Err(VideoError::Unfinished { path, pictures }),
        }
        // Beside the unfinished file, whose path is absolute: `path` may lead elsewhere from where this process stands by now, since what
        // was recorded may have changed its current folder.
        let place = file.path().with_file_name(path.file_name().unwrap_or_default());
        match file.persist(place) {
            Ok(_) => Ok(FinishedVideo { path, pictures }),
            Err(error) => Err(VideoError::Write { path, source: error.error }),
        }
    }
}
