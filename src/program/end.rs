//! How a program ends: its exit code, and the error that it prints.

use std::io::Write;

use crate::readable::harmless;
use crate::segment::system;

/// Exit code of a program.
pub(crate) type Code = u8;
/// Success.
pub(crate) const SUCCESS: Code = 0;
/// Failure; the reason is on standard error.
pub(crate) const FAILURE: Code = 1;

/// The exit code of a program that does `work`; an error is printed first.
pub(crate) fn end(work: impl FnOnce() -> Result<Code, anyhow::Error>) -> Code {
    // A parent may have set SIGCHLD to be ignored, which a program inherits: then nobody could wait for a child. And
    // a file that would grow beyond `ulimit -f` shall be an error with a message, not the death of the process. And a
    // program shall stop when it is told to, also before a run handles its signals, and with commands that handle none.
    system::keep_ended_children()
        .and_then(|()| system::survive_file_size_limit())
        .and_then(|()| system::end_by_stop_signals())
        .map_err(anyhow::Error::from)
        .and_then(|()| work())
        .unwrap_or_else(|error| {
            // An error may quote what the run of another user says of itself.
            say(&format!("error: {}", harmless(&with_causes(&error))));
            FAILURE
        })
}

/// The message of `error`, followed by those of its causes that it does not contain already.
fn with_causes(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !message.contains(&cause) {
            let colon = if message.is_empty() { "" } else { ": " };
            message.push_str(&format!("{colon}{cause}"));
        }
    }
    message
}

/// Prints a line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_tells_itself_is_told_once() {
        let error = anyhow::anyhow!("the disk is full").context("cannot write a: the disk is full").context("no checkpoint");
        assert_eq!(with_causes(&error), "no checkpoint: cannot write a: the disk is full");
    }
}
