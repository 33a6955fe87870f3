//! `shoal`: everything that Shoal does, as one program.

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal::program::main(|_catalogue| Ok(()))
}
