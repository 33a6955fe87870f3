//! Training with a preset that is named by itself or by its environment, once or with several seeds.

use std::process::ExitCode;

use clap::Args;

use super::seeds::Seeds;
use super::train::Train;
use crate::catalogue::Catalogue;
use crate::config::Loaded;
use crate::presets::Preset;
use crate::roles::supervisor::SupervisorError;
use crate::telemetry::Console;

/// What a run is made from, and with which seeds.
#[derive(Args)]
pub(crate) struct TrainPreset {
    #[command(flatten)]
    train: Train,
    #[command(flatten)]
    seeds: Seeds,
}

impl TrainPreset {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<ExitCode, anyhow::Error> {
        let console = Console::stderr()?;
        let loaded = self.load(&console)?;
        self.seeds.run(&self.train, &loaded).unwrap_or_else(|| self.train.run(loaded, catalogue, console))
    }

    /// The configuration in the file that was named, or else the preset of that name, or else the first of the environment of that name.
    fn load(&self, console: &Console) -> Result<Loaded, anyhow::Error> {
        let presets = Preset::find(&self.train.asked().to_string_lossy());
        let (false, [preset, others @ ..]) = (self.train.asked().exists(), presets.as_slice()) else { return self.train.load_file() };
        let others: Vec<_> = others.iter().map(|other| other.name).collect();
        let rest = if others.is_empty() { String::new() } else { format!(" (the environment also has {})", others.join(" and ")) };
        console.print(&format!("{:<11} {}{rest}", "preset", preset.name));
        Ok(preset.load(&self.train.changes()).map_err(SupervisorError::Config)?)
    }
}
