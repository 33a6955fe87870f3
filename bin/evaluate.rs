//! `evaluate RUN`: play a saved policy for some episodes and say how well it did.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::evaluate()
}
