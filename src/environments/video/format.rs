//! Pictures one after another in a file, in the format that its name asks for.

use std::fs::File;
use std::io;
use std::path::Path;

use thiserror::Error;

use super::gif::Gif;
#[cfg(feature = "mp4")]
use super::mp4::Mp4;
use crate::environments::Picture;
use crate::machine::Host;

/// An animation that is being written. Its first picture is in it already.
pub(super) trait Animation {
    /// Go on with a picture, which is seen for so many hundredths of a second.
    ///
    /// # Errors
    /// The picture has another size than the first, or cannot be written.
    fn add(&mut self, picture: Picture, hundredths: u16) -> io::Result<()>;

    /// Write the end.
    ///
    /// # Errors
    /// The end cannot be written.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// How pictures become a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Gif,
    #[cfg(feature = "mp4")]
    Mp4,
}

/// Why no video is made under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The name ends neither in `.gif` nor in `.mp4`.
    #[error("its name ends neither in .gif nor in .mp4; name it first.gif, for example")]
    Unknown,
    /// The name ends in `.mp4`, and the encoder is not compiled in.
    #[error("this program was built without MP4; take gif instead{}", or_build())]
    NotBuilt,
}

/// What else there is to do. Whoever has the Python package has no compiler.
fn or_build() -> &'static str {
    if Host::of_this_process().is_some() { "" } else { ", or build with `cargo build --release --features mp4`" }
}

impl Format {
    /// What the ending of `path` asks for.
    pub(super) fn of(path: &Path) -> Result<Self, FormatError> {
        match path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("gif") => Ok(Self::Gif),
            #[cfg(feature = "mp4")]
            Some("mp4") => Ok(Self::Mp4),
            #[cfg(not(feature = "mp4"))]
            Some("mp4") => Err(FormatError::NotBuilt),
            _ => Err(FormatError::Unknown),
        }
    }

    /// Begin with `picture`, which is seen for so many hundredths of a second.
    pub(super) fn begin(self, file: File, picture: Picture, hundredths: u16) -> io::Result<Box<dyn Animation>> {
        Ok(match self {
            Self::Gif => Box::new(Gif::begin(file, picture, hundredths)?),
            #[cfg(feature = "mp4")]
            Self::Mp4 => Box::new(Mp4::begin(file, picture, hundredths)?),
        })
    }
}

/// Refuse a `picture` that has not the `size` (width, height) of those before it.
pub(super) fn check_size(size: [usize; 2], picture: &Picture) -> io::Result<()> {
    let now = [picture.width, picture.height];
    if now == size {
        return Ok(());
    }
    Err(io::Error::other(format!("the environment has changed the size of its pictures from {size:?} to {now:?}; let all have one size")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_name_says_what_is_made() {
        let of = |name: &str| Format::of(Path::new(name));
        assert_eq!((of("first.gif"), of("videos/FIRST.GIF")), (Ok(Format::Gif), Ok(Format::Gif)));
        assert!(["first", "first.webm", ".gif", "gif"].into_iter().all(|name| of(name) == Err(FormatError::Unknown)));
        assert_eq!(of("first.mp4").is_ok(), cfg!(feature = "mp4"));
    }
}
