//! The mapping itself: creation through the crate `shared_memory`, reservation of the pages, read-only opening.
//!
//! Invariant M (every SAFETY comment below and in `view` cites it): from construction to drop, `base` is the start of
//! `length_bytes` mapped bytes of one shared-memory object whose pages are reserved, aligned to a page; nobody in this
//! program forms a reference to them other than to atomics, and nobody shrinks the object.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{OFlag, posix_fallocate};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap, shm_open, shm_unlink};
use nix::sys::stat::{Mode, fstat};
use rustix::fs::{FlockOperation, flock};
use shared_memory::{Shmem, ShmemConf, ShmemError};

use super::SegmentError;
use crate::sync::{AtomicU32, AtomicU64};

pub(super) struct Mapping {
    base: NonNull<u8>,
    length_bytes: usize,
    name: String,
    keeper: Keeper,
    /// Holds the shared lock that says "some process of this run lives". Forked children inherit it; it ends when the
    /// last of them has closed the file.
    alive: Mutex<Option<File>>,
}

enum Keeper {
    /// The crate `shared_memory` unmaps it.
    Shared(Mutex<Box<Shmem>>),
    /// We unmap it.
    Own,
}

// SAFETY: invariant M: the mapped bytes are reached through atomics alone, by any thread as by any process, and stay
// mapped until drop. `Shmem`, which holds the same raw pointer and a file descriptor, is behind a lock.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that happens under these locks can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mapping {
    pub(super) fn create(name: &str, length_bytes: usize, huge_pages: bool) -> Result<Self, SegmentError> {
        let shared = ShmemConf::new().os_id(name).size(length_bytes).create().map_err(|error| match error {
            ShmemError::MapCreateFailed(code) | ShmemError::UnknownOsError(code)
                if Errno::from_raw(code.cast_signed()) == Errno::ENOMEM =>
            {
                SegmentError::NoRoom { needed_bytes: length_bytes, source: Errno::ENOMEM.into() }
            }
            ShmemError::MapCreateFailed(code) | ShmemError::UnknownOsError(code) => {
                SegmentError::Create { name: name.into(), reason: Errno::from_raw(code.cast_signed()).desc().into() }
            }
            other => SegmentError::Create { name: name.into(), reason: other.to_string() },
        })?;
        let mapping = Self::of_shared(shared, name)?;
        if huge_pages {
            // A wish: where the kernel's `shmem_enabled` is `never` this changes nothing and may fail.
            // SAFETY: invariant M; the advice changes how pages are backed, not what they hold.
            let _ = unsafe { madvise(mapping.base.cast(), mapping.length_bytes, MmapAdvise::MADV_HUGEPAGE) };
        }
        mapping.reserve()?;
        Ok(mapping)
    }

    /// Memory of this process alone, on huge pages where the kernel has them. Its pages come when they are written first.
    pub(super) fn private(length_bytes: usize) -> Result<Self, SegmentError> {
        let no_room = |error: Errno| SegmentError::NoRoom { needed_bytes: length_bytes, source: error.into() };
        let length = NonZeroUsize::new(length_bytes).ok_or_else(|| no_room(Errno::EINVAL))?;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; it establishes invariant M, with
        // this process in place of the object: pages that cannot be had are refused here by the kernel's accounting.
        let base = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE) };
        let base = base.map_err(no_room)?;
        // SAFETY: invariant M; the advice changes how pages are backed, not what they hold.
        let _ = unsafe { madvise(base, length_bytes, MmapAdvise::MADV_HUGEPAGE) };
        Ok(Self { base: base.cast(), length_bytes, name: String::new(), keeper: Keeper::Own, alive: Mutex::new(None) })
    }

    pub(super) fn open(name: &str) -> Result<Self, SegmentError> {
        let shared =
            ShmemConf::new().os_id(name).open().map_err(|error| SegmentError::Open { name: name.into(), reason: error.to_string() })?;
        Self::of_shared(shared, name)
    }

    pub(super) fn open_read_only(name: &str) -> Result<Self, SegmentError> {
        let refuse = |reason: &str| SegmentError::Open { name: name.into(), reason: reason.into() };
        let object = shm_open(name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(|error| refuse(error.desc()))?;
        let length_bytes = fstat(object.as_fd()).map_err(|error| refuse(error.desc()))?.st_size;
        let length = usize::try_from(length_bytes).ok().and_then(NonZeroUsize::new).ok_or_else(|| refuse("it is empty"))?;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; it establishes invariant M for
        // readers (a hostile peer that shrinks the object could still raise SIGBUS here, as with any file).
        let base =
            unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &object, 0) }.map_err(|error| refuse(error.desc()))?;
        Ok(Self { base: base.cast(), length_bytes: length.get(), name: name.into(), keeper: Keeper::Own, alive: Mutex::new(None) })
    }

    fn of_shared(mut shared: Shmem, name: &str) -> Result<Self, SegmentError> {
        let owner = shared.is_owner();
        let base = NonNull::new(shared.as_ptr())
            .ok_or_else(|| SegmentError::Open { name: name.into(), reason: "it was mapped at address zero".into() })?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(object_path(name))
            .map_err(|source| SegmentError::System { action: "opening the shared-memory object for its lock", source })?;
        let removed = || SegmentError::Open { name: name.into(), reason: "whoever used it last has removed it".into() };
        flock(&file, FlockOperation::NonBlockingLockShared).map_err(|error| match error {
            // Only who is about to remove it locks it exclusively.
            rustix::io::Errno::WOULDBLOCK => removed(),
            _ => SegmentError::System { action: "locking the shared-memory object", source: error.into() },
        })?;
        // It may have been removed between opening and locking. From here on nobody removes it: that takes this lock.
        if fstat(file.as_fd())
            .map_err(|error| SegmentError::System { action: "looking at the shared-memory object", source: error.into() })?
            .st_nlink
            == 0
        {
            return Err(removed());
        }
        shared.set_owner(owner);
        Ok(Self {
            base,
            length_bytes: shared.len(),
            name: name.into(),
            keeper: Keeper::Shared(Mutex::new(Box::new(shared))),
            alive: Mutex::new(Some(file)),
        })
    }

    /// Make the kernel back every page now. `ftruncate`, which the crate calls, promises pages it may not have.
    fn reserve(&self) -> Result<(), SegmentError> {
        let alive = locked(&self.alive);
        let Some(file) = &*alive else { return Ok(()) };
        let length = i64::try_from(self.length_bytes).unwrap_or(i64::MAX);
        loop {
            match posix_fallocate(file.as_fd(), 0, length) {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(SegmentError::NoRoom { needed_bytes: self.length_bytes, source: error.into() }),
            }
        }
    }

    pub(super) fn disown(&self) {
        if let Keeper::Shared(shared) = &self.keeper {
            locked(shared).set_owner(false);
        }
    }

    /// Close this process's hold on the lock, without releasing it for the others.
    pub(super) fn forget_lock(&self) {
        locked(&self.alive).take();
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// `count` 64-bit words from `offset_bytes`. Panics when they do not lie inside the mapping: offsets are
    /// validated with the header, so that would be a bug.
    pub(super) fn words(&self, offset_bytes: usize, count: usize) -> &[AtomicU64] {
        self.check(offset_bytes, count, 8);
        // SAFETY: `check` keeps the range inside the mapping and aligned; by invariant M the bytes stay mapped for the
        // lifetime of `self` and are only ever reached through atomics, for which every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(self.base.add(offset_bytes).cast::<AtomicU64>().as_ptr(), count) }
    }

    /// `count` 32-bit words from `offset_bytes`. A byte is either reached as part of a 64-bit word or of a 32-bit
    /// word, never as both: only the futex words of the control region are 32-bit.
    pub(super) fn half_words(&self, offset_bytes: usize, count: usize) -> &[AtomicU32] {
        self.check(offset_bytes, count, 4);
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(self.base.add(offset_bytes).cast::<AtomicU32>().as_ptr(), count) }
    }

    fn check(&self, offset_bytes: usize, count: usize, size_bytes: usize) {
        let end = count.checked_mul(size_bytes).and_then(|length| length.checked_add(offset_bytes));
        assert!(
            offset_bytes.is_multiple_of(size_bytes) && end.is_some_and(|end| end <= self.length_bytes),
            "{count} words of {size_bytes} bytes at offset {offset_bytes} do not lie in a segment of {} bytes",
            self.length_bytes
        );
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if matches!(self.keeper, Keeper::Own) {
            // SAFETY: `open_read_only` or `private` made this mapping with this length; no view outlives `self` (they borrow it).
            let _ = unsafe { munmap(self.base.cast(), self.length_bytes) };
        }
    }
}

/// Path under which the kernel shows a shared-memory object.
pub(super) fn object_path(name: &str) -> PathBuf {
    PathBuf::from("/dev/shm").join(name.trim_start_matches('/'))
}

/// Remove the object `name` unless a process of its run still lives. Returns whether it is gone.
pub fn remove_if_dead(name: &str) -> bool {
    let file = match File::options().read(true).write(true).open(object_path(name)) {
        Ok(file) => file,
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && remove(name)
}

/// Remove the object `name`. Returns whether it is gone; processes that have mapped it keep their memory.
pub fn remove(name: &str) -> bool {
    matches!(shm_unlink(name), Ok(()) | Err(Errno::ENOENT))
}
