//! The mapping itself: creation through the crate `shared_memory`, reservation of the pages, mapping of what others
//! made.
//!
//! Invariant M (the SAFETY comments below cite it): from construction to drop, `base` is the start of
//! `length_bytes` mapped bytes of one shared-memory object whose pages are reserved, aligned to a page; nobody in this
//! program forms a reference to them other than to atomics, and nobody shrinks the object. In a mapping for looking
//! alone nobody stores. There std promises only Relaxed loads; the stronger ones that readers use are, for words of up
//! to 8 bytes, single load instructions on the processors named below.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use shared_memory::{Shmem, ShmemConf, ShmemError};

use super::SegmentError;
use super::object::{Access, Object, remove};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "processes that only look load with Acquire and SeqCst from pages that they cannot write, which is known to be sound on x86-64 and \
     64-bit Arm alone: see what these loads are on this processor, and name it here (src/segment/mapping.rs)"
);

/// Bytes that are reserved at once after a signal has interrupted a larger reservation: a tenth of a millisecond's
/// work.
const PIECE_BYTES: i64 = 256 << 10;

pub(super) struct Mapping {
    base: NonNull<u8>,
    length_bytes: usize,
    name: String,
    backing: Backing,
    /// Holds the shared lock that says "some process of this run lives". Forked children inherit the lock; it ends
    /// when the last of them has closed this file, which is not the mapped one: a mapping keeps its file open.
    alive: Mutex<Option<File>>,
}

/// What unmaps the memory, and removes the object's name if this process owns it.
enum Backing {
    /// The crate `shared_memory`.
    Crate(Mutex<Box<Shmem>>),
    /// The drop of the mapping.
    Own { removes_name: AtomicBool },
}

impl Backing {
    fn own() -> Self {
        Self::Own { removes_name: AtomicBool::new(false) }
    }
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
            mapping.wish_for_huge_pages();
        }
        mapping.reserve()?;
        Ok(mapping)
    }

    /// Memory of this process alone, on huge pages where the kernel has them. Its pages come when they are written
    /// first.
    pub(super) fn private(length_bytes: usize) -> Result<Self, SegmentError> {
        let no_memory = |error: Errno| SegmentError::NoMemory { needed_bytes: length_bytes, source: error.into() };
        let length = NonZeroUsize::new(length_bytes).ok_or_else(|| no_memory(Errno::EINVAL))?;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; it establishes invariant M,
        // with memory of this process in place of the object. Its pages are not reserved: one that cannot be had ends
        // the process, as with any other memory of it.
        let base = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE) };
        let base = base.map_err(no_memory)?;
        // SAFETY: invariant M; the advice changes how pages are backed, not what they hold.
        let _ = unsafe { madvise(base, length_bytes, MmapAdvise::MADV_HUGEPAGE) };
        Ok(Self { base: base.cast(), length_bytes, name: String::new(), backing: Backing::own(), alive: Mutex::new(None) })
    }

    /// Map an object whose header has been found whole.
    pub(super) fn of(object: &Object, access: Access, lock: Option<File>) -> Result<Self, SegmentError> {
        let length_bytes = object.length_bytes();
        let empty = || SegmentError::Open { name: object.name().into(), reason: "it is empty".into() };
        let length = NonZeroUsize::new(length_bytes).ok_or_else(empty)?;
        let protection = match access {
            Access::ReadWrite => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            Access::ReadOnly => ProtFlags::PROT_READ,
        };
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; it establishes invariant M (a
        // process of the same user that shrinks the object later could still raise SIGBUS here, as with any file).
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, object.file(), 0) };
        let base = base.map_err(|error| match error {
            Errno::ENOMEM => SegmentError::NoRoom { needed_bytes: length_bytes, source: error.into() },
            error => SegmentError::Refused { name: object.name().into(), action: "mapping", source: error.into() },
        })?;
        Ok(Self { base: base.cast(), length_bytes, name: object.name().into(), backing: Backing::own(), alive: Mutex::new(lock) })
    }

    fn of_shared(shared: Shmem, name: &str) -> Result<Self, SegmentError> {
        let base = NonNull::new(shared.as_ptr())
            .ok_or_else(|| SegmentError::Open { name: name.into(), reason: "it was mapped at address zero".into() })?;
        Ok(Self {
            base,
            length_bytes: shared.len(),
            name: name.into(),
            backing: Backing::Crate(Mutex::new(Box::new(shared))),
            alive: Mutex::new(Some(Object::join(name)?)),
        })
    }

    /// Make the kernel back every page now. `ftruncate`, which the crate calls, promises pages it may not have.
    fn reserve(&self) -> Result<(), SegmentError> {
        let alive = locked(&self.alive);
        let Some(file) = &*alive else { return Ok(()) };
        let length = i64::try_from(self.length_bytes).unwrap_or(i64::MAX);
        // All at once first: a size that can never fit is refused before anything is taken. Older kernels end the
        // call at any signal and take back what it has reserved, so a process with a timer would begin again for
        // ever. What earlier calls have reserved stays: smaller pieces come to an end.
        let mut reserved = 0;
        let mut most = length;
        while reserved < length {
            let piece = most.min(length - reserved);
            match posix_fallocate(file.as_fd(), reserved, piece) {
                Ok(()) => reserved += piece,
                Err(Errno::EINTR) => most = PIECE_BYTES,
                Err(error) => return Err(SegmentError::NoRoom { needed_bytes: self.length_bytes, source: error.into() }),
            }
        }
        Ok(())
    }

    /// Ask for huge pages. Only a wish: if the kernel's `shmem_enabled` is `never`, this changes nothing and may fail.
    pub(super) fn wish_for_huge_pages(&self) {
        // SAFETY: invariant M; the advice changes how pages are backed, not what they hold.
        let _ = unsafe { madvise(self.base.cast(), self.length_bytes, MmapAdvise::MADV_HUGEPAGE) };
    }

    fn set_owner(&self, is_owner: bool) {
        match &self.backing {
            Backing::Crate(shared) => _ = locked(shared).set_owner(is_owner),
            // Relaxed: this process alone knows of it.
            Backing::Own { removes_name } => removes_name.store(is_owner, Ordering::Relaxed),
        }
    }

    /// Remove the name when this is dropped.
    pub(super) fn own(&self) {
        self.set_owner(true);
    }

    /// Leave the name alone when this is dropped.
    pub(super) fn disown(&self) {
        self.set_owner(false);
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

    /// `count` 64-bit words from `offset_bytes` on.
    ///
    /// # Panics
    /// If they do not lie inside the mapping: offsets are validated with the header, so that would be a bug.
    pub(super) fn words(&self, offset_bytes: usize, count: usize) -> &[AtomicU64] {
        self.check(offset_bytes, count, 8);
        // SAFETY: `check` keeps the range inside the mapping and aligned; by invariant M the bytes stay mapped for the
        // lifetime of `self` and are only ever reached through atomics, for which every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(self.base.add(offset_bytes).cast::<AtomicU64>().as_ptr(), count) }
    }

    /// `count` 32-bit words from `offset_bytes` on. A byte is accessed either as part of a 64-bit word or of a 32-bit
    /// word, never as both: only the futex words of the control region are 32-bit.
    ///
    /// # Panics
    /// As [`Self::words`].
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
        if let Backing::Own { removes_name } = &self.backing {
            // SAFETY: `of` or `private` made this mapping with this length; no view outlives `self` (they borrow it).
            let _ = unsafe { munmap(self.base.cast(), self.length_bytes) };
            if removes_name.load(Ordering::Relaxed) {
                remove(&self.name);
            }
        }
    }
}
