//! The programs beside `shoal`: `supervisor`, and one for each of four commands. They know the algorithms and
//! environments of this library alone.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use super::end::{Code, end};
use super::training::{Begins, Train};
use super::{adopt, doctor, parse, resume};
use crate::catalogue::Catalogue;
use crate::machine::software::VERSION;
use crate::telemetry::Console;

/// Train an agent: a supervisor, its actors and learners, one shared-memory segment.
#[derive(Parser)]
#[command(version = VERSION, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct SupervisorProgram {
    #[command(flatten)]
    train: Train,
    #[command(subcommand)]
    command: Option<SupervisorCommand>,
}

#[derive(Subcommand)]
enum SupervisorCommand {
    Doctor(doctor::Doctor),
    Resume(resume::ResumeRun),
    Adopt(adopt::Adopt),
}

impl SupervisorProgram {
    fn run(&self) -> Result<Code, anyhow::Error> {
        match &self.command {
            Some(SupervisorCommand::Doctor(doctor)) => doctor.run(),
            Some(SupervisorCommand::Resume(resume)) => resume.run(&Catalogue::default()),
            Some(SupervisorCommand::Adopt(adopt)) => adopt.run(&Catalogue::default()),
            None => {
                let console = Console::stderr()?;
                self.train.check_said_once()?;
                self.train.run(self.train.load_file(Begins::Here)?, &[], &Catalogue::default(), console)
            }
        }
    }
}

// A program of one command. What the command does is said by the documentation of its arguments; a doc comment here
// would replace it in the help.
#[derive(Parser)]
#[command(version = VERSION)]
struct Alone<T: Args> {
    #[command(flatten)]
    command: T,
}

/// The program `supervisor`.
pub fn supervisor() -> ExitCode {
    end(|| parse::parse::<SupervisorProgram>(&parse::typed()).run()).into()
}

/// The program `attach`.
pub fn attach() -> ExitCode {
    end(|| Alone::<super::attach::Attach>::parse().command.run(&Catalogue::default())).into()
}

/// The program `inspect`.
pub fn inspect() -> ExitCode {
    end(|| Alone::<super::inspect::Inspect>::parse().command.run()).into()
}

/// The program `dashboard`.
pub fn dashboard() -> ExitCode {
    end(|| Alone::<super::dashboard::ShowDashboard>::parse().command.run()).into()
}

/// The program `evaluate`.
pub fn evaluate() -> ExitCode {
    end(|| Alone::<super::evaluate::Evaluate>::parse().command.run(&Catalogue::default())).into()
}
