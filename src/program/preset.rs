//! Training as `shoal train` does: a file, a preset by its name or its environment, or any environment with an algorithm; once or with
//! several seeds.

use std::path::Path;

use anyhow::{anyhow, bail};
use clap::Args;

use super::end::Code;
use super::seeds::Seeds;
use super::train::{self, Train};
use crate::catalogue::Catalogue;
use crate::config::{Config, ConfigErrors, Loaded, Problem};
use crate::presets::{Listing, Preset};
use crate::roles::environments;
use crate::roles::supervisor::SupervisorError;
use crate::shell::word;
use crate::suggestion::{is_versioned, may_be_module, nearest_id};
use crate::telemetry::{Console, RunFolder};

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
        let (mut loaded, mut told) = self.load(catalogue)?;
        if self.seeds.are_asked_for() {
            self.seeds.check(&loaded)?;
            if !self.train.check {
                told.iter().for_each(|line| console.print(line));
                return self.seeds.run(loaded, &console);
            }
            told.push(self.seeds.begin_with_the_first(&mut loaded));
        }
        self.train.run(loaded, &told, catalogue, console)
    }

    /// The configuration in the file that was named, or else the preset of that name, or else the first of the environment of that name; and
    /// what is told with it.
    fn load(&self, catalogue: &Catalogue) -> Result<(Loaded, Vec<String>), anyhow::Error> {
        self.train.check_said_once(self.seeds.are_asked_for())?;
        let asked = self.train.asked().to_string_lossy();
        // Each of several seeds is a program of its own, which reads what this one writes.
        let begins_here = !self.seeds.are_asked_for() || self.train.check;
        // A folder may be called as a preset is: that of its results, for instance.
        if self.train.asked().exists() && !self.train.asked().is_dir() && !asked.ends_with(".py") {
            return Ok((self.train.load_file(begins_here)?, Vec::new()));
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
            return Ok((self.load_environment(&asked)?, Vec::new()));
        }
        // One that is made for the algorithm that was asked for goes first.
        presets.sort_by_key(|preset| algorithm.as_ref().is_some_and(|algorithm| *algorithm != preset.algorithm()));
        let [preset, others @ ..] = presets.as_slice() else {
            if self.train.asked().is_dir() {
                bail!(folder(self.train.asked()));
            }
            if asked.ends_with(".py") {
                let class = format!("python:{asked}:CLASS");
                return Err(anyhow!("to train in an environment of {asked}, write: shoal train {class} --set algorithm.name=ppo"));
            }
            let is_path = (asked.contains('/') && !is_versioned(&asked) && python_class(&asked).is_none()) || asked.ends_with(".toml");
            if is_path {
                return Ok((self.train.load_file(begins_here)?, Vec::new()));
            }
            bail!(unknown(&asked, algorithm.as_deref().unwrap_or("ppo"), catalogue));
        };
        let loaded = preset.load(&self.train.changes()).map_err(|errors| {
            let of_another = algorithm.as_deref().and_then(|algorithm| of_another_algorithm(preset, algorithm, &errors));
            of_another.map_or_else(|| SupervisorError::Config(errors).into(), anyhow::Error::msg)
        })?;
        if !self.seeds.are_asked_for() {
            // Where another build of this library begins anew, that one says what follows.
            train::check_is_built(&loaded)?;
        }
        let others: Vec<_> = others.iter().map(|other| other.name).collect();
        let rest = if others.is_empty() { String::new() } else { format!(" (the environment also has {})", others.join(" and ")) };
        let mut told = vec![format!("{:<11} {}{rest}", "preset", preset.name)];
        if preset.differs_from_file() {
            told.push(format!("{:<11} {} differs and is not read: give its path to use it", "note", preset.file()));
        }
        Ok((loaded, told))
    }

    /// A configuration of its own for the environment of that id, whose algorithm the changes name.
    fn load_environment(&self, id: &str) -> Result<Loaded, anyhow::Error> {
        // The run is named after it.
        let name = id.rsplit([':', '/']).next().unwrap_or(id);
        Ok(Config::of_argument(id, name, &self.train.changes()).map_err(SupervisorError::Config)?)
    }
}

/// `module:Class`, or `module:Registered-v0`, as the id of an environment, unless what stands before the colon is nearly a prefix.
fn python_class(asked: &str) -> Option<String> {
    let (module, class) = asked.split_once(':')?;
    let prefix = if is_versioned(class) { "gymnasium" } else { "python" };
    (may_be_module(module) && !class.contains(':')).then(|| format!("{prefix}:{asked}"))
}

/// What to train instead of a preset most of which has no effect on the `algorithm` that was asked for, if that is what is wrong with it.
fn of_another_algorithm(preset: &Preset, algorithm: &str, errors: &ConfigErrors) -> Option<String> {
    let is_in_vain = |problem: &Problem| matches!(problem, Problem::WithoutEffect { .. });
    let lines = errors.0.iter().filter(|error| !error.place.is_override() && is_in_vain(&error.problem)).count();
    let environment = preset.environment();
    let others = Preset::find(&environment);
    let instead = match others.iter().find(|other| other.algorithm() == algorithm) {
        Some(other) => other.name.to_owned(),
        None => format!("{environment} --set algorithm.name={algorithm}"),
    };
    (lines > 0).then(|| {
        let (name, own) = (preset.name, preset.algorithm());
        format!("the preset {name} is for {own}, and {lines} of its lines have no effect on {algorithm}; write: shoal train {instead}")
    })
}

/// What to do with a folder that is none of a preset's name.
fn folder(path: &Path) -> String {
    let typed = word(path);
    if RunFolder::open(path).is_err() {
        return format!("{typed} is a folder; name a file, a preset or an environment, such as CartPole-v1");
    }
    let config = word(&path.join("config.toml"));
    format!("{typed} is the folder of a run: `shoal resume {typed}` goes on with it, `shoal train {config}` begins another like it")
}

/// The game of the Atari 2600 that Gymnasium has, or once had, under this id.
fn game(id: &str) -> Option<String> {
    let name = match id.strip_prefix("ALE/") {
        Some(versioned) => versioned.rsplit_once("-v")?.0,
        None => id.split_once("NoFrameskip-v")?.0,
    };
    Some(format!("atari:{name}"))
}

/// The command that trains in the environment of that id.
fn command_for(id: &str, algorithm: &str) -> String {
    let choice = if Preset::find(id).is_empty() { format!(" --set algorithm.name={algorithm}") } else { String::new() };
    format!("shoal train {id}{choice}")
}

/// The same task as one of Gymnasium's, where that needs no Python here, with its presets.
fn without_python(id: &str) -> Option<String> {
    let native = environments::without_python(id)?;
    let presets: Vec<_> = Preset::find(native).iter().map(|preset| preset.name).collect();
    let having = if presets.is_empty() { String::new() } else { format!(" and has the presets {}", presets.join(", ")) };
    Some(format!("; {native}, the same task without Python, is stepped faster{having}"))
}

/// What to do about a name that is no file, no preset, and no environment of one.
fn unknown(asked: &str, algorithm: &str, catalogue: &Catalogue) -> String {
    if catalogue.environments().may_have(asked) {
        let faster = without_python(asked).unwrap_or_default();
        return format!("there is no preset for {asked}: say what learns it, for instance --set algorithm.name={algorithm}{faster}");
    }
    if let Some(id) = game(asked) {
        return format!("{asked} is {id} here; write: {}", command_for(&id, algorithm));
    }
    let listing = Listing::of_all();
    let of_presets = listing.presets.iter().flat_map(|preset| [preset.name, preset.environment.as_str()]);
    let near = nearest_id(asked, of_presets.chain(catalogue.environments().names())).map(str::to_owned);
    let meant = near.or_else(|| python_class(asked)).map(|name| format!("did you mean `{name}`? "));
    let of_gymnasium = || {
        let command = command_for(&format!("gymnasium:{asked}"), algorithm);
        (is_versioned(asked) && !asked.contains(':')).then(|| format!("if it is one of Gymnasium's, write: {command}; "))
    };
    let advice = meant.or_else(of_gymnasium).unwrap_or_default();
    format!("there is no file, no preset and no environment of a preset called {asked}: {advice}`shoal presets` lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gymnasium_calls_an_environment_leads_to_what_it_is_here() {
        for (asked, told) in [
            ("ALE/Pong-v5", "write: shoal train atari:Pong"),
            ("PongNoFrameskip-v4", "write: shoal train atari:Pong"),
            ("ALE/Breakout-v5", "write: shoal train atari:Breakout --set algorithm.name=dqn"),
            ("FrozenLake-v1", "write: shoal train gymnasium:FrozenLake-v1 --set algorithm.name=dqn;"),
            ("LunarLander-v2", "did you mean `gymnasium:LunarLander-v3`?"),
            ("tasks:Mine-v0", "did you mean `gymnasium:tasks:Mine-v0`?"),
            ("tasks:Mine", "did you mean `python:tasks:Mine`?"),
            ("Pendulum-v0", "did you mean `Pendulum-v1`?"),
            ("HalfCheetah-v4", "did you mean `mujoco:HalfCheetah-v5`?"),
            ("gymnasium:CartPole-v1", "; CartPole-v1, the same task without Python, is stepped faster and has the presets cartpole_dqn"),
            ("gymnasium:MountainCarContinuous-v0", "; MountainCarContinuous-v0, the same task without Python, is"),
        ] {
            let advice = unknown(asked, "dqn", &Catalogue::default());
            assert!(advice.contains(told), "{asked}: {advice}");
        }
        assert!(!unknown("Pong-game", "dqn", &Catalogue::default()).contains("Gymnasium"));
    }
}
