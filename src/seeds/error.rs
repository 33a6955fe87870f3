//! What can go wrong with several seeds.

use std::path::PathBuf;

use thiserror::Error;

use crate::segment::SegmentError;

/// Why several seeds could not be run or put side by side.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SeedsError {
    /// Not a list of seeds.
    #[error("`{text}` is no list of at most {limit} seeds; write them like 1-5 or 1,3,8-10")]
    List {
        /// What was typed.
        text: String,
        /// Most seeds.
        limit: usize,
    },
    /// A range that goes down.
    #[error("the range {first}-{last} has no seeds, since {first} is above {last}; write them like 1-5 or 1,3,8-10")]
    Order {
        /// Its first seed.
        first: u64,
        /// Its last seed.
        last: u64,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder whose name no configuration can hold.
    #[error("the folder {} has a name that is not UTF-8, and run.folder cannot hold it; choose another run.folder", path.display())]
    FolderName {
        /// The folder.
        path: PathBuf,
    },
    /// Signals could not be handled.
    #[error(transparent)]
    Signals(#[from] SegmentError),
    /// The plot could not be drawn.
    #[error("cannot draw {}: {reason}", path.display())]
    Plot {
        /// The plot.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl SeedsError {
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }
}
