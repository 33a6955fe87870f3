//! The interpreter that has loaded this library, if the library is part of the Python package and not of a program of
//! its own.

use std::path::PathBuf;
use std::sync::OnceLock;

/// An interpreter of Python, and how it was told to be the program `shoal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The interpreter: `sys.executable`.
    pub executable: PathBuf,
    /// The folder whose `lib` holds its standard library: `sys.base_prefix`.
    pub home: String,
    /// Major and minor version with the flags that change the binary interface, such as `3.11` or `3.13t`.
    pub abi: String,
    /// What was typed for the program: `shoal`, or `python -m shoal`.
    pub typed: String,
}

static HOST: OnceLock<Host> = OnceLock::new();

impl Host {
    /// The interpreter of this process; `None` in a program of its own.
    pub fn of_this_process() -> Option<&'static Self> {
        HOST.get()
    }

    /// Records that this process is an interpreter's. To be called once, before anything asks.
    pub fn settle(self) {
        let _ = HOST.set(self);
    }

    /// What starts the program of this process anew: an executable and its first arguments. An interpreter is started
    /// so that it does not look for modules in the working directory (`-P`), as the command `shoal` does not.
    ///
    /// # Errors
    /// The system does not say which file this program was started from.
    pub fn program() -> std::io::Result<(PathBuf, &'static [&'static str])> {
        Self::of_this_process().map_or_else(
            || Ok((std::env::current_exe()?, [].as_slice())),
            |host| Ok((host.executable.clone(), ["-P", "-m", "shoal"].as_slice())),
        )
    }
}
