//! Why a run could not be found or joined.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::handshake::Refusal;
use crate::segment::SegmentError;
use crate::shell::word;

/// Why a run could not be found or joined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// The registry is not safe to use.
    #[error("the registry of runs {folder} is {problem}; set XDG_RUNTIME_DIR to a folder of your own, or remove this one if it is yours")]
    UnsafeFolder {
        /// The registry.
        folder: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry cannot be made.
    #[error("the registry of runs {folder} cannot be made: {source}; set XDG_RUNTIME_DIR to a folder of your own, or unset it")]
    NoFolder {
        /// The registry.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody can listen in the registry.
    #[error(
        "the paths of sockets in the registry of runs {folder} have up to {found} bytes, and the system allows {limit}; set \
         XDG_RUNTIME_DIR to a folder with a shorter path, or unset it"
    )]
    LongPath {
        /// The registry.
        folder: PathBuf,
        /// Bytes of a path.
        found: usize,
        /// Bytes that a path may have.
        limit: usize,
    },
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no such run.
    #[error(
        "no run of yours has the supervisor {pid}; {running} (`shoal inspect` lists the runs in {folder}; one that was started with \
         another XDG_RUNTIME_DIR is seen with that one alone: set it, too)"
    )]
    NoSuchRun {
        /// Process id asked for.
        pid: u32,
        /// The registry.
        folder: PathBuf,
        /// What is running, in words.
        running: String,
    },
    /// The supervisor is gone, and the run waits in memory for another.
    #[error(
        "the run of supervisor {pid} ({environment}) has none any more and is kept in memory: `shoal adopt {0}` goes on with it there, and \
         `shoal resume {0}` by way of the disk",
        word(run_folder)
    )]
    Kept {
        /// Process id that the supervisor had.
        pid: u32,
        /// Environment.
        environment: String,
        /// Where its results went.
        run_folder: PathBuf,
    },
    /// The supervisor is gone.
    #[error(
        "the run of supervisor {pid} ({environment}) is dead: if it wrote a checkpoint, `shoal resume {0}` goes on from there; \
         `shoal inspect --clean` removes what it left in memory",
        word(run_folder)
    )]
    Dead {
        /// Process id of the supervisor.
        pid: u32,
        /// Environment.
        environment: String,
        /// Where its results went.
        run_folder: PathBuf,
    },
    /// A run in another PID namespace has the same process id.
    #[error(
        "a living run of another PID namespace has the process id {pid} too, and is announced at {path}; give each namespace a registry \
         of its own (XDG_RUNTIME_DIR)"
    )]
    Taken {
        /// Process id of both.
        pid: u32,
        /// Record of that run.
        path: PathBuf,
    },
    /// The run is in another namespace: its processes have other ids or start times there.
    #[error("the run of supervisor {pid} ({environment}) cannot be joined from here: {source}")]
    OtherNamespace {
        /// Process id of the supervisor, in its namespace.
        pid: u32,
        /// Environment.
        environment: String,
        /// Which namespace it is.
        source: SegmentError,
    },
    /// The supervisor does not answer.
    #[error(
        "the supervisor {pid} did not answer within {patience_s} s; it may be stopped or overloaded: `shoal inspect {pid}` shows \
         what it does"
    )]
    Silent {
        /// Process id of the supervisor.
        pid: u32,
        /// How long it was given.
        patience_s: u64,
    },
    /// The supervisor said no.
    #[error("the supervisor {pid} refused: {refusal}")]
    Refused {
        /// Process id of the supervisor.
        pid: u32,
        /// Why.
        refusal: Refusal,
    },
    /// The other side sent something that is no answer.
    #[error("the supervisor {pid} answered with something else than a reply ({reason}); is it the same version?")]
    Garbled {
        /// Process id of the supervisor.
        pid: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// The segment is not the one that was promised.
    #[error("the segment `{segment}` belongs to another run than supervisor {pid}; try again")]
    OtherRun {
        /// Process id of the supervisor.
        pid: u32,
        /// Name of the segment.
        segment: String,
    },
}

impl RendezvousError {
    pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
