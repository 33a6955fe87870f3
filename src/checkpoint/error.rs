//! What can be wrong with a weights file, and with a checkpoint.

use std::io;
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;

use super::replay_file::ReplayFileError;
use super::weights::{METADATA_KEY, NETWORK};
use crate::networks::NetworkError;
use crate::shell::word;

/// Why a weights file cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file could not be written; what was there before is untouched.
    #[error("cannot save weights to `{}`: {source}; check that the folder exists, is writable and has room", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The weights cannot be encoded.
    #[error("cannot encode weights for `{}`: {message}", path.display())]
    Encode {
        /// Which file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// There is no such file.
    #[error("there is no `{}`: name the folder of a run or a file of weights; `shoal train CartPole-v1` makes both", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read weights from `{}`: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any weights file.
    #[error("`{}` has {bytes} bytes; a weights file has at most {limit}: is it the right file?", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Largest size read.
        limit: u64,
    },
    /// The file is damaged, truncated or something else altogether.
    #[error(
        "`{}` is no complete file of weights ({source}): name the folder of a run, or another file of its folder `weights`",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What safetensors said.
        source: SafeTensorError,
    },
    /// A safetensors file of another program.
    #[error("`{}` is a safetensors file without the metadata entry `{METADATA_KEY}`: it was not saved by this program", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The metadata cannot be understood.
    #[error("the metadata of `{}` cannot be read ({source}); use another checkpoint", path.display())]
    Metadata {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file was saved by another version of the program.
    #[error("`{}` has weights format {found}, and this program reads format {expected}; use the program that saved it", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that is understood.
        expected: u32,
    },
    /// A shape that no network can have.
    #[error("network `{NETWORK}` in `{}`: {source}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: NetworkError,
    },
    /// The tensors do not fit the shapes in the metadata.
    #[error("tensor `{tensor}` in `{}` is {found}, where {expected} is expected; use another checkpoint", path.display())]
    Tensor {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        tensor: String,
        /// What it is.
        found: String,
        /// What its network asks for.
        expected: String,
    },
    /// A parameter is infinite or not a number.
    #[error(
        "tensor `{tensor}` in `{}` has the value {value} at index {index}; parameters must be finite: use an earlier checkpoint",
        path.display()
    )]
    NotFinite {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        tensor: String,
        /// Index in the tensor.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The network of a policy is missing.
    #[error("`{}` holds no policy: name the folder of a run, or another file of its folder `weights`", path.display())]
    NoPolicy {
        /// Which file.
        path: PathBuf,
    },
    /// The scaling of the observations is not that of the network's input.
    #[error("`{}` scales observations of {found} elements for a network with {expected} inputs; use another checkpoint", path.display())]
    Scaling {
        /// Which file.
        path: PathBuf,
        /// Elements that are scaled; of means or of deviations, whichever is wrong.
        found: usize,
        /// Inputs of the network.
        expected: usize,
    },
    /// A policy that does not say what it plays.
    #[error("the metadata of the policy `{}` does not name its {field}; use another file", path.display())]
    Unnamed {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        field: &'static str,
    },
}

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
