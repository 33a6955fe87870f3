//! The programs beside `shoal`: `supervisor`, and one for each of four commands. They know the algorithms and
//! environments of this library alone.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::end::{Code, end};
use super::train::{Begins, Train};
use super::{adopt, doctor, parse, resume};
use crate::catalogue::Catalogue;
use crate::telemetry::Console;

/// Train an agent: a supervisor, its actors and learners, one shared-memory segment.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct SupervisorProgram {
    #[command(flatten)]
    train: Train,
    #[command(subcommand)]
    command: Option<SupervisorCommand>,
}

#[derive(Subcommand)]
enum SupervisorCommand {
    /// Print what the machine offers, what is missing, and the commands that fix it.
    Doctor(doctor::Doctor),
    /// Go on with a run that has ended or was killed, from its newest checkpoint.
    Resume(resume::ResumeRun),
    /// Go on with a run whose supervisor was killed, in the memory in which its sentinel keeps it
    /// (`machine.sentinel=keep`).
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

/// Join actors to a running supervisor. They leave at Ctrl+C, and when the run ends; killing them harms nothing.
#[derive(Parser)]
#[command(version)]
struct AttachProgram {
    #[command(flatten)]
    command: super::attach::Attach,
}

/// List this user's runs, or look into one of them without disturbing it.
#[derive(Parser)]
#[command(version)]
struct InspectProgram {
    #[command(flatten)]
    command: super::inspect::Inspect,
}

/// Show this user's runs in a browser, those under way and those that have ended, without disturbing any.
#[derive(Parser)]
#[command(version)]
struct DashboardProgram {
    #[command(flatten)]
    command: super::dashboard::ShowDashboard,
}

/// Play a saved policy as its run evaluated it, and print the mean return with its standard deviation and 95 %
/// confidence interval.
#[derive(Parser)]
#[command(version)]
struct EvaluateProgram {
    #[command(flatten)]
    command: super::evaluate::Evaluate,
}

/// The program `supervisor`.
pub fn supervisor() -> ExitCode {
    end(|| parse::parse::<SupervisorProgram>(&parse::typed()).run()).into()
}

/// The program `attach`.
pub fn attach() -> ExitCode {
    end(|| AttachProgram::parse().command.run(&Catalogue::default())).into()
}

/// The program `inspect`.
pub fn inspect() -> ExitCode {
    end(|| InspectProgram::parse().command.run()).into()
}

/// The program `dashboard`.
pub fn dashboard() -> ExitCode {
    end(|| DashboardProgram::parse().command.run()).into()
}

/// The program `evaluate`.
pub fn evaluate() -> ExitCode {
    end(|| EvaluateProgram::parse().command.run(&Catalogue::default())).into()
}
