//! This program, the kernel and libtorch, and how many files this process may open, and how large.

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::utsname::uname;
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use serde::Serialize;

use super::{Libtorch, text_of};

/// The version of this program. In a package it ends with the commit that the package was built from: `0.1.0+1072c259a1`.
/// Programs that differ in the commit alone may take part in the same run.
pub const VERSION: &str = match option_env!("SHOAL_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The kernel, libtorch, and the limits of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Software {
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub kernel: String,
    /// Why the kernel does not tell of the end of processes (`pidfd_open`); `None` if it does.
    pub pidfd_error: Option<String>,
    /// libtorch.
    pub libtorch: Libtorch,
    /// Files that a process may have open once it has raised its limit as far as it may.
    pub most_open_files: u64,
    /// The largest file that a process may write (`ulimit -f`). A block of shared memory is a file as well.
    pub largest_file_bytes: u64,
}

impl Software {
    /// Asks the kernel, and reads the files below `root`.
    pub fn detect_under(root: &Path) -> Self {
        let (_, most_open_files) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
        let (largest_file_bytes, _) = getrlimit(Resource::RLIMIT_FSIZE).unwrap_or((u64::MAX, u64::MAX));
        Self {
            // Not every `/proc` has a file that tells it.
            kernel: uname().map_or_else(|_| String::new(), |names| names.release().to_string_lossy().into_owned()),
            pidfd_error: pidfd_open(getpid(), PidfdFlags::empty()).err().map(|error| error.to_string()),
            libtorch: Libtorch::detect(&text_of(root, "proc/self/maps"), cfg!(libtorch_on_demand)),
            most_open_files,
            largest_file_bytes,
        }
    }

    /// The kernel's major and minor version; (0, 0) if its release says none.
    pub fn kernel_version(&self) -> (u32, u32) {
        let mut numbers = self.kernel.split(|letter: char| !letter.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn kernel_releases_begin_with_major_and_minor() {
        let mut software = Software::detect_under(fixture::root(&[]).path());
        assert!(software.kernel_version() > (0, 0), "it says so whatever files there are: {}", software.kernel);
        software.kernel = "6.18.44-fc-v669".into();
        assert_eq!(software.kernel_version(), (6, 18));
        software.kernel = String::new();
        assert_eq!(software.kernel_version(), (0, 0));
    }
}
