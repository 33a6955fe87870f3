//! `inspect`: this user's runs. `inspect PID`: a look into one of them, which does not disturb it.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use shoal::rendezvous::Registry;
use shoal::roles::inspector::{Cleaned, Ending, Inspection, RunList, watch};

/// List this user's runs, or look into one of them without disturbing it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Process id of the run's supervisor, as the list shows it; without it, all runs are listed.
    pid: Option<u32>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Remove what dead runs left: shared memory, sockets, records.
    #[arg(long, conflicts_with = "pid")]
    clean: bool,
    /// Show the transition in one slot of the replay.
    #[arg(long, value_name = "SLOT", requires = "pid")]
    transition: Option<usize>,
    /// Show the run full-screen, twice a second, until `q` is pressed.
    #[arg(long, requires = "pid", conflicts_with_all = ["json", "transition"])]
    live: bool,
    /// Milliseconds over which rates are measured.
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    interval_ms: u64,
}

fn run(arguments: &Arguments) -> Result<(), anyhow::Error> {
    let registry = Registry::open()?;
    let Some(pid) = arguments.pid else {
        return if arguments.clean {
            print(&Cleaned::sweep(&registry), arguments.json)
        } else {
            print(&RunList::of(&registry), arguments.json)
        };
    };
    let inspection = Inspection::open(&registry, pid)?;
    if arguments.live {
        if watch(&inspection)? == Ending::RunEnded {
            writeln!(std::io::stdout(), "the run of supervisor {pid} has ended")?;
        }
        return Ok(());
    }
    match arguments.transition {
        Some(slot) => print(&inspection.transition(slot)?, arguments.json),
        None => print(&inspection.report(Duration::from_millis(arguments.interval_ms)), arguments.json),
    }
}

fn print(value: &(impl std::fmt::Display + serde::Serialize), json: bool) -> Result<(), anyhow::Error> {
    let text = if json { format!("{}\n", serde_json::to_string_pretty(value)?) } else { value.to_string() };
    match std::io::stdout().write_all(text.as_bytes()) {
        // `inspect | head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
