//! What can go wrong while a run is recorded, always with the file and the next step.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::folders::LATEST;
use super::run_folder::RECORD;
use crate::shell::word;

/// A failure of a run folder or of one of its files.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {path}: {source}; {}", next_step(source.kind()), path = path.display())]
    File {
        /// What was tried, as a verb: `create`, `append to`, `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The run is another user's, or where nobody writes.
    #[error(
        "cannot lock {folder}: {source}; a run goes on where it may write: make that folder and all in it yours (`chown -R`), or copy it \
         and go on with the copy",
        folder = folder.display()
    )]
    NotYours {
        /// The folder of the run.
        folder: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A folder was named that no run has written.
    #[error("{path} is not the folder of a run: it has no {missing}; name {}", run_below(path), path = path.display())]
    NotARunFolder {
        /// The folder that was named.
        path: PathBuf,
        /// The file that every run folder has.
        missing: &'static str,
    },
    /// All names that were tried are taken.
    #[error("{attempts} names for a new run under {root} were all taken; choose another run.folder", root = root.display())]
    NoFreeName {
        /// The folder of all runs.
        root: PathBuf,
        /// How many names were tried.
        attempts: usize,
    },
    /// `run.json` is not what this version writes.
    #[error("{path} does not describe a run: {source}; it was edited or written by another version", path = path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
}

impl TelemetryError {
    /// The kind of the operating system's error, in words. Errors of one kind have one cause, such as a full disk.
    pub(super) fn cause(&self) -> String {
        let kind = if let Self::File { source, .. } = self { source.kind() } else { io::ErrorKind::Other };
        kind.to_string()
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// Why the file `lock` in the `folder` of a run cannot be locked.
    pub(super) fn of_lock(lock: &Path, folder: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::NotYours { folder: folder.to_path_buf(), source },
            _ => Self::file("lock", lock)(source),
        }
    }
}

/// Which run to name instead of `path`, which may be the folder of several seeds or of all runs.
fn run_below(path: &Path) -> String {
    let latest = path.join(LATEST);
    if latest.join(RECORD).is_file() { format!("one in it, such as {}", word(&latest)) } else { "a folder such as runs/latest".to_owned() }
}

fn next_step(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space on that disk or choose another run.folder",
        io::ErrorKind::FileTooLarge => "raise the limit on file sizes (ulimit -f)",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "choose a run.folder that you may write to",
        io::ErrorKind::NotFound => "check the path",
        _ => "check the disk and the path",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_lock_a_run_is_not_sent_to_a_key_that_a_run_which_goes_on_may_not_change() {
        let folder = Path::new("runs/theirs");
        let refusal = |kind: io::ErrorKind| TelemetryError::of_lock(&folder.join(".lock"), folder, kind.into()).to_string();
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let refusal = refusal(kind);
            assert!(refusal.contains("cannot lock runs/theirs: ") && refusal.contains("copy"), "{refusal}");
            assert!(!refusal.contains("run.folder"), "{refusal}");
        }
        assert!(refusal(io::ErrorKind::StorageFull).contains("cannot lock runs/theirs/.lock: "));
    }
}
