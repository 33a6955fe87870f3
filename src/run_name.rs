//! How a user names a run: by the process id of its supervisor, or by its folder, such as `runs/latest`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
    /// The folder is not one of a run.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run has ended.
    #[error(
        "the run in {folder} has ended ({reason}); `shoal inspect {folder}` shows what it reached and, if it left a checkpoint, how \
         to go on with it, and `shoal evaluate {folder}` plays it"
    )]
    Ended {
        /// The folder, as it can be typed.
        folder: String,
        /// How it ended.
        reason: String,
    },
    /// The supervisor was killed.
    #[error(
        "the run in {folder} is gone: its supervisor, process {pid}, was killed before it could note an end; if it \
         wrote a checkpoint, `shoal resume {folder}` goes on from there (one in another container, or on another machine, is seen from \
         there alone)"
    )]
    Killed {
        /// The folder, as it can be typed.
        folder: String,
        /// Process id that the supervisor had.
        pid: u32,
    },
    /// The run noted no end, and is one of another machine.
    #[error(
        "the run in {folder} was started on {machine} and noted no end: it runs there, or was killed; if it was killed and wrote a \
         checkpoint, `shoal resume {folder}` goes on from there"
    )]
    Elsewhere {
        /// The folder, as it can be typed.
        folder: String,
        /// The machine on which it was started.
        machine: String,
    },
    /// The supervisor lives, and the run is not announced here.
    #[error(
        "the run in {folder} is not announced here, though its supervisor, process {pid}, lives: it is just beginning, and can be named in \
         a moment; or it was started with another XDG_RUNTIME_DIR, and is seen with that one alone; or it is another user's, and takes in \
         nobody else; or this is a copy of its folder"
    )]
    Unannounced {
        /// The folder, as it can be typed.
        folder: String,
        /// Process id of the supervisor.
        pid: u32,
    },
}

impl From<OsString> for RunName {
    fn from(typed: OsString) -> Self {
        typed.to_str().and_then(|text| text.parse().ok()).map_or_else(|| Self::Folder(typed.into()), Self::Supervisor)
    }
}

impl RunName {
    /// The process id of the supervisor. A process id that the user named is not checked here; the run of a folder is
    /// checked to be announced.
    ///
    /// # Errors
    /// The folder is not one of a run, or its run is not announced here.
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
        let folder = word(path);
        Err(match record.finished {
            Some(finished) => RunNameError::Ended { folder, reason: finished.headline().into() },
            None if record.is_under_way() => RunNameError::Unannounced { folder, pid },
            None => RunNameError::unseen(path, &record),
        })
    }
}

impl RunNameError {
    /// The run in the folder at `path`, which has this `record`, noted no end, and its supervisor is not seen here.
    pub fn unseen(path: &Path, record: &RunRecord) -> Self {
        let folder = word(path);
        match record.elsewhere() {
            Some(machine) => Self::Elsewhere { folder, machine: machine.into() },
            None => Self::Killed { folder, pid: record.supervisor_pid },
        }
    }
}

/// The registry's entry of the run in `folder`, which has this `record`, if the run is still announced.
pub fn announced(registry: &Registry, folder: &RunFolder, record: &RunRecord) -> Option<Entry> {
    let entry = registry.find(record.supervisor_pid).ok()?;
    let path = Path::new(&entry.record.run_folder);
    // Another run may have the process id by now, and the folder may be a copy.
    let is_this_run = match path.canonicalize() {
        Ok(path) => path == folder.path(),
        // The folder was moved, and its supervisor has not noticed yet, or is gone.
        Err(_) => entry.record.identity.supervisor_start_time == record.supervisor_start_ticks,
    };
    is_this_run.then_some(entry)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::telemetry::Finished;

    #[test]
    fn of_a_run_that_has_ended_no_command_is_offered_that_may_be_refused() {
        let place = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(place.path().join("shoal")).unwrap();
        let folder = RunFolder::create(place.path(), "ended", "").unwrap();
        let finished = Finished { at: Timestamp::now(), reason: "step limit".into(), summary: serde_json::Value::Null };
        folder.write_finished(finished).unwrap();
        let error = RunName::Folder(folder.path().into()).supervisor(&registry).unwrap_err().to_string();
        // To go on beyond a limit takes an option that depends on the limit, which `inspect` tells.
        assert!(error.contains("has ended (step limit)") && error.contains("shoal inspect") && !error.contains("resume"), "{error}");
    }

    #[test]
    fn a_run_that_noted_no_end_on_another_machine_is_not_said_to_have_been_killed() {
        let place = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(place.path().join("shoal")).unwrap();
        let folder = RunFolder::create(place.path(), "elsewhere", "").unwrap();
        let record = RunRecord { machine: "node07".into(), boot: Some("its own".into()), ..folder.record().unwrap() };
        std::fs::write(folder.record_path(), serde_json::to_string(&record).unwrap()).unwrap();
        let error = RunName::Folder(folder.path().into()).supervisor(&registry).unwrap_err().to_string();
        assert!(error.contains("was started on node07 and noted no end: it runs there, or was killed"), "{error}");
    }

    #[test]
    fn a_run_whose_folder_was_moved_is_found_before_its_supervisor_notices() {
        let place = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(place.path().join("shoal")).unwrap();
        let folder = RunFolder::create(place.path(), "first", "").unwrap();
        let RunRecord { supervisor_pid, supervisor_start_ticks, .. } = folder.record().unwrap();
        let identity = json!({
            "run_id": 1, "boot_id": 1, "supervisor_pid": supervisor_pid, "supervisor_start_time": supervisor_start_ticks,
            "created_unix_ms": 1, "pid_namespace": 0, "time_namespace": 0,
        });
        let announced = json!({
            "identity": identity, "segment": "/shoal", "socket": "0", "run_folder": place.path().join("where it was before"),
            "environment": "CartPole-v1", "algorithm": "dqn", "program_version": "0",
        });
        std::fs::write(registry.folder().join(format!("{supervisor_pid}.json")), announced.to_string()).unwrap();
        let moved = place.path().join("best");
        std::fs::rename(folder.path(), &moved).unwrap();
        assert_eq!(RunName::Folder(moved).supervisor(&registry).unwrap(), supervisor_pid);
    }

    #[test]
    fn a_number_is_a_process_and_everything_else_a_folder() {
        let [number, folder] = ["123", "runs/latest"].map(OsString::from);
        assert_eq!(RunName::from(number), RunName::Supervisor(123));
        assert_eq!(RunName::from(folder), RunName::Folder("runs/latest".into()));
    }

    #[test]
    fn a_run_whose_supervisor_lives_was_not_killed() {
        let place = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(place.path().join("shoal")).unwrap();
        let folder = RunFolder::create(place.path(), "beginning", "").unwrap();
        let error = RunName::Folder(folder.path().into()).supervisor(&registry).unwrap_err();
        assert!(matches!(error, RunNameError::Unannounced { pid, .. } if pid == std::process::id()), "{error}");
        assert!(error.to_string().contains("another user's"), "one cannot attach to it: {error}");
    }
}
