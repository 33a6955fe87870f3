//! How a program ends: with an exit code, or with an error and exit code 1.

use std::io::Write;
use std::process::ExitCode;

/// The exit code of a program that came to `result`; an error is told first.
pub(crate) fn end(result: Result<ExitCode, anyhow::Error>) -> ExitCode {
    result.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// A line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
