//! `supervisor CONFIG`: plan a run, start its processes, watch over them until it ends. `supervisor doctor`: what the
//! machine offers.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shoal::telemetry::Console;

#[path = "command/doctor.rs"]
mod doctor;
#[path = "command/end.rs"]
mod end;
#[path = "command/parse.rs"]
mod parse;
#[path = "command/print.rs"]
mod print;
#[path = "command/train.rs"]
mod train;

/// Train an agent: a supervisor, its actors and learners, one shared-memory segment.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    #[command(flatten)]
    train: train::Train,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print what the machine offers, what is missing, and the commands that fix it.
    Doctor(doctor::Doctor),
}

fn run(arguments: &Arguments) -> Result<ExitCode, anyhow::Error> {
    if let Some(Command::Doctor(doctor)) = &arguments.command {
        return doctor.run();
    }
    let console = Console::stderr()?;
    arguments.train.run(arguments.train.load_file()?, console)
}

fn main() -> ExitCode {
    end::end(run(&parse::parse()))
}
