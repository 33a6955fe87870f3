//! Answers on standard output.

use std::io::{ErrorKind, Write};

/// Print for people, or as JSON.
pub(crate) fn print(value: &(impl std::fmt::Display + serde::Serialize), json: bool) -> Result<(), anyhow::Error> {
    let text = if json { serde_json::to_string_pretty(value)? } else { value.to_string() };
    match std::io::stdout().write_all(format!("{}\n", text.trim_end()).as_bytes()) {
        // `inspect | head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
