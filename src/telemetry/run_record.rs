//! `run.json`: which process ran what and when, and how it ended. Without `finished`, the run goes on or was killed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use nix::sys::utsname::uname;
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TelemetryError;
use super::reached::Reached;
use super::stop_reason::{GAVE_UP, TERMINATED};
use crate::bounded_file::read_bytes;
use crate::machine::cores;
use crate::machine::software::VERSION;
use crate::segment::pidfd::{has_exited, start_time};
use crate::segment::{Segment, boot_name, object, segment_name_prefix};

/// Largest record that is read.
const LIMIT_BYTES: u64 = 16 << 20;

/// The content of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Name that the run folder was given; the folder may have been moved since.
    pub id: String,
    /// Name that the user gave.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// When the supervisor started, in clock ticks since the machine did: another process may have its id by now. 0
    /// if it is not known.
    pub supervisor_start_ticks: u64,
    /// Name of the supervisor's machine.
    #[serde(default)]
    pub machine: String,
    /// The kernel's name for the boot of that machine, in which alone process ids and start ticks mean anything; `None` if it is not known.
    #[serde(default)]
    pub boot: Option<String>,
    /// Start, UTC.
    pub started: Timestamp,
    /// Program and arguments.
    pub command_line: Vec<String>,
    /// Folder in which the program was started.
    pub working_directory: String,
    /// How often the run went on from a checkpoint.
    pub resumptions: u32,
    /// Cores that the run may use, or might when it ended: a control group may leave it a part of one.
    pub usable_cores: f64,
    /// Cores of the machine, whoever may use them.
    pub machine_cores: usize,
    /// How the run ended; absent while it goes on, and for ever if it was killed.
    pub finished: Option<Finished>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// End, UTC.
    pub at: Timestamp,
    /// Why the run stopped: `solved`, `step limit`, `time limit`, `interrupted`, `terminated`, `gave up: ...` or `failed: ...`.
    pub reason: String,
    /// The closing report's figures.
    pub summary: Value,
}

impl Finished {
    /// The first line of the reason.
    pub fn headline(&self) -> &str {
        self.reason.lines().next().unwrap_or_default()
    }
}

impl RunRecord {
    /// Whether the supervisor has exited, as far as this process can see: it is none of this boot of this machine.
    pub fn has_lost_its_supervisor(&self) -> bool {
        self.is_of_another_boot() || has_exited(self.supervisor_pid, self.supervisor_start_ticks)
    }

    /// The machine of the supervisor, if that is another one: whether the supervisor lives is seen there alone.
    pub fn elsewhere(&self) -> Option<&str> {
        (self.is_of_another_boot() && self.machine != machine_name()).then_some(self.machine.as_str())
    }

    fn is_of_another_boot(&self) -> bool {
        self.boot.is_some() && boot_name().is_some_and(|boot| self.boot != Some(boot))
    }

    /// Whether the run goes on, as far as this process can see: it noted no end, and its supervisor has not exited.
    pub fn is_under_way(&self) -> bool {
        self.finished.is_none() && !self.has_lost_its_supervisor()
    }

    /// Whether processes share the memory of the run: its own, or those that a killed supervisor has left. The last of
    /// these is the sentinel, which leaves when it has saved what was there.
    pub fn has_members(&self) -> bool {
        self.segments().iter().any(|name| object::is_shared(name))
    }

    /// Whether the supervisor, which has not exited, is about to: it noted an end, or has told everybody to leave.
    pub fn is_ending(&self) -> bool {
        let is_stopping = |name: &String| Segment::attach_read_only(name).is_ok_and(|segment| segment.control().run_state().is_over());
        self.finished.is_some() || self.segments().iter().any(is_stopping)
    }

    /// Names of the segments of the supervisor.
    fn segments(&self) -> Vec<String> {
        let mut names = object::names(&segment_name_prefix());
        // An adopted segment has the name that its first supervisor gave it.
        names.retain(|name| {
            Segment::identity_of(name).is_ok_and(|identity| {
                (identity.supervisor_pid, identity.supervisor_start_time) == (self.supervisor_pid, self.supervisor_start_ticks)
            })
        });
        names
    }

    /// Whether nothing is left to do: the run noted an end, did not give up, and was not terminated.
    pub fn has_come_to_its_end(&self) -> bool {
        self.finished.as_ref().is_some_and(|finished| !finished.reason.starts_with(GAVE_UP) && finished.reason != TERMINATED)
    }

    /// How far the run has come, if it noted an end.
    pub fn reached(&self) -> Option<Reached> {
        self.finished.as_ref().map(|finished| Reached::from_summary(&finished.summary))
    }

    pub(super) fn of_this_process(id: &str, name: &str, started: Timestamp) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            version: VERSION.into(),
            supervisor_pid: std::process::id(),
            supervisor_start_ticks: start_time(std::process::id()).unwrap_or(0),
            machine: machine_name(),
            boot: boot_name(),
            started,
            command_line: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            working_directory: std::env::current_dir().unwrap_or_default().display().to_string(),
            resumptions: 0,
            usable_cores: cores::time_now(),
            machine_cores: machine_cores().unwrap_or_else(cores::usable_now),
            finished: None,
        }
    }
}

/// Name of this machine in its network; empty if the system does not tell.
pub(super) fn machine_name() -> String {
    uname().map(|names| names.nodename().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Number of cores that are online: those whose busy time the kernel reports; `None` if the system does not tell.
fn machine_cores() -> Option<usize> {
    sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().and_then(|cores| cores.try_into().ok())
}

pub(super) fn read(path: &Path) -> Result<RunRecord, TelemetryError> {
    let text = read_bytes(path, LIMIT_BYTES).map_err(TelemetryError::file("read", path))?;
    serde_json::from_slice(&text).map_err(|source| TelemetryError::Record { path: path.to_path_buf(), source })
}

/// Replaces the file by a rename: a reader finds the old or the new one, whole.
pub(super) fn write(path: &Path, record: &RunRecord) -> Result<(), TelemetryError> {
    let text = serde_json::to_string_pretty(record).map_err(|error| TelemetryError::file("write", path)(error.into()))?;
    replace(path, &(text + "\n"))
}

/// Replaces a text file by a rename, as [`write`] does. What a kill leaves half written has a name of its own, and
/// the next call overwrites it: only the process that has locked the folder writes here.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), TelemetryError> {
    let failed = || TelemetryError::file("write", path);
    let temporary = path.with_added_extension("new");
    let mut file = File::create(&temporary).map_err(failed())?;
    file.write_all(text.as_bytes()).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    fs::rename(&temporary, path).map_err(failed())
}
