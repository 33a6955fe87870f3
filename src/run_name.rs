//! How a user names a run: by the process id of its supervisor, or by its folder, such as `runs/latest`.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::rendezvous::{Entry, Registry};
use crate::shell::word;
use crate::telemetry::{RunFolder, RunRecord, TelemetryError};

/// A run as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunName {
    /// Process id of the supervisor.
    Supervisor(u32),
    /// The run's folder.
    Folder(PathBuf),
}

/// Why a folder leads to no run that is under way.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunNameError {
    /// It is not the folder of a run.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run is over.
    #[error(
        "the run in {folder} has ended ({reason}); `shoal inspect {folder}` shows what it reached, `shoal evaluate {folder}` plays it, and \
         `shoal resume {folder}` goes on with it where it left a checkpoint"
    )]
    Ended {
        /// The folder, as it can be typed.
        folder: String,
        /// How it ended.
        reason: String,
    },
    /// Its supervisor was killed.
    #[error(
        "the run in {folder} is gone: its supervisor, process {pid}, was killed before it could note an end; if it \
         wrote a checkpoint, `shoal resume {folder}` goes on from there (a run that was started with another XDG_RUNTIME_DIR is seen with \
         that one alone)"
    )]
    Killed {
        /// The folder, as it can be typed.
        folder: String,
        /// Process id that the supervisor had.
        pid: u32,
    },
}

impl FromStr for RunName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Folder(text.into()), Self::Supervisor))
    }
}

impl RunName {
    /// The process id of the supervisor. That a process id has such a run is for the caller to find out; behind a folder there is one.
    ///
    /// # Errors
    /// The folder is not one of a run, or the run is over.
    pub fn supervisor(&self, registry: &Registry) -> Result<u32, RunNameError> {
        let path = match self {
            Self::Supervisor(pid) => return Ok(*pid),
            Self::Folder(path) => path,
        };
        let folder = RunFolder::open(path)?;
        let record = folder.record()?;
        let pid = record.supervisor_pid;
        if announced(registry, &folder, &record).is_some() {
            return Ok(pid);
        }
        // As it can be typed.
        let folder = word(path);
        Err(match record.finished {
            Some(finished) => RunNameError::Ended { folder, reason: finished.reason.lines().next().unwrap_or_default().into() },
            None => RunNameError::Killed { folder, pid },
        })
    }
}

/// The entry of the run in `folder`, of which its `record` tells, if that is still announced.
pub fn announced(registry: &Registry, folder: &RunFolder, record: &RunRecord) -> Option<Entry> {
    let entry = registry.find(record.supervisor_pid).ok()?;
    let path = Path::new(&entry.record.run_folder);
    // A process id may have come to another run since, and a folder may be a copy of the run's.
    let is_it = match path.canonicalize() {
        Ok(path) => path == folder.path(),
        // Moved while its run goes on: the record has the name that it began with.
        Err(_) => path.file_name() == Some(record.id.as_ref()),
    };
    is_it.then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_everything_else_a_folder() {
        assert_eq!("123".parse(), Ok(RunName::Supervisor(123)));
        assert_eq!("runs/latest".parse(), Ok(RunName::Folder("runs/latest".into())));
    }
}
