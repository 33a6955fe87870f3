//! `shoal`: everything that Shoal does, as one program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shoal::presets::Listing;

#[path = "command/attach.rs"]
mod attach;
#[path = "command/doctor.rs"]
mod doctor;
#[path = "command/end.rs"]
mod end;
#[path = "command/evaluate.rs"]
mod evaluate;
#[path = "command/inspect.rs"]
mod inspect;
#[path = "command/parse.rs"]
mod parse;
#[path = "command/preset.rs"]
mod preset;
#[path = "command/print.rs"]
mod print;
#[path = "command/seeds.rs"]
mod seeds;
#[path = "command/train.rs"]
mod train;

/// Deep reinforcement learning that uses a whole Linux machine.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent, with a configuration file, a preset (`cartpole_dqn`), or the preset of an environment (`CartPole-v1`).
    Train(preset::TrainPreset),
    /// Join actors to a run. They leave at Ctrl+C, and when the run ends; killing them harms nothing.
    Attach(attach::Attach),
    /// List this user's runs, or look into one of them without disturbing it.
    Inspect(inspect::Inspect),
    /// Play a saved policy, greedily, and print the mean return with its standard deviation and 95 % confidence interval.
    Evaluate(evaluate::Evaluate),
    /// Print what the machine offers, what is missing, and the commands that fix it.
    Doctor(doctor::Doctor),
    /// List the presets: environment, algorithm, goal, and what was measured.
    Presets {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    end::end(match parse::parse::<Arguments>().command {
        Command::Train(command) => command.run(),
        Command::Attach(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Evaluate(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Presets { json } => print::print(&Listing::of_all(), json).map(|()| ExitCode::SUCCESS),
    })
}
