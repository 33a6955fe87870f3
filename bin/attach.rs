//! `attach PID`: actors that join a running supervisor.

use std::process::ExitCode;

use clap::Parser;

#[path = "command/attach.rs"]
mod attach;
#[path = "command/end.rs"]
mod end;

/// Join actors to a running supervisor. They leave at Ctrl+C, and when the run ends; killing them harms nothing.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    command: attach::Attach,
}

fn main() -> ExitCode {
    end::end(Arguments::parse().command.run())
}
