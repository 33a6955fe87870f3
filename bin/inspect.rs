//! `inspect`: this user's runs. `inspect PID`, `inspect FOLDER`: a look into one of them, which does not disturb it.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::inspect()
}
