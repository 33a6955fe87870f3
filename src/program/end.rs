//! How a program ends and what it tells meanwhile.

use std::io::Write;

use crate::inspector::harmless;
use crate::segment::system;

/// Exit code of a program.
pub(crate) type Code = u8;
/// It did what it was asked for.
pub(crate) const SUCCESS: Code = 0;
/// It did not, and has said why.
pub(crate) const FAILURE: Code = 1;

/// The exit code of a program that does what `work` does; an error is told first.
pub(crate) fn end(work: impl FnOnce() -> Result<Code, anyhow::Error>) -> Code {
    // Whoever started the program may ignore that children end, and a program inherits that: then nobody could wait for one. A file that is
    // to grow beyond what `ulimit -f` says is an error, which has words, and no death.
    system::keep_ended_children()
        .and_then(|()| system::survive_file_size_limit())
        .map_err(anyhow::Error::from)
        .and_then(|()| work())
        .unwrap_or_else(|error| {
            // An error may quote what somebody else's run says of itself.
            say(&format!("error: {}", harmless(&told(&error))));
            FAILURE
        })
}

/// The error with its causes, without those that it has told itself.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !told.contains(&cause) {
            let colon = if told.is_empty() { "" } else { ": " };
            told.push_str(&format!("{colon}{cause}"));
        }
    }
    told
}

/// A line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_tells_itself_is_told_once() {
        let error = anyhow::anyhow!("the disk is full").context("cannot write a: the disk is full").context("no checkpoint");
        assert_eq!(told(&error), "no checkpoint: cannot write a: the disk is full");
    }
}
