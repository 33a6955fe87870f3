//! `attach PID`: actors that join a running supervisor.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use shoal::rendezvous::{Registry, RunRecord};
use shoal::roles::attached;
use shoal::segment::system;

/// Join actors to a running supervisor. They leave at Ctrl+C, and when the run ends; killing them harms nothing.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Process id of the supervisor; `inspect` lists those that run.
    #[arg(required_unless_present = "config")]
    pid: Option<u32>,
    /// The file that the supervisor wrote for its process id, instead of the id.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Actors to join.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    actors: u16,
}

fn pid_in(path: &Path) -> Result<u32, anyhow::Error> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let record: RunRecord = serde_json::from_str(&text).with_context(|| format!("{} is no record of a run", path.display()))?;
    Ok(record.identity.supervisor_pid)
}

fn run(arguments: &Arguments) -> Result<bool, anyhow::Error> {
    let pid = match (&arguments.config, arguments.pid) {
        (Some(path), _) => pid_in(path)?,
        (None, pid) => pid.expect("clap requires one of the two"),
    };
    let registry = Registry::open()?;
    // What is certain to fail is refused once, and not once per actor.
    attached::become_ready(&registry, pid)?;
    system::handle_stop_signals()?;
    let actor = || match attached::run(&registry, pid, |number| say(&format!("actor {number} has joined the run of supervisor {pid}"))) {
        Ok(()) => 0,
        Err(error) => {
            say(&format!("error: {error}"));
            1
        }
    };
    let children: Vec<_> = (0..arguments.actors).map(|_| system::fork_child(actor)).collect::<Result<_, _>>()?;
    Ok(system::wait_for_children(&children))
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
