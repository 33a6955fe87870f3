//! `/dev/shm`: how much it holds, and whether the kernel puts huge pages under it.

use std::path::Path;

use nix::sys::statvfs::statvfs;
use serde::Serialize;

use super::text_of;

/// The file system of POSIX shared memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free space.
    pub free_bytes: u64,
}

impl SharedMemory {
    /// A file system without a limit of its own, which takes whatever memory there is.
    pub const UNLIMITED: Self = Self { total_bytes: u64::MAX, free_bytes: u64::MAX };

    /// Asks the file system at `folder`; `None` if there is no such folder.
    pub fn detect(folder: &Path) -> Option<Self> {
        let answer = statvfs(folder).ok()?;
        // A `tmpfs` that was mounted with a size of 0 has no limit, and no blocks here.
        if answer.blocks() == 0 {
            return Some(Self::UNLIMITED);
        }
        let block_bytes = answer.fragment_size();
        Some(Self { total_bytes: answer.blocks() * block_bytes, free_bytes: answer.blocks_available() * block_bytes })
    }
}

/// When the kernel puts transparent huge pages under `/dev/shm`.
///
/// The option `huge=` of the mount decides, and its absence means never. The kernel's setting `shmem_enabled` is for
/// memory without a mount (`memfd_create`, shared anonymous pages); only its words `deny` and `force` overrule the
/// option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HugePages {
    /// Wherever they fit.
    Always,
    /// Where a program asks for them.
    OnRequest,
    /// Never, because the mount does not allow them.
    Never,
    /// Never, because the kernel's setting denies them to every mount.
    Denied,
    /// The kernel tells of none.
    Unsupported,
}

impl HugePages {
    /// Reads the kernel's setting and the mounts below `root`.
    pub fn detect_under(root: &Path) -> Self {
        Self::parse(&text_of(root, "sys/kernel/mm/transparent_hugepage/shmem_enabled"), &text_of(root, "proc/self/mountinfo"))
    }

    /// Reads the word in brackets of `always within_size advise [never] deny force`, and the option of the topmost
    /// mount on `/dev/shm`.
    fn parse(setting: &str, mounts: &str) -> Self {
        match setting.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word) {
            None => return HugePages::Unsupported,
            Some("deny") => return HugePages::Denied,
            Some("force") => return HugePages::Always,
            Some(_) => {}
        }
        let mount = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/dev/shm"));
        let options = mount.and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        match options.split(',').find_map(|option| option.strip_prefix("huge=")) {
            Some("always" | "within_size") => HugePages::Always,
            Some("advise") => HugePages::OnRequest,
            _ => HugePages::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684084k\n";
    const ADVISING: &str = "30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=65536k,huge=advise\n";

    #[test]
    fn the_topmost_mount_decides_about_huge_pages() {
        let setting = "always within_size advise [never] deny force\n";
        assert_eq!(HugePages::parse(setting, PLAIN), HugePages::Never);
        assert_eq!(HugePages::parse(setting, &format!("{PLAIN}{ADVISING}")), HugePages::OnRequest);
        assert_eq!(HugePages::parse(setting, &format!("{ADVISING}{PLAIN}")), HugePages::Never);
        assert_eq!(HugePages::parse(setting, &ADVISING.replace("advise", "within_size")), HugePages::Always);
    }

    #[test]
    fn the_kernel_overrules_the_mount_by_deny_and_force_alone() {
        assert_eq!(HugePages::parse("always within_size advise never [deny] force\n", ADVISING), HugePages::Denied);
        assert_eq!(HugePages::parse("always within_size advise never deny [force]\n", PLAIN), HugePages::Always);
        assert_eq!(HugePages::parse("[always] within_size advise never deny force\n", PLAIN), HugePages::Never);
        assert_eq!(HugePages::parse("", ADVISING), HugePages::Unsupported);
    }

    #[test]
    fn a_folder_has_no_more_free_space_than_space() {
        let folder = tempfile::tempdir().unwrap();
        let space = SharedMemory::detect(folder.path()).unwrap();
        assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0);
        assert_eq!(SharedMemory::detect(&folder.path().join("absent")), None);
    }

    #[test]
    fn a_file_system_that_knows_of_no_blocks_is_not_taken_for_a_full_one() {
        // The kernel's own has none.
        assert_eq!(SharedMemory::detect(Path::new("/proc")), Some(SharedMemory::UNLIMITED));
    }
}
