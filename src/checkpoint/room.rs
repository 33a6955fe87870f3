//! How much room a disk has.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Bytes that the disk of `folder` still takes; `u64::MAX` if its file system does not know. Some file systems in
/// user space say that they have no blocks at all, and take what they are given.
///
/// # Errors
/// The folder does not exist, or the system does not say.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(if disk.blocks() == 0 { u64::MAX } else { disk.blocks_available() * disk.fragment_size() })
}

/// Whether a disk, or a quota on it, takes no more: for the latter [`free_bytes`] says nothing of it.
pub(super) fn is_lack_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn a_quota_is_a_lack_of_room_as_a_full_disk_is_and_a_broken_disk_is_none() {
        let lacks_room = |error: Errno| is_lack_of_room(&error.into());
        assert!(lacks_room(Errno::ENOSPC) && lacks_room(Errno::EDQUOT) && !lacks_room(Errno::EIO));
    }

    #[test]
    fn a_disk_that_knows_of_no_blocks_is_not_taken_for_a_full_one() {
        // The kernel's own file system has none.
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), u64::MAX);
        assert!(free_bytes(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap() < u64::MAX);
        assert!(free_bytes(Path::new("/nowhere")).is_err());
    }
}
