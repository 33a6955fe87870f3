//! A regular file of a run, opened without waiting for anybody.

use std::fs::{File, Metadata};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the file at `path`. `None` if it is no regular file: opening a pipe, say, must not wait for its other end.
pub(crate) fn open_file(path: &Path) -> Option<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok().filter(Metadata::is_file)?;
    Some(file)
}
