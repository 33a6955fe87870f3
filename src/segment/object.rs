//! A shared-memory object before it is mapped: anybody may have put anything under its name.
//!
//! `/dev/shm` is open to all users, and everybody knows how the names of segments begin. So a name is opened without
//! waiting for anybody, what was opened is looked at before a byte of it is believed, and the header is read as from
//! any file: a page that is missing fails a read, but would kill a process that touched it in a mapping.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::mman::{shm_open, shm_unlink};
use nix::sys::stat::Mode;
use rustix::fs::{FlockOperation, flock};

use super::SegmentError;
use super::header::{PAGE_WORDS, STATE};

/// Attempts at a lock that is held by a process which may be removing the object, and the pause between two: removing
/// takes microseconds.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// What an object is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// To take part.
    ReadWrite,
    /// To look.
    ReadOnly,
}

/// A regular file of this user's in the shared-memory file system.
pub(super) struct Object {
    file: File,
    name: String,
    length_bytes: usize,
}

impl Object {
    /// Open the object called `name`, if it is a regular file of this user's.
    pub(super) fn open(name: &str, access: Access) -> Result<Self, SegmentError> {
        let access = match access {
            Access::ReadWrite => OFlag::O_RDWR,
            Access::ReadOnly => OFlag::O_RDONLY,
        };
        // Without O_NONBLOCK the opening of a FIFO would wait for its other end. The C library adds O_NOFOLLOW and
        // O_CLOEXEC, and takes no name that leads out of the folder.
        let opened = shm_open(name, access | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty());
        let not_ours = |found: String| SegmentError::NotOurs { name: name.into(), found };
        let failed = |source: std::io::Error| SegmentError::Refused { name: name.into(), action: "opening", source };
        let file = File::from(opened.map_err(|error| match error {
            Errno::ELOOP => not_ours("a symbolic link".into()),
            // What the C library says of a folder, and of what cannot be the name of an object.
            Errno::EINVAL | Errno::EISDIR => not_ours("a folder, or no object at all".into()),
            // Only its owner may write or read it.
            Errno::EACCES => not_ours("a file of another user".into()),
            Errno::ENOENT => SegmentError::Open { name: name.into(), reason: error.desc().into() },
            // This says nothing of the object: this process may open no more files, say.
            error => failed(error.into()),
        })?);
        let facts = file.metadata().map_err(failed)?;
        let kind = facts.file_type();
        if !kind.is_file() {
            let what = if kind.is_fifo() {
                "a FIFO"
            } else if kind.is_dir() {
                "a folder"
            } else {
                "no regular file"
            };
            return Err(not_ours(what.into()));
        }
        if facts.uid() != nix::unistd::geteuid().as_raw() {
            return Err(not_ours(format!("a file of user {}", facts.uid())));
        }
        Ok(Self { file, name: name.into(), length_bytes: usize::try_from(facts.len()).unwrap_or(usize::MAX) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> impl AsFd {
        self.file.as_fd()
    }

    /// Its length when it was opened.
    pub(super) fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Its first page, as words.
    pub(super) fn first_page(&self) -> Result<[u64; PAGE_WORDS], SegmentError> {
        let mut words = [0; PAGE_WORDS];
        let mut state = [0; 8];
        // The state word by a call of its own, before the rest: it is stored last. The checksum tells whether that
        // sufficed.
        let read = self.file.read_exact_at(&mut state, 0);
        let read = read.and_then(|()| self.file.read_exact_at(bytemuck::cast_slice_mut(&mut words), 0));
        read.map_err(|error| match error.kind() {
            // The object was cut since it was opened.
            ErrorKind::UnexpectedEof => {
                let found = self.file.metadata().map_or(0, |facts| facts.len());
                SegmentError::Damaged { what: "the length of the object", found, expected: self.length_bytes as u64 }
            }
            _ => SegmentError::Refused { name: self.name.clone(), action: "reading", source: error },
        })?;
        words[STATE] = u64::from_le_bytes(state);
        Ok(words)
    }

    /// Count this process among those that share the object called `name`, for as long as the returned file, which
    /// forks inherit, is open in any process.
    pub(super) fn join(name: &str) -> Result<File, SegmentError> {
        let object = Self::open(name, Access::ReadWrite)?;
        let failed = |error: rustix::io::Errno| SegmentError::Refused { name: name.into(), action: "locking", source: error.into() };
        for look in 1.. {
            match flock(&object.file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => break,
                // Another process looks whether anybody is left.
                Err(rustix::io::Errno::WOULDBLOCK) if look < LOOKS => std::thread::sleep(PAUSE),
                Err(error) => return Err(failed(error)),
            }
        }
        // Looked at under the lock: the last process to leave removes the name while it holds the lock.
        if object.is_removed() {
            return Err(SegmentError::Open { name: name.into(), reason: "its last user has just left".into() });
        }
        Ok(object.file)
    }

    /// Keep others from joining, if nobody shares the object: `false` if somebody does.
    fn claim(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.nlink() == 0)
    }
}

/// The names of all objects, whoever made them, that begin with `prefix`.
pub fn names(prefix: &str) -> Vec<String> {
    let objects = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = objects.filter_map(|object| Some(format!("/{}", object.file_name().to_str()?)));
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Remove the object `name` unless a process still shares it, in whatever PID namespace. Returns whether it is gone.
/// An object that is not a regular file of this user's stays.
pub fn remove_if_dead(name: &str) -> bool {
    match Object::open(name, Access::ReadWrite) {
        Ok(object) => object.claim() && (object.is_removed() || remove(name)),
        Err(SegmentError::NotOurs { .. }) => false,
        Err(_) => is_gone(name),
    }
}

/// Whether a process shares the object `name` now, in whatever PID namespace. In doubt one does, as when this process
/// may open no more files: a living process must never be taken for dead.
pub fn is_shared(name: &str) -> bool {
    match Object::open(name, Access::ReadWrite) {
        Ok(object) => !object.claim(),
        Err(error) => matches!(error, SegmentError::Refused { .. }),
    }
}

/// Remove the object `name`. Returns whether it is gone; processes that have mapped it keep their memory.
pub fn remove(name: &str) -> bool {
    matches!(shm_unlink(name), Ok(()) | Err(Errno::ENOENT))
}

fn is_gone(name: &str) -> bool {
    matches!(shm_open(name, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty()), Err(Errno::ENOENT))
}
