//! Training with a preset that is named by itself or by its environment, once or with several seeds.

use anyhow::anyhow;
use clap::Args;

use super::end::Code;
use super::seeds::Seeds;
use super::train::Train;
use crate::catalogue::Catalogue;
use crate::config::{Loaded, nearest};
use crate::environments::registry;
use crate::presets::{PRESETS, Preset};
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
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        let console = Console::stderr()?;
        let loaded = self.load(&console)?;
        self.seeds.run(&self.train, &loaded).unwrap_or_else(|| self.train.run(loaded, catalogue, console))
    }

    /// The configuration in the file that was named, or else the preset of that name, or else the first of the environment of that name.
    fn load(&self, console: &Console) -> Result<Loaded, anyhow::Error> {
        let asked = self.train.asked().to_string_lossy();
        if self.train.asked().exists() {
            return self.train.load_file();
        }
        let mut presets = Preset::find(&asked);
        let algorithm = self.train.changes().iter().rev().find_map(|change| Some(change.strip_prefix("algorithm.name=")?.replace('"', "")));
        // One that is made for the algorithm that was asked for goes first.
        presets.sort_by_key(|preset| algorithm.as_ref().is_some_and(|algorithm| *algorithm != preset.algorithm()));
        let [preset, others @ ..] = presets.as_slice() else {
            let is_path = asked.contains('/') || asked.ends_with(".toml");
            return if is_path { self.train.load_file() } else { Err(anyhow!(unknown(&asked))) };
        };
        let others: Vec<_> = others.iter().map(|other| other.name).collect();
        let rest = if others.is_empty() { String::new() } else { format!(" (the environment also has {})", others.join(" and ")) };
        console.print(&format!("{:<11} {}{rest}", "preset", preset.name));
        if preset.differs_from_file() {
            console.print(&format!("{:<11} {} differs and is not read: give its path to use it", "note", preset.file()));
        }
        Ok(preset.load(&self.train.changes()).map_err(SupervisorError::Config)?)
    }
}

/// What to do about a name that is no file, no preset, and no environment of one.
fn unknown(asked: &str) -> String {
    if registry::names().any(|name| name == asked) {
        return format!(
            "there is no preset for {asked}: write a file with environment.id = {asked:?} and algorithm.name, and give its path"
        );
    }
    let near = nearest(asked, PRESETS.iter().map(|preset| preset.name)).map(|name| format!("did you mean `{name}`? "));
    format!(
        "there is no file, no preset and no environment of a preset called {asked}: {}`shoal presets` lists them",
        near.unwrap_or_default()
    )
}
