//! Playing a saved policy.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::print::print;
use crate::catalogue::Catalogue;
use crate::roles::player::{self, Which};

/// What to play, and for how long.
#[derive(Args)]
pub(crate) struct Evaluate {
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

impl Evaluate {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<ExitCode, anyhow::Error> {
        let which = match self.weights {
            Weights::Best => Which::Best,
            Weights::Last => Which::Last,
        };
        player::become_ready(&self.path)?;
        print(&player::play(catalogue, &self.path, which, self.episodes, self.seed)?, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}
