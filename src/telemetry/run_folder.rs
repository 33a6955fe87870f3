//! The folder of one run, in which everything that a run writes has its place.
//!
//! Only the event files for TensorBoard lie beside it, in `tensorboard/<id>`: TensorBoard follows links, and would
//! take what `latest` leads to for a second run.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::TelemetryError;
use super::folders::{LATEST, claim_id, point_latest};
use super::run_record::{self, Finished, RunRecord};
use super::tensorboard::{event_file_path, second_of_another};
use crate::bounded_file::read_text;
use crate::machine::cores;

/// The folder of the event files for TensorBoard, in the folder of all runs.
pub const CHARTS: &str = "tensorboard";
pub(super) const CONFIG: &str = "config.toml";
pub(super) const RECORD: &str = "run.json";
const LOCK: &str = ".lock";
/// Longest file with the name of a segment that is read.
const NAME_LIMIT_BYTES: u64 = 4_096;

/// An existing run folder.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    id: String,
    /// The second since 1970 that is in the name of the event file for TensorBoard.
    charts_second: i64,
    warnings: Vec<String>,
    /// A file in the folder, open and locked for as long as the folder is in use.
    lock: Option<Arc<File>>,
}

/// The files that a run which goes on replaces before its first process starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderSettings {
    config: String,
    record: String,
}

impl RunFolder {
    /// Creates `root/<id>` with the resolved configuration and `run.json` in it, and `root/tensorboard/<id>` for its
    /// event file. `root/latest` stays as it is until [`Self::become_latest`].
    ///
    /// The id is the time (UTC), the name with unusual characters replaced, and a random suffix:
    /// `20261121-154502-cartpole_dqn-seed1-3f2a`. The ids of runs of one name sort in the order in which they began.
    /// No existing folder is ever reused.
    ///
    /// # Errors
    /// The root cannot be written. There is no folder then.
    pub fn create(root: &Path, name: &str, config_toml: &str) -> Result<Self, TelemetryError> {
        fs::create_dir_all(root).map_err(TelemetryError::file("create", root))?;
        let started = Timestamp::now();
        let id = claim_id(root, name, started)?;
        let mut folder = Self { path: root.join(&id), id, charts_second: started.as_second(), warnings: Vec::new(), lock: None };
        folder.fill(name, config_toml, started).inspect_err(|_| folder.remove())?;
        Ok(folder)
    }

    fn fill(&mut self, name: &str, config_toml: &str, started: Timestamp) -> Result<(), TelemetryError> {
        self.take()?;
        self.make_folders()?;
        run_record::replace(&self.config(), config_toml)?;
        run_record::write(&self.record_path(), &RunRecord::of_this_process(&self.id, name, started))
    }

    /// Makes the folders of the weights and of the charts where they are missing.
    fn make_folders(&self) -> Result<(), TelemetryError> {
        for needed in [self.path.join("weights"), self.charts().join(&self.id)] {
            fs::create_dir_all(&needed).map_err(TelemetryError::file("create", &needed))?;
        }
        Ok(())
    }

    /// Removes the folder of a run that has not begun, with its place among the charts.
    pub fn remove(&self) {
        for path in [self.charts().join(&self.id), self.path.clone()] {
            // Whoever removes it has an error to tell, and this would be another.
            let _ = fs::remove_dir_all(path);
        }
    }

    /// Points `latest` beside the folder to it.
    ///
    /// # Errors
    /// Why it does not lead here, in words.
    pub fn become_latest(&self) -> Result<(), String> {
        let (Some(root), Some(name)) = (self.path.parent(), self.path.file_name().and_then(|name| name.to_str())) else { return Ok(()) };
        point_latest(root, name).map_err(|reason| format!("{} does not lead to this run: {reason}", root.join(LATEST).display()))
    }

    /// Points `latest` beside the folder to it, if it led to `before`, from where the folder was moved.
    ///
    /// # Errors
    /// As [`Self::become_latest`].
    pub fn keep_latest(&self, before: &Self) -> Result<(), String> {
        let latest = self.path.with_file_name(LATEST);
        let led_there = fs::read_link(&latest).is_ok_and(|link| Some(link.as_os_str()) == before.path.file_name());
        if led_there && !latest.exists() { self.become_latest() } else { Ok(()) }
    }

    /// Locks the folder for this process and all that it forks, until the last of them is gone. Returns `false` if
    /// others have it. If the file system has no locks, nobody can be kept out, and a warning says so.
    ///
    /// # Errors
    /// The folder cannot be opened or locked.
    pub fn take(&mut self) -> Result<bool, TelemetryError> {
        let path = self.path.join(LOCK);
        let failed = |error| TelemetryError::of_lock(&path, &self.path, error);
        // Whoever may open the file may lock it, so only this user may.
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => self.lock = Some(Arc::new(file)),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                self.warnings =
                    vec![format!("the file system of {} has no locks: go on with a run from one place alone", self.path.display())];
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(true)
    }

    /// Takes the folder as [`Self::take`] does, and returns `false` also while processes share the memory of the run: of
    /// those that a killed supervisor has left, nothing else tells where the file system has no locks.
    ///
    /// # Errors
    /// As [`Self::take`], and of [`Self::record`].
    pub fn take_deserted(&mut self) -> Result<bool, TelemetryError> {
        Ok(self.take()? && (self.is_locked() || !self.record()?.has_members()))
    }

    /// Locks the folder anew if somebody has removed the file that was locked, as those do who clear away what is old: others could lock
    /// another one. Returns whether that was so; `false` as well if others have been first, or are removing the whole folder.
    pub fn take_anew(&mut self) -> bool {
        self.has_lost_its_lock() && self.record_path().is_file() && self.take().unwrap_or(false) && !self.has_lost_its_lock()
    }

    /// Whether the file that was locked has lost its name, perhaps to another file. Its number of links does not tell: network file systems
    /// give a file that is removed while it is open another name.
    fn has_lost_its_lock(&self) -> bool {
        let identity = |facts: fs::Metadata| (facts.dev(), facts.ino());
        // Where the folder is now: in the place from which it was moved a copy may lie, with another lock. A move between the two looks
        // passes for a loss, but leaves neither a record nor a folder there in which another file could be locked.
        self.lock.as_ref().is_some_and(|lock| match fs::metadata(self.current().path.join(LOCK)) {
            // Of a file that was removed on another machine the system may say nothing any more (ESTALE).
            Ok(named) => lock.metadata().map(identity).ok() != Some(identity(named)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        })
    }

    /// Whether this process has locked the folder; `false` if its file system has no locks.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The folder where it is now: it may have been moved on its file system since it was locked. `None` if it was
    /// removed.
    pub fn found_again(&self) -> Option<Self> {
        // The kernel follows an open file, and appends " (deleted)" to the name of one that was removed.
        let lock = self.lock.as_ref().and_then(|lock| fs::read_link(format!("/proc/self/fd/{}", lock.as_raw_fd())).ok());
        match lock.as_deref().filter(|lock| lock.ends_with(LOCK)).and_then(Path::parent) {
            Some(folder) => Some(Self { path: folder.to_path_buf(), ..self.clone() }),
            None => self.path.is_dir().then(|| self.clone()),
        }
    }

    /// The folder where it is now, if it was moved on its file system since it was locked.
    pub fn moved(&self) -> Option<Self> {
        // Links may lead to it.
        self.found_again().filter(|found| found.path.canonicalize().ok() != self.path.canonicalize().ok())
    }

    /// The folder by the path that leads to it now, whether it was moved or not.
    pub fn current(&self) -> Self {
        self.moved().unwrap_or_else(|| self.clone())
    }

    /// The folder by its absolute path, which leads to it from any working directory.
    pub fn absolute(&self) -> Self {
        Self { path: std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()), ..self.clone() }
    }

    /// Whether this folder is a copy: `original`, in which the run has its results, is another one and still there.
    pub fn is_copy_of(&self, original: &str) -> bool {
        Path::new(original).canonicalize().is_ok_and(|original| original != self.path)
    }

    /// Unlocks the folder for all processes that share the lock: those that environments have started may live longer
    /// than the run.
    pub fn give_back(&self) {
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }

    /// Locks the folder again after [`Self::give_back`], for all processes that share the lock. Returns `false` if
    /// others have it.
    pub fn take_again(&self) -> bool {
        self.lock.as_ref().is_none_or(|lock| lock.try_lock().is_ok())
    }

    /// Reads the resolved configuration and the record of the run.
    ///
    /// # Errors
    /// One of the files cannot be read.
    pub fn settings(&self) -> Result<FolderSettings, TelemetryError> {
        let read = |path: PathBuf| fs::read_to_string(&path).map_err(TelemetryError::file("read", &path));
        Ok(FolderSettings { config: read(self.config())?, record: read(self.record_path())? })
    }

    /// Writes `settings` back, unless the files have them.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn put_back(&self, settings: &FolderSettings) -> Result<(), TelemetryError> {
        // A full disk may be why they are put back, so nothing is written without need.
        if self.settings().is_ok_and(|found| found == *settings) {
            return Ok(());
        }
        run_record::replace(&self.config(), &settings.config)?;
        run_record::replace(&self.record_path(), &settings.record)
    }

    /// Makes this the folder of a run that goes on in this process, with the resolved configuration `config_toml`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn go_on(&mut self, config_toml: &str) -> Result<(), TelemetryError> {
        let before = self.record()?;
        if let Some(name) = self.name_of_a_copy() {
            self.id = name;
        }
        let resumptions = before.resumptions + 1;
        let record = RunRecord { resumptions, ..RunRecord::of_this_process(&self.id, &before.name, before.started) };
        // Readers find the old configuration or the new one, whole.
        run_record::replace(&self.config(), config_toml)?;
        // The run folder may have been moved away from the folder of charts, and some ways to copy one leave out folders that are empty.
        self.make_folders()?;
        run_record::write(&self.record_path(), &record)?;
        self.charts_second = second_of_another(&self.charts().join(&self.id), Timestamp::now().as_second());
        Ok(())
    }

    /// The name of this folder, if it is a copy: another folder beside it has the name that this one was given. What
    /// the copy writes beside itself must not get among what the original wrote there.
    fn name_of_a_copy(&self) -> Option<String> {
        let original = self.path.with_file_name(&self.id).canonicalize().ok()?;
        let own = self.path.canonicalize().ok()?;
        (own != original).then(|| own.file_name()?.to_str().map(str::to_owned))?
    }

    /// Opens an existing run folder; symbolic links such as `runs/latest` are followed.
    ///
    /// # Errors
    /// The path leads nowhere, or to something that no run has written.
    pub fn open(path: &Path) -> Result<Self, TelemetryError> {
        let real = path.canonicalize().map_err(TelemetryError::file("open the run folder", path))?;
        for missing in [RECORD, CONFIG] {
            if !real.join(missing).is_file() {
                return Err(TelemetryError::NotARunFolder { path: path.to_path_buf(), missing });
            }
        }
        let record = run_record::read(&real.join(RECORD))?;
        Ok(Self { path: real, id: record.id, charts_second: record.started.as_second(), warnings: Vec::new(), lock: None })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name that the folder was given when it was created or, for a copy beside the original, when the copy first
    /// went on. The folder may have been moved since.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What went wrong without stopping the run when the folder was locked, to be shown to the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The resolved configuration: `config.toml`.
    pub fn config(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// One line per metrics interval: `metrics.jsonl`.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// One line per evaluation: `evaluations.jsonl`.
    pub fn evaluations(&self) -> PathBuf {
        self.path.join("evaluations.jsonl")
    }

    /// What was tried to fit the run to the machine, one probe per line: `adaptation.jsonl`.
    pub fn adaptation(&self) -> PathBuf {
        self.path.join("adaptation.jsonl")
    }

    /// What happened and when, in words: `run.log`.
    pub fn log(&self) -> PathBuf {
        self.path.join("run.log")
    }

    /// The folder for TensorBoard: the event files of this run and of all runs beside it, a folder for each.
    pub fn charts(&self) -> PathBuf {
        self.path.with_file_name(CHARTS)
    }

    /// The event file that this process writes for TensorBoard.
    pub fn events(&self) -> PathBuf {
        event_file_path(&self.charts().join(&self.id), self.charts_second)
    }

    /// The best parameters that fresh episodes confirmed: `weights/best.safetensors`.
    pub fn best_weights(&self) -> PathBuf {
        self.path.join("weights/best.safetensors")
    }

    /// The newest parameters: `weights/last.safetensors`.
    pub fn last_weights(&self) -> PathBuf {
        self.path.join("weights/last.safetensors")
    }

    /// Videos of episodes, if the run has a visualizer: `videos`.
    pub fn videos(&self) -> PathBuf {
        self.path.join("videos")
    }

    /// The checkpoints from which the run can go on: `checkpoints`.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// The files of a run that is kept in memory, a checkpoint without its replay: `kept`.
    pub fn kept(&self) -> PathBuf {
        self.path.join("kept")
    }

    /// The file with the name of the segment in which a run is kept: `kept/segment`.
    pub fn kept_segment(&self) -> PathBuf {
        self.kept().join("segment")
    }

    /// The name in that file.
    ///
    /// # Errors
    /// There is no such file, or it is none that holds a name.
    pub(crate) fn kept_segment_name(&self) -> io::Result<String> {
        read_text(&self.kept_segment(), NAME_LIMIT_BYTES)
    }

    /// Removes [`Self::kept`], once the run goes on or is no longer in memory.
    pub fn forget_kept(&self) {
        // Files that cannot be removed are replaced when the run is kept again.
        let _ = fs::remove_dir_all(self.kept());
    }

    /// Environment steps of the newest complete checkpoint, as the name of its folder says; `None` if the run has nothing to go on from.
    pub fn saved_env_steps(&self) -> Option<u64> {
        let entries = fs::read_dir(self.checkpoints()).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            // As `Checkpoints::write` names it.
            let name = entry.file_name();
            let (sequence, env_steps) = name.to_str()?.split_once("-step")?;
            Some((sequence.parse::<u64>().ok()?, env_steps.parse::<u64>().ok()?))
        });
        named.max().map(|(_, env_steps)| env_steps)
    }

    /// Who ran this and how it ended: `run.json`.
    pub fn record_path(&self) -> PathBuf {
        self.path.join(RECORD)
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// The file is missing or not of this version.
    pub fn record(&self) -> Result<RunRecord, TelemetryError> {
        run_record::read(&self.record_path())
    }

    /// Adds to `run.json` how the run ended, and which cores this process may use by now.
    ///
    /// # Errors
    /// The file cannot be read or replaced.
    pub fn write_finished(&self, finished: Finished) -> Result<(), TelemetryError> {
        let record = RunRecord { finished: Some(finished), usable_cores: cores::time_now(), ..self.record()? };
        run_record::write(&self.record_path(), &record)
    }
}

/// Whether a lock was refused because the file system has no locks: network file systems may be mounted so.
fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::ENOSYS | libc::EOPNOTSUPP))
}
