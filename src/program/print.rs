//! Prints answers on standard output.

use std::fs::File;
use std::io::{self, ErrorKind, Write};

use crate::readable::harmless;

/// Prints `value` for people, or as JSON.
pub(crate) fn print(value: &(impl std::fmt::Display + serde::Serialize), json: bool) -> Result<(), anyhow::Error> {
    write(&mut io::stdout(), value, json)
}

/// Prints `text`, which is the same for people and programs.
pub(crate) fn print_text(text: &str) -> Result<(), anyhow::Error> {
    write_text(&mut io::stdout(), text)
}

fn write(output: &mut impl Write, value: &(impl std::fmt::Display + serde::Serialize), json: bool) -> Result<(), anyhow::Error> {
    write_text(output, &if json { serde_json::to_string_pretty(value)? } else { harmless(&value.to_string()) })
}

fn write_text(output: &mut impl Write, text: &str) -> Result<(), anyhow::Error> {
    match output.write_all(format!("{}\n", text.trim_end()).as_bytes()) {
        // `inspect | head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// The standard output, kept for one answer. Whatever else this process prints meanwhile, as environments and the
/// modules that they import do at any time, goes to the standard error: it would confuse a program that reads the
/// answer.
pub(crate) struct KeptOutput(File);

impl KeptOutput {
    pub(crate) fn keep() -> io::Result<Self> {
        // Close-on-exec: a program that an environment starts would otherwise hold the output open, and whoever reads
        // the answer would wait for the end of that program.
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self(File::from(output)))
    }

    pub(crate) fn print(mut self, value: &(impl std::fmt::Display + serde::Serialize), json: bool) -> Result<(), anyhow::Error> {
        write(&mut self.0, value, json)
    }
}
