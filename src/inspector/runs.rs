//! This user's runs, and the removal of what dead runs left.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::printable::{printable, printable_path};
use crate::rendezvous::{Entry, Liveliness, Registry, remove_dead_replays};
use crate::segment::Segment;
use crate::segment::control::{Control, RunState};
use crate::sync::Ordering;

/// This user's runs, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
}

/// One run, in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Process id of the supervisor, by which the run is named.
    pub pid: u32,
    /// Whether the supervisor lives.
    pub state: Liveliness,
    /// The state of the run in its segment; absent if the segment cannot be read, or if the process that kept it is
    /// gone.
    pub phase: Option<RunState>,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Seconds since the run was created.
    pub age_s: f64,
    /// Environment steps.
    pub env_steps: Option<u64>,
    /// Updates.
    pub updates: Option<u64>,
    /// The folder of the run's results.
    pub run_folder: String,
    /// Name of the shared-memory object.
    pub segment: String,
    /// Why the segment cannot be read.
    pub problem: Option<String>,
}

/// What a clean-up did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// Segments that were removed: those of runs, with their sockets and records, and those of shared replays.
    pub removed: Vec<String>,
    /// Supervisors of dead runs of which other processes still live, so that nothing was removed.
    pub kept: Vec<u32>,
}

impl RunList {
    /// All runs in `registry`.
    pub fn of(registry: &Registry) -> Self {
        Self { runs: registry.list().iter().map(RunSummary::of).collect() }
    }
}

impl RunSummary {
    fn of(entry: &Entry) -> Self {
        let record = &entry.record;
        let opened = super::open(entry);
        let (segment, problem) = match opened {
            Ok(segment) => (Some(segment), None),
            Err(error) => (None, Some(printable(&error.to_string()))),
        };
        let control = segment.as_ref().map(Segment::control);
        Self {
            pid: record.identity.supervisor_pid,
            state: entry.state,
            phase: control.filter(|&control| !is_left_by_its_keeper(control)).map(Control::run_state),
            environment: printable(&record.environment),
            algorithm: printable(&record.algorithm),
            age_s: age_s(record.identity.created_unix_ms),
            env_steps: control.map(|control| control.env_steps().load(Ordering::Relaxed)),
            updates: control.map(|control| control.updates().load(Ordering::Relaxed)),
            run_folder: printable_path(&record.run_folder),
            segment: printable(&record.segment),
            problem,
        }
    }

    /// Whether the supervisor is dead and the memory of its run is kept for another one.
    pub(super) fn is_kept(&self) -> bool {
        self.state == Liveliness::Dead && self.phase == Some(RunState::Kept)
    }
}

impl Cleaned {
    /// Removes what every dead run of this user left, and every shared replay that no process uses any more.
    pub fn sweep(registry: &Registry) -> Self {
        let names = registry.sweep().into_iter().chain(remove_dead_replays());
        let removed = names.map(|name| printable(&name)).collect();
        let dead = registry.list().into_iter().filter(|entry| entry.state == Liveliness::Dead);
        Self { removed, kept: dead.map(|entry| entry.record.identity.supervisor_pid).collect() }
    }
}

/// Whether a living process keeps the run of `segment` in memory.
pub fn is_kept(segment: &Segment) -> bool {
    segment.control().run_state() == RunState::Kept && segment.control().keeping().is_kept()
}

/// Whether a process that is gone kept the run in memory.
fn is_left_by_its_keeper(control: Control<'_>) -> bool {
    control.run_state() == RunState::Kept && !control.keeping().is_kept()
}

/// Seconds since a moment given in milliseconds since 1970.
pub(super) fn age_s(created_unix_ms: u64) -> f64 {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64() * 1e3);
    (now_ms - created_unix_ms as f64).max(0.0) / 1e3
}
