//! `supervisor CONFIG`: plan a run, start its processes, watch over them until it ends. `supervisor doctor`: what the
//! machine offers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shoal::config::Config;
use shoal::machine::{Machine, PythonSurvey, doctor};
use shoal::roles::supervisor::{Prepared, SupervisorError};
use shoal::telemetry::Console;

/// Train an agent: a supervisor, its actors and learners, one shared-memory segment.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    /// The configuration, for instance `configs/cartpole_dqn.toml`.
    #[arg(required = true)]
    config: Option<PathBuf>,
    /// Change a key, for instance `--set learner.batch_size=512`; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Plan only: check the configuration and the memory, print the plan, start nothing.
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print what the machine offers, what is missing, and the commands that fix it.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

fn run(arguments: &Arguments) -> Result<u8, anyhow::Error> {
    if let Some(Command::Doctor { json }) = arguments.command {
        return Ok(u8::from(!examine(json)?));
    }
    let console = Console::stderr()?;
    let path = arguments.config.as_deref().expect("clap requires it without a subcommand");
    let loaded = Config::load(path, &arguments.overrides).map_err(SupervisorError::Config)?;
    Prepared::become_ready(&loaded)?;
    let prepared = Prepared::new(loaded)?;
    let plan = prepared.plan()?;
    if arguments.check {
        console.print(plan.to_string().trim_end());
        return Ok(0);
    }
    Ok(prepared.train(plan, console)?.exit_code())
}

fn examine(json: bool) -> Result<bool, anyhow::Error> {
    let findings = doctor::report(&Machine::detect(), &PythonSurvey::detect());
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&findings)?)?;
    } else {
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
    }
    Ok(findings.iter().all(|finding| finding.verdict != doctor::Verdict::Problem))
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
