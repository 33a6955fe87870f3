//! `shoal completions`: the script with which a shell completes the command as it is typed.

use std::ffi::OsStr;
use std::path::Path;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::end::{Code, SUCCESS};
use super::print;

/// Print a script with which a shell completes this command: `source <(shoal completions bash)`.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script that completes the program `T`, which was called as `typed`.
    pub(crate) fn run<T: CommandFactory>(&self, typed: Option<&OsStr>) -> Result<Code, anyhow::Error> {
        let name = typed.and_then(|typed| Path::new(typed).file_name()).map_or_else(|| "shoal".into(), OsStr::to_string_lossy);
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut T::command(), name, &mut script);
        print::print_text(&String::from_utf8(script)?)?;
        Ok(SUCCESS)
    }
}
