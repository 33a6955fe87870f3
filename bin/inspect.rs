//! `inspect`: this user's runs. `inspect PID`, `inspect FOLDER`: a look into one of them, which does not disturb it.

use std::process::ExitCode;

use clap::Parser;

#[path = "command/end.rs"]
mod end;
#[path = "command/inspect.rs"]
mod inspect;
#[path = "command/print.rs"]
mod print;

/// List this user's runs, or look into one of them without disturbing it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    command: inspect::Inspect,
}

fn main() -> ExitCode {
    end::end(Arguments::parse().command.run())
}
