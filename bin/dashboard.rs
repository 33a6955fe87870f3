//! `dashboard [PID | FOLDER]`: a page in a browser that shows runs while they go on and after they have ended.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::dashboard()
}
