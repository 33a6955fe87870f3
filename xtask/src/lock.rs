//! One set-up at a time in a checkout, and a folder for its unfinished work.
//!
//! The kernel gives the lock back when its holder dies, whatever the reason, so that there is no stale lock.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::io::Errno;

use crate::report::say;

/// The right to change what the set-up makes in one folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct SetupLock {
    root: PathBuf,
    folder: &'static str,
    _file: File,
}

impl SetupLock {
    /// Waits for a set-up of `folder` that is under way, then removes what interrupted ones left: nobody can be using that.
    pub(crate) fn acquire(root: &Path, folder: &'static str) -> Result<Self> {
        if let Some(lock) = Self::try_acquire(root, folder)? {
            return Ok(lock);
        }
        say("Another set-up is under way; waiting for it.");
        let (path, file) = lock_file(root, folder)?;
        file.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
        Self::of_locked(file, root, folder)
    }

    /// As [`acquire`](Self::acquire), but returns `None` instead of waiting.
    pub(crate) fn try_acquire(root: &Path, folder: &'static str) -> Result<Option<Self>> {
        let (path, file) = lock_file(root, folder)?;
        match file.try_lock() {
            Ok(()) => Self::of_locked(file, root, folder).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            // As on many network file systems. Cargo works there as well.
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                say(format!("{} cannot be locked on this file system: start no second set-up before this one ends.", path.display()));
                Self::of_locked(file, root, folder).map(Some)
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("{} cannot be locked", path.display())),
        }
    }

    fn of_locked(file: File, root: &Path, folder: &'static str) -> Result<Self> {
        remove_leftovers(root, folder)?;
        Ok(Self { root: root.to_path_buf(), folder, _file: file })
    }

    /// An empty folder beside the one that is set up, on the same file system, so that a finished folder moves in one rename.
    ///
    /// Its name has the process id: a pip whose set-up was killed may still be writing into the folder of that set-up.
    pub(crate) fn partial_folder(&self) -> Result<PartialFolder> {
        let path = self.root.join(format!("{}{}", partial_prefix(self.folder), std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(PartialFolder(path))
    }
}

/// Unfinished work. It is removed when it is dropped, or else by the next set-up.
pub(crate) struct PartialFolder(PathBuf);

impl PartialFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            say(format!("{} could not be removed: {error}", self.0.display()));
        }
    }
}

/// Whether a file system answered that it has no locks, or that the service is missing that would keep them.
fn has_no_locks(error: &std::io::Error) -> bool {
    let number = Errno::from_io_error(error);
    number.is_some_and(|number| [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP].contains(&number))
}

fn lock_file(root: &Path, folder: &str) -> Result<(PathBuf, File)> {
    let path = root.join(format!("{folder}.lock"));
    let file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok((path, file))
}

fn partial_prefix(folder: &str) -> String {
    format!("{folder}.partial-")
}

fn remove_leftovers(root: &Path, folder: &str) -> Result<()> {
    for entry in fs::read_dir(root).with_context(|| format!("{} cannot be read", root.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&partial_prefix(folder)) {
            // The pip of a killed set-up may still be writing there. What is left then is removed next time, and does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_excludes_a_second_holder_until_it_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let lock = SetupLock::acquire(root.path(), ".libtorch").unwrap();
        let other = || SetupLock::try_acquire(root.path(), ".libtorch").unwrap();
        assert!(other().is_none());
        drop(lock);
        assert!(other().is_some());
    }

    #[test]
    fn what_an_interrupted_set_up_left_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".libtorch.partial-1/downloads")).unwrap();
        fs::create_dir(root.path().join(".libtorch")).unwrap();
        let lock = SetupLock::acquire(root.path(), ".libtorch").unwrap();
        assert!(!root.path().join(".libtorch.partial-1").exists());
        assert!(root.path().join(".libtorch").exists());
        let path = lock.partial_folder().unwrap().path().to_path_buf();
        assert!(!path.exists(), "a dropped folder is gone");
    }
}
