//! `evaluate RUN`: play a saved policy for some episodes and say how well it did.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use shoal::roles::player::{self, Which};

/// Play a saved policy, greedily, and print the mean return with its standard deviation and 95 % confidence interval.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// A run folder (`runs/latest`) or a weights file.
    #[arg(default_value = "runs/latest")]
    path: PathBuf,
    /// Episodes to play.
    #[arg(long, default_value_t = 100)]
    episodes: usize,
    /// Seed of the environments.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which weights of a run folder; the last ones where there are no best ones.
    #[arg(long, value_enum, default_value_t = Weights::Best)]
    weights: Weights,
    /// As JSON, with every return.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Weights {
    Best,
    Last,
}

fn run(arguments: &Arguments) -> Result<(), anyhow::Error> {
    let which = match arguments.weights {
        Weights::Best => Which::Best,
        Weights::Last => Which::Last,
    };
    player::become_ready(&arguments.path)?;
    let outcome = player::play(&arguments.path, which, arguments.episodes, arguments.seed)?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcome)?)?;
    } else {
        writeln!(out, "{outcome}")?;
    }
    Ok(())
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
