//! `attach PID`, or its run folder: actors that join a running supervisor.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::attach()
}
