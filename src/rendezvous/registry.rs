//! The registry of this user's runs: one small file per supervisor, in a folder that nobody else can touch.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use super::RendezvousError;
use super::handshake::connect_within;
use crate::segment::Identity;
use crate::segment::pidfd::has_exited;

/// Largest record that is read.
const RECORD_LIMIT_BYTES: u64 = 64 << 10;
/// Bytes of a path in the address of a socket: one less than its field has, for the zero behind it.
const LONGEST_SOCKET_PATH: usize = 107;
/// How long a look whether anybody listens waits for room in the queue of a socket.
const LOOK: Duration = Duration::from_millis(1);

/// What a supervisor says of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredRun {
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
pub enum Liveliness {
    /// The supervisor lives.
    Running,
    /// The supervisor is gone: what it left can be removed.
    Dead,
}

/// A run in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What its supervisor said.
    pub record: RegisteredRun,
    /// Whether its supervisor lives.
    pub state: Liveliness,
}

/// The registry of this user's runs.
#[derive(Debug, Clone)]
pub struct Registry {
    /// First the one for runs of this process. Runs are looked for in all of them.
    folders: Vec<PathBuf>,
}

impl Registry {
    /// Open `$XDG_RUNTIME_DIR/shoal`, or `/tmp/shoal-<uid>` if that variable is not set or leads nowhere, creating it if
    /// need be. A session also sees the runs of services, cron and batch systems, and they see its runs.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn open() -> Result<Self, RendezvousError> {
        let mut registry = Self::open_at(default_folder(std::env::var_os("XDG_RUNTIME_DIR")))?;
        registry.folders.extend(other_of(&registry.folders[0], usual()));
        Ok(registry)
    }

    /// As [`Self::open`], for whoever only looks: where there is no registry, none is made, and no run is found.
    ///
    /// # Errors
    /// What is there is no real folder, another user's, or open to others.
    pub fn for_looking() -> Result<Self, RendezvousError> {
        let folder = default_folder(std::env::var_os("XDG_RUNTIME_DIR"));
        if let Ok(facts) = fs::symlink_metadata(&folder) {
            check(&folder, &facts)?;
        }
        let other = other_of(&folder, usual());
        Ok(Self { folders: std::iter::once(folder).chain(other).collect() })
    }

    /// The registry, if there is one: none is made.
    pub fn existing() -> Option<Self> {
        let folder = default_folder(std::env::var_os("XDG_RUNTIME_DIR"));
        let other = other_of(&folder, usual());
        let folders: Vec<PathBuf> = std::iter::once(folder).filter(|folder| is_safe(folder)).chain(other).collect();
        (!folders.is_empty()).then_some(Self { folders })
    }

    /// Open the registry in `folder`, creating it if need be. It must be a real folder, this user's, closed to others.
    ///
    /// # Errors
    /// There is no folder and none can be made, or what is there is no such folder.
    pub fn open_at(folder: PathBuf) -> Result<Self, RendezvousError> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        let facts = fs::symlink_metadata(&folder)
            .map_err(|source| RendezvousError::NoFolder { folder: folder.clone(), source: created.err().unwrap_or(source) })?;
        check(&folder, &facts)?;
        Ok(Self { folders: vec![folder] })
    }

    /// Where the runs of this process are announced.
    pub fn folder(&self) -> &Path {
        &self.folders[0]
    }

    /// Where the supervisor `pid` listens.
    pub fn socket_path(&self, pid: u32) -> PathBuf {
        self.folder().join(format!("{pid}.socket"))
    }

    fn record_path(&self, pid: u32) -> PathBuf {
        self.folder().join(format!("{pid}.json"))
    }

    /// Where there may be a record of the supervisor `pid`.
    pub(super) fn records_of(&self, pid: u32) -> impl Iterator<Item = PathBuf> {
        self.safe_folders().map(move |folder| folder.join(format!("{pid}.json")))
    }

    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.safe_folders().filter_map(|folder| fs::read_dir(folder).ok()).flatten().filter_map(|file| Some(file.ok()?.path()))
    }

    /// The folders whose records are this user's: anybody may have made one that was not there when the registry was opened.
    fn safe_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter().filter(|folder| is_safe(folder))
    }

    /// Whether there is a place for a run of the process `pid`: in another PID namespace a living supervisor may
    /// have its id, and its socket may not have a path as long as it would be here.
    ///
    /// # Errors
    /// [`RendezvousError::Taken`] and [`RendezvousError::LongPath`], and [`RendezvousError::File`] where that
    /// cannot be looked at.
    pub fn check_free(&self, pid: u32) -> Result<(), RendezvousError> {
        let (found, limit) = (self.socket_path(pid).as_os_str().len(), LONGEST_SOCKET_PATH);
        if found > limit {
            return Err(RendezvousError::LongPath { folder: self.folder().to_path_buf(), found, limit });
        }
        self.check_free_but_for(pid, None)
    }

    fn check_free_but_for(&self, pid: u32, identity: Option<&Identity>) -> Result<(), RendezvousError> {
        let path = self.record_path(pid);
        let is_others = |entry: &Entry| entry.state == Liveliness::Running && Some(&entry.record.identity) != identity;
        let found = read(&path).map_err(RendezvousError::file("read", &path))?;
        if found.as_ref().is_some_and(is_others) { Err(RendezvousError::Taken { pid, path }) } else { Ok(()) }
    }

    /// Keep a place for a run of this process, which nobody sees before its record is published. The record and the
    /// socket disappear with the returned value.
    ///
    /// # Errors
    /// [`RendezvousError::Taken`] where another living run has the place, and [`RendezvousError::File`] where that
    /// cannot be looked at.
    pub fn reserve(&self, record: &RegisteredRun) -> Result<Announcement, RendezvousError> {
        let pid = record.identity.supervisor_pid;
        self.check_free_but_for(pid, Some(&record.identity))?;
        Ok(Announcement { paths: [self.record_path(pid), record.socket.clone()], record: record.clone() })
    }

    /// All runs, the oldest first. Files that are no records are passed over.
    pub fn list(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.files().filter_map(|path| read(&path).ok()?).collect();
        entries.sort_by_key(|entry| (entry.record.identity.created_unix_ms, entry.record.identity.supervisor_pid));
        entries
    }

    /// The run of the supervisor `pid`, dead or alive; one that lives hides one that has died.
    ///
    /// # Errors
    /// [`RendezvousError::NoSuchRun`] where there is no record of it, and [`RendezvousError::File`] where that
    /// cannot be looked at.
    pub fn find(&self, pid: u32) -> Result<Entry, RendezvousError> {
        let mut dead = None;
        for path in self.records_of(pid) {
            match read(&path).map_err(RendezvousError::file("read", &path))? {
                Some(found) if found.state == Liveliness::Running => return Ok(found),
                found => dead = dead.or(found),
            }
        }
        dead.ok_or_else(|| RendezvousError::NoSuchRun { pid, folder: self.folder().to_path_buf(), running: self.running() })
    }

    fn running(&self) -> String {
        let running = self.list().into_iter().filter(|entry| entry.state == Liveliness::Running);
        let names: Vec<String> =
            running.map(|entry| format!("{} ({})", entry.record.identity.supervisor_pid, entry.record.environment)).collect();
        if names.is_empty() { "nothing is running".into() } else { format!("running now: {}", names.join(", ")) }
    }
}

/// Where the registry is when `XDG_RUNTIME_DIR` is `runtime`. Its specification has relative paths ignored, and batch
/// systems hand on that of the machine on which a job was submitted, which may lead nowhere.
fn default_folder(runtime: Option<OsString>) -> PathBuf {
    let folder = runtime.map(PathBuf::from).filter(|runtime| runtime.is_absolute()).map(|runtime| runtime.join("shoal"));
    folder.filter(|folder| is_there_or_can_be_made(folder)).unwrap_or_else(fallback)
}

fn fallback() -> PathBuf {
    format!("/tmp/shoal-{}", nix::unistd::getuid()).into()
}

/// The registries of sessions, and of what is started without one, as services, cron and batch systems do.
fn usual() -> [PathBuf; 2] {
    [format!("/run/user/{}/shoal", nix::unistd::getuid()).into(), fallback()]
}

/// The other one of the `usual` registries if `folder` is one of them, and the other is there and safe. Who gives runs a
/// registry of their own wants to see no others.
fn other_of(folder: &Path, usual: [PathBuf; 2]) -> Option<PathBuf> {
    let is_usual = usual.iter().any(|one| one == folder);
    usual.into_iter().find(|other| is_usual && other != folder && is_safe(other))
}

fn is_safe(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|facts| unsafe_for(&facts).is_none())
}

/// Refuses a `folder` that with these `facts` can be no registry.
fn check(folder: &Path, facts: &fs::Metadata) -> Result<(), RendezvousError> {
    let refused = |problem| Err(RendezvousError::UnsafeFolder { folder: folder.to_path_buf(), problem });
    unsafe_for(facts).map_or(Ok(()), refused)
}

/// Why a folder with these `facts` can be no registry.
fn unsafe_for(facts: &fs::Metadata) -> Option<String> {
    if !facts.is_dir() {
        Some("no folder".into())
    } else if facts.uid() != nix::unistd::getuid().as_raw() {
        Some(format!("owned by user {}", facts.uid()))
    } else {
        (facts.mode() & 0o077 != 0).then(|| format!("open to others (mode {:o})", facts.mode() & 0o777))
    }
}

/// Whether there is such a folder, or it can be made, which this does not do.
fn is_there_or_can_be_made(folder: &Path) -> bool {
    let there = folder.ancestors().find(|path| path.exists());
    // What is no folder has none with this name.
    there.is_some_and(|there| there == folder || access(there.join("."), Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// The record in the file at `path`, unless it is none, or that of another process than its name says.
///
/// # Errors
/// The file cannot be looked at, as where this process may open no more files: nobody knows then, and nothing is to
/// be removed.
pub(super) fn read(path: &Path) -> io::Result<Option<Entry>> {
    let text = fs::symlink_metadata(path).and_then(|facts| {
        let is_named_so = path.extension().is_some_and(|kind| kind == "json");
        (is_named_so && facts.is_file() && facts.len() <= RECORD_LIMIT_BYTES).then(|| fs::read(path)).transpose()
    });
    let text = match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        text => text?,
    };
    let named = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
    let is_of_named = |record: &RegisteredRun| named == Some(record.identity.supervisor_pid);
    let record = text.and_then(|text| serde_json::from_slice::<RegisteredRun>(&text).ok()).filter(is_of_named);
    Ok(record.map(|record| Entry { state: state_of(&record, &path.with_extension("socket")), record }))
}

/// Whether the supervisor of the run, which listens at `socket`, lives, according to the kernel. The id of a supervisor
/// in another PID or time namespace means nothing here, and in another container its shared memory may be out of sight:
/// such a one lives as long as anybody listens, which the kernel tells in every namespace. In doubt the supervisor
/// lives.
pub(super) fn state_of(record: &RegisteredRun, socket: &Path) -> Liveliness {
    let identity = &record.identity;
    // No process has such an id, so the kernel cannot be asked about it.
    let is_impossible = i32::try_from(identity.supervisor_pid).map_or(true, |pid| pid == 0);
    let ended = if !identity.is_of_this_boot() {
        true
    } else if identity.is_of_these_namespaces() {
        is_impossible || has_exited(identity.supervisor_pid, identity.supervisor_start_time)
    } else {
        is_deserted(socket)
    };
    if ended { Liveliness::Dead } else { Liveliness::Running }
}

/// Whether nobody listens at `socket`. In doubt somebody does, as when this process may open no more files.
fn is_deserted(socket: &Path) -> bool {
    let is_nobodys = |error: io::Error| matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound);
    connect_within(socket, LOOK).is_err_and(is_nobodys)
}

/// The place of a run in the registry; dropping it gives it back. A forked child never drops it, because it leaves
/// by `_exit`.
#[derive(Debug)]
pub struct Announcement {
    /// Paths of the record and of the socket.
    paths: [PathBuf; 2],
    record: RegisteredRun,
}

impl Announcement {
    /// Show the run to everybody. Whoever sees it may knock at once, so its supervisor listens before.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn publish(&self) -> Result<(), RendezvousError> {
        let [path, _] = &self.paths;
        let temporary = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
            file.write_all(serde_json::to_string_pretty(&self.record)?.as_bytes())?;
            fs::rename(&temporary, path)
        };
        write().map_err(RendezvousError::file("announce the run in", path))
    }

    /// Show everybody that the folder of the run is `folder` now. A path that is no UTF-8 cannot be shown: the former one
    /// stays then.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn follow(&mut self, folder: &Path) -> Result<(), RendezvousError> {
        let Some(folder) = folder.to_str() else { return Ok(()) };
        folder.clone_into(&mut self.record.run_folder);
        self.publish()
    }

    /// Where the supervisor of the run listens.
    pub fn socket(&self) -> &Path {
        &self.paths[1]
    }

    /// Whether somebody has removed the record or the socket, as those do who clear away what is old.
    pub fn is_gone(&self) -> bool {
        self.paths.iter().any(|path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
    }

    /// Remove the record and the socket after the killed supervisor that was `identity`, unless another has its
    /// process id, and its place, by now.
    pub fn withdraw(&self, identity: &Identity) {
        let is_its = match read(&self.paths[0]) {
            Ok(Some(found)) => found.record.identity == *identity,
            // The supervisor was killed before it had published the record, and may have listened already.
            Ok(None) => has_exited(identity.supervisor_pid, 0),
            Err(_) => false,
        };
        if is_its {
            self.remove();
        }
    }

    fn remove(&self) {
        // The record last: as long as it is there, a killed supervisor's socket is known to be left.
        for path in self.paths.iter().rev() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::segment::{Segment, SegmentSizes};

    #[test]
    fn in_a_session_runs_are_seen_that_were_started_without_one_and_the_reverse() {
        let place = tempfile::tempdir().unwrap();
        let usual = ["session", "service"].map(|name| place.path().join(name));
        let other = |folder: &Path| other_of(folder, usual.clone());
        assert_eq!(other(&usual[0]), None, "there is none, and none is made");
        usual.iter().for_each(|folder| drop(Registry::open_at(folder.clone()).unwrap()));
        assert_eq!([other(&usual[0]), other(&usual[1])], [Some(usual[1].clone()), Some(usual[0].clone())]);
        assert_eq!(other(&place.path().join("own")), None);
        fs::set_permissions(&usual[1], fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(other(&usual[0]), None, "anybody may have put records there");
    }

    #[test]
    fn a_run_in_the_other_registry_is_found_and_removed_as_one_of_the_own() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["session", "service"].map(|name| place.path().join(name));
        let [own, other] = folders.clone().map(|folder| Registry::open_at(folder).unwrap());
        let both = Registry { folders: folders.into() };
        let identity = Segment::of_sizes(SegmentSizes::of_rows(1, 64)).identity().clone();
        let pid = identity.supervisor_pid;
        let mut record = RegisteredRun {
            identity,
            segment: "/elsewhere".into(),
            socket: other.socket_path(pid),
            run_folder: "runs/made-up".into(),
            environment: "CartPole-v1".into(),
            algorithm: "dqn".into(),
            program_version: "0".into(),
        };
        let publish = |record: &RegisteredRun| fs::write(other.record_path(pid), serde_json::to_string(record).unwrap()).unwrap();
        fs::write(&record.socket, "stands for the socket").unwrap();
        publish(&record);
        let entry = both.find(pid).unwrap();
        assert_eq!((&entry.record, entry.state), (&record, Liveliness::Running));
        assert_eq!((both.list(), own.list()), (vec![entry], Vec::new()));

        let mut earlier = record.clone();
        earlier.identity.supervisor_start_time += 1;
        fs::write(own.record_path(pid), serde_json::to_string(&earlier).unwrap()).unwrap();
        assert_eq!(both.find(pid).unwrap().record, record, "one that has died and had the same process id does not hide it");
        fs::remove_file(own.record_path(pid)).unwrap();

        let with_mode = |mode| fs::set_permissions(other.folder(), fs::Permissions::from_mode(mode)).unwrap();
        with_mode(0o755);
        assert!(both.list().is_empty() && both.find(pid).is_err(), "anybody may have put it there");
        with_mode(0o700);

        record.identity.supervisor_start_time += 1;
        publish(&record);
        assert!(both.clean(&both.find(pid).unwrap()));
        assert_eq!(both.files().count(), 0);
    }

    #[test]
    fn the_folder_follows_the_runtime_directory_if_that_is_absolute_and_leads_somewhere() {
        let place = tempfile::tempdir().unwrap();
        for runtime in [place.path().to_owned(), place.path().join("missing/too")] {
            assert_eq!(default_folder(Some(runtime.clone().into())), runtime.join("shoal"));
            assert!(!runtime.join("shoal").exists());
        }
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let nowhere: [OsString; 4] = ["".into(), "relative".into(), file.clone().into(), file.join("below").into()];
        for runtime in nowhere.map(Some).into_iter().chain([None]) {
            assert_eq!(default_folder(runtime.clone()), fallback(), "{runtime:?}");
        }
    }
}
