//! The one place where the commands speak to the person at the terminal.
//!
//! Everything goes to the error stream, so that the output stream belongs to the program that is started.

use std::fmt::Display;
use std::time::Duration;

#[expect(clippy::print_stderr, reason = "These commands exist to be read at a terminal.")]
pub(crate) fn say(line: impl Display) {
    eprintln!("{line}");
}

/// A duration as a person reads it: `0.4 s`, `48.0 s`, `7 min 19 s`.
pub(crate) fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1} s") } else { format!("{} min {:02} s", elapsed.as_secs() / 60, elapsed.as_secs() % 60) }
}
