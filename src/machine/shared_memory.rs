//! `/dev/shm`: how much it holds, and whether the kernel puts huge pages under it.

use std::path::Path;

use nix::sys::statvfs::statvfs;
use serde::Serialize;

use super::text_of;

/// The file system of POSIX shared memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    /// Its size.
    pub total_bytes: u64,
    /// What is free.
    pub free_bytes: u64,
}

impl SharedMemory {
    /// Asks the file system at `folder`; `None` if there is no such folder.
    pub fn detect(folder: &Path) -> Option<Self> {
        let answer = statvfs(folder).ok()?;
        let block_bytes = answer.fragment_size();
        Some(Self { total_bytes: answer.blocks() * block_bytes, free_bytes: answer.blocks_available() * block_bytes })
    }
}

/// When the kernel puts transparent huge pages under shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HugePages {
    /// Wherever they fit.
    Always,
    /// Where a program asks for them.
    OnRequest,
    /// Never.
    Never,
    /// This kernel has none.
    Unsupported,
}

impl HugePages {
    /// Reads the kernel's setting below `root`.
    pub fn detect_under(root: &Path) -> Self {
        Self::parse(&text_of(root, "sys/kernel/mm/transparent_hugepage/shmem_enabled"))
    }

    /// Reads the word in brackets of `always within_size advise [never] deny force`.
    fn parse(setting: &str) -> Self {
        let chosen = setting.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
        match chosen {
            Some("always" | "within_size" | "force") => HugePages::Always,
            Some("advise") => HugePages::OnRequest,
            Some(_) => HugePages::Never,
            None => HugePages::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_in_brackets_counts() {
        assert_eq!(HugePages::parse("always within_size advise [never] deny force\n"), HugePages::Never);
        assert_eq!(HugePages::parse("always within_size [advise] never deny force\n"), HugePages::OnRequest);
        assert_eq!(HugePages::parse("always [within_size] advise never deny force\n"), HugePages::Always);
        assert_eq!(HugePages::parse(""), HugePages::Unsupported);
    }

    #[test]
    fn a_folder_has_no_more_free_space_than_space() {
        let folder = tempfile::tempdir().unwrap();
        let space = SharedMemory::detect(folder.path()).unwrap();
        assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0);
        assert_eq!(SharedMemory::detect(&folder.path().join("absent")), None);
    }
}
