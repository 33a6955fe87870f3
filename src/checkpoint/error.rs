//! What can be wrong with a checkpoint.

use std::io;
use std::path::{Path, PathBuf};

use super::replay_file::ReplayFileError;
use crate::shell::word;

/// Why a checkpoint cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The system would not write it.
    #[error("no checkpoint could be written in `{}`: {source}; check that the folder is writable and has room", folder.display())]
    Write {
        /// The folder of the checkpoints.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system would not say which checkpoints there are.
    #[error("cannot list the checkpoints in `{}`: {source}; check that its disk is there and the folder readable", folder.display())]
    List {
        /// The folder of the checkpoints.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is too full for another checkpoint.
    #[error(
        "a checkpoint takes up to {needed} bytes and `{}` has room for {free}: free space there, or set checkpoint.keep_last lower or \
         checkpoint.replay to \"never\"",
        folder.display()
    )]
    NoRoom {
        /// The folder of the checkpoints.
        folder: PathBuf,
        /// Bytes that the checkpoint takes at most.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The memory of the run is damaged.
    #[error(
        "no checkpoint was written: in the run's shared memory nothing that was published as the {content} is whole; the \
         checkpoints before it stay"
    )]
    Unreadable {
        /// What cannot be read.
        content: &'static str,
    },
    /// The run has no checkpoint yet.
    #[error(
        "`{}` has no complete checkpoint: the run ended before it wrote one, or was to write none (checkpoint.interval_s, and \
         checkpoint.synchronous_interval_steps where actor.count is 0)",
        folder.display()
    )]
    NoneYet {
        /// The folder of the checkpoints.
        folder: PathBuf,
    },
    /// The system would not read it.
    #[error("cannot read `{}`: {source}; is its folder that of a checkpoint?", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The checkpoint is not what was written.
    #[error("the checkpoint `{}` is damaged: {problem}", path.display())]
    Damaged {
        /// Its folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The newest checkpoint cannot be used, and an older one can.
    #[error(
        "{error}; the one before is whole: `shoal resume {} --from {}` goes on with it, and with the settings of then",
        word(run_of(previous)),
        word(previous)
    )]
    Superseded {
        /// What is wrong with the newest.
        error: Box<CheckpointError>,
        /// The newest that is whole.
        previous: PathBuf,
    },
    /// Another version of the program wrote it.
    #[error(
        "the checkpoint `{}` has format {found}, and this program reads format {expected}; use the program that wrote it",
        path.display()
    )]
    Format {
        /// Its folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that is understood.
        expected: u32,
    },
    /// The file of the checkpoint's replay cannot be used.
    #[error(transparent)]
    Replay(#[from] ReplayFileError),
}

impl CheckpointError {
    /// The kind of the error, in words that are the same whenever it comes again.
    pub fn cause(&self) -> String {
        match self {
            Self::NoRoom { .. } => io::ErrorKind::StorageFull.to_string(),
            Self::Write { source, .. } | Self::List { source, .. } | Self::Read { source, .. } => source.kind().to_string(),
            other => other.to_string(),
        }
    }

    /// Whether the disk did not take what was to be written, which it may do later.
    pub fn is_of_disk(&self) -> bool {
        match self {
            Self::NoRoom { .. } | Self::List { .. } => true,
            // `ResourceBusy`: another writer has the lock, and this one has waited long enough for it.
            Self::Write { source, .. } => source.kind() != io::ErrorKind::ResourceBusy,
            _ => false,
        }
    }

    /// Whether the system did not give a file that is there, which it may do later: that is no damage.
    pub(super) fn may_pass(&self) -> bool {
        // What it says has a number. Other words are about what it gave.
        matches!(self, Self::Read { source, .. } if source.raw_os_error().is_some() && source.kind() != io::ErrorKind::NotFound)
    }
}

/// The folder of the run that a checkpoint lies in.
fn run_of(checkpoint: &Path) -> &Path {
    checkpoint.ancestors().nth(2).unwrap_or(checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_takes_nothing_is_told_from_a_writer_that_is_in_the_way_and_from_damage() {
        let refused = |kind: io::ErrorKind| CheckpointError::Write { folder: "checkpoints".into(), source: kind.into() };
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::ReadOnlyFilesystem] {
            assert!(refused(kind).is_of_disk(), "{kind:?}");
        }
        assert!(!refused(io::ErrorKind::ResourceBusy).is_of_disk());
        assert!(!CheckpointError::Unreadable { content: "parameters" }.is_of_disk());
    }
}
