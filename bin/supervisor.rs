//! `supervisor CONFIG`: plan a run, start its processes, watch over them until it ends. `supervisor resume`, `adopt`:
//! go on with one. `supervisor doctor`: what the machine offers.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::supervisor()
}
