//! Removing what the dead left: segments of runs, shared replays, sockets, records.
//!
//! A process that is killed removes nothing, so every supervisor sweeps before it starts. Nothing of the living is
//! touched: a segment is removed only when the lock that all processes which share it hold is free. The kernel is
//! asked about the lock, so that it tells of processes in other PID namespaces too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::registry::{Entry, Liveliness, RegisteredRun, Registry, read};
use crate::segment::pidfd::has_exited;
use crate::segment::{Segment, object, replay_name_prefix, segment_name_prefix};

/// Anything younger may belong to a process that has not locked or announced it yet.
const GRACE: Duration = Duration::from_secs(5);

impl Registry {
    /// Remove what a dead run left: its segment, socket and record. `false` when processes of it still live.
    pub fn clean(&self, entry: &Entry) -> bool {
        let RegisteredRun { identity, segment, .. } = &entry.record;
        if entry.state == Liveliness::Running || is_named_as_ours(segment) && !object::remove_if_dead(segment) {
            return false;
        }
        for path in self.records_of(identity.supervisor_pid) {
            // The id may have gone to another supervisor since the entry was read: then the files are its own.
            if read(&path).is_ok_and(|found| found.is_some_and(|now| now.record.identity == *identity)) {
                let _ = fs::remove_file(path.with_extension("socket"));
                let _ = fs::remove_file(&path);
            }
        }
        true
    }

    /// Remove what every dead run of this user left, also of those whose record is gone or was never finished. Returns
    /// the names of the segments.
    pub fn sweep(&self) -> Vec<String> {
        let (running, dead): (Vec<Entry>, Vec<Entry>) = self.list().into_iter().partition(|entry| entry.state == Liveliness::Running);
        let cleaned = dead.into_iter().filter(|entry| self.clean(entry)).map(|entry| entry.record.segment);
        let mut removed: Vec<String> = cleaned.filter(|name| is_named_as_ours(name)).collect();
        let named = |name: &String| running.iter().any(|entry| entry.record.segment == *name);
        removed.extend(orphans(&segment_name_prefix()).into_iter().filter(|name| !named(name) && object::remove_if_dead(name)));
        for path in self.strays() {
            let _ = fs::remove_file(path);
        }
        removed
    }

    /// Files of the registry that belong to no readable record and whose process is gone: damaged records, records
    /// that were never finished, sockets.
    fn strays(&self) -> Vec<PathBuf> {
        let stray = |path: &PathBuf| {
            let pid = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let is_ours = path.extension().is_some_and(|kind| kind == "json" || kind == "new" || kind == "socket");
            is_ours && pid.is_some_and(|pid| has_exited(pid, 0) && read(&path.with_extension("json")).is_ok_and(|found| found.is_none()))
        };
        self.files().filter(|path| is_old(path)).filter(stray).collect()
    }
}

/// Remove the shared replays of this user that no process uses any more, because all that did were killed. Returns
/// their names.
pub fn remove_dead_replays() -> Vec<String> {
    orphans(&replay_name_prefix()).into_iter().filter(|name| object::remove_if_dead(name)).collect()
}

/// Whether an object may have this name because it is of one of this user's runs. A record is only text: what else
/// it names is left alone.
fn is_named_as_ours(segment: &str) -> bool {
    segment.starts_with(&segment_name_prefix())
}

/// Objects of this user whose names begin with `prefix` and a process id, and whose lock can be trusted to tell
/// whether they are dead.
fn orphans(prefix: &str) -> Vec<String> {
    let mut names = object::names(prefix);
    names.retain(|name| name.strip_prefix(prefix).is_some_and(|rest| may_be_dead(name, rest)));
    names
}

/// Whether whoever made the object `name` has locked it, or has ended; `rest` is the name from its process id on.
fn may_be_dead(name: &str, rest: &str) -> bool {
    // A header is published behind the lock.
    Segment::identity_of(name).is_ok()
        // Killed before that, or of another version: then only the id in the name tells, and while any process has
        // that id the object stays. In another PID namespace the id is another process's, but its owner needs no
        // seconds to lock it.
        || is_old(&Path::new("/dev/shm").join(name.trim_start_matches('/')))
            && rest.split_once('-').and_then(|(pid, _)| pid.parse().ok()).is_some_and(|pid| has_exited(pid, 0))
}

fn is_old(path: &Path) -> bool {
    // A time in the future says nothing, so what has one is left to a later sweep.
    fs::symlink_metadata(path).and_then(|facts| facts.modified()).is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= GRACE))
}
