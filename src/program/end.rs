//! How a program ends: with an exit code, or with an error and exit code 1.

use std::io::Write;
use std::process::ExitCode;

use crate::segment::system;

/// The exit code of a program that does what `work` does; an error is told first.
pub(crate) fn end(work: impl FnOnce() -> Result<ExitCode, anyhow::Error>) -> ExitCode {
    // Whoever started the program may ignore that children end, and a program inherits that: then nobody could wait for one.
    system::be_told_of_children().map_err(anyhow::Error::from).and_then(|()| work()).unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// A line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
