//! Training as `shoal train` does: a file, a preset by its name or its environment, or any environment with an algorithm; once or with
//! several seeds.

use anyhow::anyhow;
use clap::Args;

use super::end::Code;
use super::seeds::Seeds;
use super::train::{self, Train};
use crate::catalogue::Catalogue;
use crate::config::{Config, Loaded};
use crate::presets::{PRESETS, Preset};
use crate::roles::supervisor::SupervisorError;
use crate::suggestion::{nearest, nearest_id};
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
        let loaded = self.load(&console, catalogue)?;
        self.seeds.run(&self.train, &loaded).unwrap_or_else(|| self.train.run(loaded, catalogue, console))
    }

    /// The configuration in the file that was named, or else the preset of that name, or else the first of the environment of that name.
    fn load(&self, console: &Console, catalogue: &Catalogue) -> Result<Loaded, anyhow::Error> {
        let asked = self.train.asked().to_string_lossy();
        // A folder may be called as a preset is: that of its results, for instance.
        if self.train.asked().exists() && !self.train.asked().is_dir() && !asked.ends_with(".py") {
            return self.train.load_file();
        }
        let mut presets = Preset::find(&asked);
        let named = |change: &str| {
            let (key, value) = change.split_once('=')?;
            (key.trim() == "algorithm.name").then(|| value.trim().replace(['"', '\''], ""))
        };
        let algorithm = self.train.changes().iter().rev().find_map(|change| named(change));
        if let Some(algorithm) = &algorithm
            && catalogue.environments().may_have(&asked)
            && presets.iter().all(|preset| preset.algorithm() != *algorithm)
        {
            // Of another algorithm's preset, most keys would have no effect.
            return self.load_environment(&asked);
        }
        // One that is made for the algorithm that was asked for goes first.
        presets.sort_by_key(|preset| algorithm.as_ref().is_some_and(|algorithm| *algorithm != preset.algorithm()));
        let [preset, others @ ..] = presets.as_slice() else {
            if asked.ends_with(".py") {
                let class = format!("python:{asked}:CLASS");
                return Err(anyhow!("to train in an environment of {asked}, write: shoal train {class} --set algorithm.name=ppo"));
            }
            let is_path = asked.contains('/') || asked.ends_with(".toml");
            return if is_path { self.train.load_file() } else { Err(anyhow!(unknown(&asked, catalogue))) };
        };
        let loaded = preset.load(&self.train.changes()).map_err(SupervisorError::Config)?;
        if !self.seeds.are_asked_for() {
            // Where another build of this library begins anew, that one says what follows.
            train::check_is_built(&loaded)?;
        }
        let others: Vec<_> = others.iter().map(|other| other.name).collect();
        let rest = if others.is_empty() { String::new() } else { format!(" (the environment also has {})", others.join(" and ")) };
        console.print(&format!("{:<11} {}{rest}", "preset", preset.name));
        if preset.differs_from_file() {
            console.print(&format!("{:<11} {} differs and is not read: give its path to use it", "note", preset.file()));
        }
        Ok(loaded)
    }

    /// A configuration of its own for the environment of that id, whose algorithm the changes name.
    fn load_environment(&self, id: &str) -> Result<Loaded, anyhow::Error> {
        // As a change: there is no file that errors could point into.
        let mut changes = vec![format!("environment.id={}", toml::Value::from(id))];
        changes.extend(self.train.changes());
        // The run is named after it.
        let name = id.rsplit([':', '/']).next().unwrap_or(id);
        Ok(Config::parse("", name, &changes).map_err(SupervisorError::Config)?)
    }
}

/// `module:Class` as the id of an environment, unless what stands before the colon is nearly a prefix.
fn python_class(asked: &str) -> Option<String> {
    let (module, class) = asked.split_once(':')?;
    let is_prefix = nearest(module, ["atari", "gym", "gymnasium", "mujoco", "python"]).is_some();
    (!is_prefix && !class.contains(':')).then(|| format!("python:{asked}"))
}

/// What to do about a name that is no file, no preset, and no environment of one.
fn unknown(asked: &str, catalogue: &Catalogue) -> String {
    if catalogue.environments().may_have(asked) {
        return format!("there is no preset for {asked}: say what learns it, for instance --set algorithm.name=ppo");
    }
    let known = PRESETS.iter().map(|preset| preset.name).chain(catalogue.environments().names());
    let near = nearest_id(asked, known).map(str::to_owned);
    let meant = near.or_else(|| python_class(asked)).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
    format!("there is no file, no preset and no environment of a preset called {asked}: {meant}`shoal presets` lists them")
}
