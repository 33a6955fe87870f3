//! Removing what the dead left: segments, sockets, records.
//!
//! A process that is killed removes nothing, so every supervisor sweeps before it starts. Nothing of a living run is
//! touched: the kernel is asked for the supervisor by process id, start time and boot, and a segment is removed only
//! when the lock that all processes of its run share is free.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::registry::{Entry, Registry, RunRecord, RunState, read, state_of};
use crate::segment::processes::start_time;
use crate::segment::{Segment, system};

/// What is younger may belong to a supervisor that has not announced itself yet.
const GRACE: Duration = Duration::from_secs(5);

impl Registry {
    /// Remove what a dead run left: its segment, socket and record. `false` when processes of it still live.
    pub fn clean(&self, entry: &Entry) -> bool {
        let RunRecord { identity, segment, .. } = &entry.record;
        // A record is only text: an object that is none of this user's runs' is left alone, whatever it says.
        let is_ours = segment.starts_with(&object_prefix());
        if entry.state == RunState::Running || is_ours && !system::remove_if_dead(segment) {
            return false;
        }
        let path = self.record_path(identity.supervisor_pid);
        // The id may have gone to another supervisor since the entry was read: then the files are its own.
        if read(&path).is_some_and(|now| now.record.identity == *identity) {
            let _ = fs::remove_file(self.socket_path(identity.supervisor_pid));
            let _ = fs::remove_file(&path);
        }
        true
    }

    /// Remove what every dead run of this user left, also of those whose record is gone or was never finished. Returns
    /// the names of the segments.
    pub fn sweep(&self) -> Vec<String> {
        let (running, dead): (Vec<Entry>, Vec<Entry>) = self.list().into_iter().partition(|entry| entry.state == RunState::Running);
        let mut removed: Vec<String> = dead.into_iter().filter(|entry| self.clean(entry)).map(|entry| entry.record.segment).collect();
        let named = |name: &String| running.iter().any(|entry| entry.record.segment == *name);
        removed.extend(orphans().into_iter().filter(|name| !named(name) && system::remove_if_dead(name)));
        for path in self.strays() {
            let _ = fs::remove_file(path);
        }
        removed
    }

    /// Files of the registry that belong to no readable record and whose process is gone: damaged records, records
    /// that were never finished, sockets.
    fn strays(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.folder()) else { return Vec::new() };
        let paths = files.filter_map(|file| Some(file.ok()?.path())).filter(|path| is_old(path));
        let stray = |path: &PathBuf| {
            let pid = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let is_ours = path.extension().is_some_and(|kind| kind == "json" || kind == "new" || kind == "socket");
            is_ours && pid.is_some_and(|pid| start_time(pid).is_none() && read(&self.record_path(pid)).is_none())
        };
        paths.filter(stray).collect()
    }
}

/// Beginning of the names of this user's segments, as `Identity::segment_name` makes them.
fn object_prefix() -> String {
    format!("/shoal-{}-", nix::unistd::getuid())
}

/// Segments of this user whose supervisor has ended.
fn orphans() -> Vec<String> {
    let prefix = object_prefix();
    let Ok(objects) = fs::read_dir("/dev/shm") else { return Vec::new() };
    let paths = objects.filter_map(|object| Some(object.ok()?.path())).filter(|path| is_old(path));
    let names = paths.filter_map(|path| Some(format!("/{}", path.file_name()?.to_str()?)));
    names.filter(|name| name.strip_prefix(&prefix).is_some_and(|rest| supervisor_has_ended(name, rest))).collect()
}

/// Whether the supervisor of the segment `name` has ended; `rest` is the name from its process id on.
fn supervisor_has_ended(name: &str, rest: &str) -> bool {
    match Segment::attach_read_only(name) {
        Ok(segment) => state_of(segment.identity()) == RunState::Dead,
        // Killed before it had published the header, or of another version: then only the id in the name tells, and
        // while any process has that id the segment stays.
        Err(_) => rest.split_once('-').and_then(|(pid, _)| pid.parse().ok()).is_some_and(|pid| start_time(pid).is_none()),
    }
}

fn is_old(path: &Path) -> bool {
    // A time in the future says nothing, so what has one is left to a later sweep.
    fs::symlink_metadata(path).and_then(|facts| facts.modified()).is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= GRACE))
}
