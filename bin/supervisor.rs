//! `supervisor CONFIG`: plan a run, start its processes, watch over them until it ends.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use shoal::config::Config;
use shoal::roles::supervisor::{Prepared, SupervisorError};
use shoal::telemetry::Console;

/// Train an agent: a supervisor, its actors and learners, one shared-memory segment.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration, for instance `configs/cartpole_dqn.toml`.
    config: PathBuf,
    /// Change a key, for instance `--set learner.batch_size=512`; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Plan only: check the configuration and the memory, print the plan, start nothing.
    #[arg(long)]
    check: bool,
}

fn run(arguments: &Arguments) -> Result<bool, anyhow::Error> {
    let console = Console::stderr()?;
    let loaded = Config::load(&arguments.config, &arguments.overrides).map_err(SupervisorError::Config)?;
    let prepared = Prepared::new(loaded)?;
    let plan = prepared.plan()?;
    if arguments.check {
        console.print(plan.to_string().trim_end());
        return Ok(true);
    }
    Ok(prepared.train(plan, console)?)
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
