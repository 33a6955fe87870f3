//! The registry of this user's runs: one small file per supervisor, in a folder that nobody else can touch.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::RendezvousError;
use crate::segment::processes::has_exited;
use crate::segment::{Identity, Segment, system};

/// Objects younger than this may belong to a supervisor that has not announced itself yet.
const GRACE: Duration = Duration::from_secs(5);
/// Largest record that is read.
const RECORD_LIMIT_BYTES: u64 = 64 << 10;

/// What a supervisor says of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Whose run it is.
    pub identity: Identity,
    /// Name of the shared-memory object.
    pub segment: String,
    /// Where attached actors knock.
    pub socket: PathBuf,
    /// Where the results go.
    pub run_folder: String,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Version of the program.
    pub program_version: String,
}

/// Whether a run's supervisor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It does.
    Running,
    /// It does not: what it left can be removed.
    Dead,
}

/// A run in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What its supervisor said.
    pub record: RunRecord,
    /// Whether its supervisor lives.
    pub state: RunState,
}

/// This user's registry.
#[derive(Debug, Clone)]
pub struct Registry {
    folder: PathBuf,
}

impl Registry {
    /// Open `$XDG_RUNTIME_DIR/shoal`, or `/tmp/shoal-<uid>` without that variable, creating it if need be.
    pub fn open() -> Result<Self, RendezvousError> {
        let uid = nix::unistd::getuid();
        let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
            Some(runtime) => PathBuf::from(runtime).join("shoal"),
            None => PathBuf::from(format!("/tmp/shoal-{uid}")),
        };
        Self::open_at(folder)
    }

    /// Open the registry in `folder`, creating it if need be. It must be a real folder, this user's, closed to others.
    pub fn open_at(folder: PathBuf) -> Result<Self, RendezvousError> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        let facts = fs::symlink_metadata(&folder)
            .map_err(|source| RendezvousError::file("create the registry of runs", &folder)(created.err().unwrap_or(source)))?;
        let refuse = |problem: String| RendezvousError::UnsafeFolder { folder: folder.clone(), problem };
        if !facts.is_dir() {
            return Err(refuse("no folder".into()));
        }
        if facts.uid() != nix::unistd::getuid().as_raw() {
            return Err(refuse(format!("owned by user {}", facts.uid())));
        }
        if facts.mode() & 0o077 != 0 {
            return Err(refuse(format!("open to others (mode {:o})", facts.mode() & 0o777)));
        }
        Ok(Self { folder })
    }

    /// Where the supervisor `pid` listens.
    pub fn socket_path(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("{pid}.socket"))
    }

    fn record_path(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("{pid}.json"))
    }

    /// Announce a run of this process. The record and the socket disappear with the returned value.
    pub fn announce(&self, record: &RunRecord) -> Result<Announcement, RendezvousError> {
        let path = self.record_path(record.identity.supervisor_pid);
        let temporary = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
            file.write_all(serde_json::to_string_pretty(record)?.as_bytes())?;
            fs::rename(&temporary, &path)
        };
        write().map_err(RendezvousError::file("announce the run in", &path))?;
        Ok(Announcement { paths: vec![path, record.socket.clone()] })
    }

    /// All runs, the oldest first. Files that are no records are passed over.
    pub fn list(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut entries: Vec<Entry> = files.filter_map(|file| read(&file.ok()?.path())).collect();
        entries.sort_by_key(|entry| (entry.record.identity.created_unix_ms, entry.record.identity.supervisor_pid));
        entries
    }

    /// The run of the supervisor `pid`, dead or alive.
    pub fn find(&self, pid: u32) -> Result<Entry, RendezvousError> {
        read(&self.record_path(pid)).ok_or_else(|| RendezvousError::NoSuchRun { pid, running: self.running() })
    }

    fn running(&self) -> String {
        let running = self.list().into_iter().filter(|entry| entry.state == RunState::Running);
        let names: Vec<String> =
            running.map(|entry| format!("{} ({})", entry.record.identity.supervisor_pid, entry.record.environment)).collect();
        if names.is_empty() { "nothing is running".into() } else { format!("running now: {}", names.join(", ")) }
    }

    /// Remove what a dead run left: its segment, socket and record. `false` when processes of it still live.
    pub fn clean(&self, entry: &Entry) -> bool {
        if entry.state == RunState::Running || !system::remove_if_dead(&entry.record.segment) {
            return false;
        }
        let _ = fs::remove_file(self.socket_path(entry.record.identity.supervisor_pid));
        fs::remove_file(self.record_path(entry.record.identity.supervisor_pid)).is_ok()
    }

    /// Remove what every dead run of this user left, also of those whose record is gone. Returns what was removed.
    pub fn sweep(&self) -> Vec<String> {
        let dead = self.list().into_iter().filter(|entry| entry.state == RunState::Dead);
        let mut removed: Vec<String> = dead.filter(|entry| self.clean(entry)).map(|entry| entry.record.segment).collect();
        removed.extend(orphans().into_iter().filter(|name| system::remove_if_dead(name)));
        removed
    }
}

/// Segments of this user whose supervisor has ended.
fn orphans() -> Vec<String> {
    let prefix = format!("shoal-{}-", nix::unistd::getuid());
    let Ok(objects) = fs::read_dir("/dev/shm") else { return Vec::new() };
    let old = |path: &Path| {
        let changed = path.metadata().and_then(|facts| facts.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        changed.elapsed().is_ok_and(|age| age >= GRACE)
    };
    let paths = objects.filter_map(|object| Some(object.ok()?.path())).filter(|path| old(path));
    let names = paths.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).filter(|name| name.starts_with(&prefix));
    let names = names.map(|name| format!("/{name}"));
    names.filter(|name| Segment::attach_read_only(name).is_ok_and(|segment| state_of(segment.identity()) == RunState::Dead)).collect()
}

fn read(path: &Path) -> Option<Entry> {
    if path.extension()? != "json" || fs::symlink_metadata(path).ok()?.len() > RECORD_LIMIT_BYTES {
        return None;
    }
    let record: RunRecord = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    let state = state_of(&record.identity);
    Some(Entry { record, state })
}

fn state_of(identity: &Identity) -> RunState {
    let ended = !identity.is_of_this_boot() || has_exited(identity.supervisor_pid, identity.supervisor_start_time);
    if ended { RunState::Dead } else { RunState::Running }
}

/// An announced run; dropping it withdraws the announcement. A forked child never drops it, because it leaves by `_exit`.
#[derive(Debug)]
pub struct Announcement {
    paths: Vec<PathBuf>,
}

impl Announcement {
    /// The files to remove, for the process that cleans up after a killed supervisor.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}
