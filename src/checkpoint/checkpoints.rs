//! The checkpoints of one run: a folder of folders, in the order in which they were written.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CheckpointError;
use super::atomic::flush_folder;
use super::room::{free_bytes, is_lack_of_room};
use super::run_checkpoint::{Content, RunCheckpoint};
use crate::sync::Ordering;

/// Beginning of the names of folders that are being written, or were when their writer was killed.
const PARTIAL: &str = ".partial-";
/// Name of the file that a writer has locked.
const LOCK: &str = ".lock";
/// How long another writer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(10);

/// Which checkpoints are kept once a new one is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest ones, so many.
    pub last: usize,
    /// The first that has the best weights.
    pub best: bool,
    /// The first of every so many environment steps.
    pub every_steps: Option<u64>,
}

/// What of a checkpoint decides whether it is kept.
#[derive(Debug, Clone, Copy)]
struct Stage {
    env_steps: u64,
    best_env_steps: Option<u64>,
}

impl Stage {
    /// That of the checkpoint in the folder `path`.
    fn of(path: &Path) -> Result<Self, CheckpointError> {
        let manifest = RunCheckpoint::manifest_in(path)?;
        Ok(Self { env_steps: manifest.env_steps, best_env_steps: manifest.best_env_steps })
    }
}

impl Retention {
    /// Which of the checkpoints at `stages`, the oldest first, are not kept.
    fn dropped(self, stages: &[Result<Stage, CheckpointError>]) -> Vec<usize> {
        // As the newest says that can be read.
        let best = stages.iter().rev().find_map(|found| found.as_ref().ok()).and_then(|stage| stage.best_env_steps);
        let mut has_best = false;
        let mut period = None;
        let mut dropped = Vec::new();
        for (index, found) in stages.iter().enumerate() {
            let stage = found.as_ref().ok();
            let is_best = !has_best && best.is_some() && stage.and_then(|stage| stage.best_env_steps) == best;
            has_best |= is_best;
            let its_period = self.every_steps.zip(stage).map(|(steps, stage)| stage.env_steps / steps);
            let is_first = its_period.is_some() && its_period != period;
            period = its_period.or(period);
            let is_new = index + self.last >= stages.len();
            // Once the disk gives it again, it may be one of these.
            let is_away = (self.best || self.every_steps.is_some()) && found.as_ref().is_err_and(CheckpointError::may_pass);
            let is_kept = is_new || is_first || is_best && self.best || is_away;
            if !is_kept {
                dropped.push(index);
            }
        }
        dropped
    }
}

/// The checkpoints of a run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// The checkpoints in `folder`, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folders of all complete checkpoints, the oldest first.
    ///
    /// # Errors
    /// The system would not say, as where the disk is that of another machine that is away.
    pub fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let read = || fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
        let mut folders = match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            folders => folders.map_err(|source| CheckpointError::List { folder: self.folder.clone(), source })?,
        };
        folders.retain(|path| sequence_of(path).is_some());
        folders.sort_by_key(|path| sequence_of(path));
        Ok(folders)
    }

    /// The newest checkpoint.
    ///
    /// # Errors
    /// There is no checkpoint, the system would not say, or the newest is damaged. The error then names the one before
    /// it that is whole.
    pub fn newest(&self) -> Result<RunCheckpoint, CheckpointError> {
        let newest = self.list()?.pop().ok_or_else(|| CheckpointError::NoneYet { folder: self.folder.clone() })?;
        RunCheckpoint::open(&newest).map_err(|error| self.with_the_one_before(error, &newest))
    }

    /// The `error` for which the checkpoint in the folder `path` is of no use, together with the newest checkpoint
    /// before it that is whole, if there is one.
    pub fn with_the_one_before(&self, error: CheckpointError, path: &Path) -> CheckpointError {
        let earlier = self.list().unwrap_or_default().into_iter().rev().skip_while(|other| other.file_name() != path.file_name()).skip(1);
        match earlier.into_iter().find(|path| is_whole(path)) {
            Some(previous) => CheckpointError::Superseded { error: Box::new(error), previous },
            None => error,
        }
    }

    /// Write another checkpoint, and return its folder and its size in bytes. If there is no room for it, what `retention`
    /// does not keep beside it goes before it is written: of those that are whole, one stays all the same.
    ///
    /// # Errors
    /// There is no room, the system would not write it, or the memory of the run is damaged; nothing is left of it
    /// then.
    pub fn write(&self, content: Content<'_>, retention: Retention) -> Result<(PathBuf, u64), CheckpointError> {
        let began = Instant::now();
        let failed = |source| CheckpointError::Write { folder: self.folder.clone(), source };
        // Without its parents: if the folder of the run was moved away, it must not be made again in its old place.
        if !self.folder.is_dir() {
            fs::create_dir(&self.folder).map_err(failed)?;
        }
        // A writer that is being killed may still be in the middle of a write.
        let _only_writer = self.lock().map_err(failed)?;
        self.remove_partial();
        let earlier = self.list()?;
        self.make_room(&earlier, &content, retention)?;
        let sequence = earlier.last().and_then(|path| sequence_of(path)).unwrap_or(0) + 1;
        let mut written = self.attempt(content.clone(), sequence, began);
        // Only an attempt tells of a quota, and of a disk that takes no more files.
        if written.as_ref().is_err_and(is_lack_of_room) {
            let gone = expendable(&earlier, &content, retention).into_iter().filter(|path| remove(path).is_ok()).count();
            if gone > 0 {
                written = self.attempt(content, sequence, began);
            }
        }
        // An error of the content, and not of the disk, is passed on as it is.
        written.map_err(|source| source.downcast().unwrap_or_else(failed))
    }

    /// Write `content` as the checkpoint with the number `sequence`, for a writer who `began` earlier. Of one that fails nothing is left.
    fn attempt(&self, content: Content<'_>, sequence: u64, began: Instant) -> io::Result<(PathBuf, u64)> {
        let partial = self.folder.join(format!("{PARTIAL}{sequence:06}"));
        let write = || -> io::Result<(PathBuf, u64)> {
            fs::create_dir(&partial)?;
            let (manifest, bytes) = content.write(sequence, &partial, began)?;
            flush_folder(&partial)?;
            // `RunFolder::saved_env_steps` reads this name too.
            let path = self.folder.join(format!("{sequence:06}-step{}", manifest.env_steps));
            fs::rename(&partial, &path)?;
            // The rename itself is only safe once the folder is on the disk.
            flush_folder(&self.folder)?;
            Ok((path, bytes))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_dir_all(&partial);
        })
    }

    /// Remove what is [`expendable`] of the checkpoints in the folders `earlier` beside `content`, until there is room for that.
    ///
    /// # Errors
    /// There is none all the same, or the system does not say.
    fn make_room(&self, earlier: &[PathBuf], content: &Content<'_>, retention: Retention) -> Result<(), CheckpointError> {
        let free_now = || free_bytes(&self.folder).map_err(|source| CheckpointError::Write { folder: self.folder.clone(), source });
        let (needed, mut free) = (content.bytes(), free_now()?);
        if free >= needed {
            return Ok(());
        }
        for path in expendable(earlier, content, retention) {
            let _ = remove(path);
            free = free_now()?;
            if free >= needed {
                return Ok(());
            }
        }
        Err(CheckpointError::NoRoom { folder: self.folder.clone(), needed, free })
    }

    /// Wait until nobody else writes, or for a minute.
    fn lock(&self) -> io::Result<File> {
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(self.folder.join(LOCK))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                // If the file system has no locks, nobody can be waited for.
                _ => return Ok(file),
            }
        }
    }

    /// Remove what `retention` does not keep. What cannot be removed now is tried again after the next checkpoint.
    pub fn prune(&self, retention: Retention) {
        let all = self.list().unwrap_or_default();
        let stages: Vec<_> = all.iter().map(|path| Stage::of(path)).collect();
        for index in retention.dropped(&stages) {
            let _ = remove(&all[index]);
        }
    }

    /// Remove what killed writers left.
    pub fn remove_partial(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PARTIAL)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Which of the checkpoints in the folders `earlier`, the oldest first, `retention` does not keep beside `content`. The newest that is
/// whole is none of them: the run goes on from that one if the next is never complete. If none is known to be whole, nothing may go.
fn expendable<'a>(earlier: &'a [PathBuf], content: &Content<'_>, retention: Retention) -> Vec<&'a PathBuf> {
    let env_steps = content.segment.control().env_steps().load(Ordering::Relaxed);
    let next = Stage { env_steps, best_env_steps: content.best_env_steps };
    let stages: Vec<_> = earlier.iter().map(|path| Stage::of(path)).chain([Ok(next)]).collect();
    let mut dropped = retention.dropped(&stages);
    dropped.retain(|&index| index < earlier.len());
    // The only one stays whatever it is, and to know of one that it is whole takes reading all of it.
    if dropped.is_empty() || earlier.len() == 1 {
        return Vec::new();
    }
    let Some(newest) = earlier.iter().rposition(|path| is_whole(path)) else { return Vec::new() };
    dropped.into_iter().filter(|&index| index != newest).map(|index| &earlier[index]).collect()
}

/// Whether a run can go on from the checkpoint in the folder `path`, all of which is read.
fn is_whole(path: &Path) -> bool {
    RunCheckpoint::open(path).and_then(|checkpoint| checkpoint.check_replay()).is_ok()
}

/// Remove a checkpoint. A kill in the middle leaves none that looks complete.
fn remove(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!("{PARTIAL}{name}"));
    fs::rename(path, &partial)?;
    fs::remove_dir_all(partial)
}

/// The number of a checkpoint, from the name of its folder; `None` if that is another name.
fn sequence_of(path: &Path) -> Option<u64> {
    let (sequence, steps) = path.file_name()?.to_str()?.split_once("-step")?;
    steps.parse::<u64>().ok()?;
    sequence.parse().ok()
}
