//! `shoal train`: trains with a file, with a preset found by its name or its environment, or in any environment with
//! an algorithm; once, or with several seeds.

use std::path::Path;

use clap::Args;

use super::end::Code;
use super::seeds::Seeds;
use super::training::{self, Begins, Train};
use crate::catalogue::Catalogue;
use crate::config::{Config, ConfigErrors, Loaded, Problem};
use crate::environments::ids::{is_versioned, may_be_module, nearest_id};
use crate::presets::{Listing, Preset};
use crate::roles::configured_environment;
use crate::roles::supervisor::SupervisorError;
use crate::shell::word;
use crate::telemetry::{Console, RunFolder};

/// Train an agent, with a configuration file, a preset (`cartpole_dqn`), or the preset of an environment
/// (`CartPole-v1`).
#[derive(Args)]
pub(crate) struct TrainCommand {
    #[command(flatten)]
    train: Train,
    #[command(flatten)]
    seeds: Seeds,
}

/// What the argument of `shoal train` names.
enum Named {
    /// A configuration file.
    File,
    /// An environment, to be trained in with the defaults of the algorithm that a `--set` names.
    Environment,
    /// A preset, and the other presets of the environment if that was named.
    Preset { preset: &'static Preset, others: Vec<&'static Preset> },
}

impl TrainCommand {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        let console = Console::stderr()?;
        let (mut loaded, mut notes) = self.load(catalogue)?;
        if self.seeds.are_asked_for() {
            self.seeds.check(&loaded)?;
            if !self.train.check {
                notes.iter().for_each(|line| console.print(line));
                return self.seeds.run(loaded, &console);
            }
            notes.push(self.seeds.begin_with_the_first(&mut loaded));
        }
        self.train.run(loaded, &notes, catalogue, console)
    }

    /// The configuration that the argument names, and lines to print before the plan.
    fn load(&self, catalogue: &Catalogue) -> Result<(Loaded, Vec<String>), anyhow::Error> {
        if self.seeds.are_asked_for() {
            self.train.check_not_set("run.seed", "--seeds")?;
        }
        self.train.check_said_once()?;
        match self.named(catalogue)? {
            Named::File => Ok((self.train.load_file(self.begins())?, Vec::new())),
            Named::Environment => Ok((self.load_environment()?, Vec::new())),
            Named::Preset { preset, others } => self.load_preset(preset, &others),
        }
    }

    /// What the argument names: an existing file; else an environment for which no preset has the algorithm of
    /// `--set`; else a preset; else a file that is missing, if the argument looks like a path.
    fn named(&self, catalogue: &Catalogue) -> Result<Named, anyhow::Error> {
        let path = self.train.argument();
        let argument = path.to_string_lossy();
        // A folder may have the name of a preset: a folder of its results, for instance.
        let may_be_file = !path.is_dir() && !argument.ends_with(".py");
        if path.exists() && may_be_file {
            return Ok(Named::File);
        }
        let algorithm = self.algorithm();
        let is_wanted = |preset: &&Preset| algorithm.as_ref().is_none_or(|algorithm| preset.algorithm() == *algorithm);
        let mut presets = Preset::find(&argument);
        let wanted = presets.iter().position(is_wanted);
        // Most keys of a preset for another algorithm would have no effect.
        if algorithm.is_some() && wanted.is_none() && catalogue.environments().may_have(&argument) {
            return Ok(Named::Environment);
        }
        if !presets.is_empty() {
            let preset = presets.remove(wanted.unwrap_or(0));
            return Ok(Named::Preset { preset, others: presets });
        }
        let has_folder = argument.contains('/') && !is_versioned(&argument) && python_class(&argument).is_none();
        if may_be_file && (has_folder || argument.ends_with(".toml")) {
            return Ok(Named::File);
        }
        Err(nothing_of_that_name(path, algorithm.as_deref().unwrap_or("ppo"), catalogue))
    }

    /// The algorithm that the last `--set algorithm.name` names.
    fn algorithm(&self) -> Option<String> {
        self.train.changes().iter().rev().find_map(|change| {
            let (key, value) = change.split_once('=')?;
            (key.trim() == "algorithm.name").then(|| value.trim().replace(['"', '\''], ""))
        })
    }

    /// Each of several seeds is a program of its own, which reads the configuration that this one writes.
    fn begins(&self) -> Begins {
        if self.seeds.are_asked_for() && !self.train.check { Begins::Elsewhere } else { Begins::Here }
    }

    /// The configuration of `preset` with the changes, and notes on it; `others` are the environment's other presets.
    fn load_preset(&self, preset: &Preset, others: &[&Preset]) -> Result<(Loaded, Vec<String>), anyhow::Error> {
        let loaded = preset.load(&self.train.changes()).map_err(|errors| {
            let other_algorithm = self.algorithm().and_then(|algorithm| for_another_algorithm(preset, &algorithm, &errors));
            other_algorithm.map_or_else(|| SupervisorError::Config(errors).into(), anyhow::Error::msg)
        })?;
        if !self.seeds.are_asked_for() {
            // Before the notes: if another build of this library takes over, that build prints them.
            training::check_is_built(&loaded)?;
        }
        let others: Vec<_> = others.iter().map(|other| other.name).collect();
        let rest = if others.is_empty() { String::new() } else { format!(" (the environment also has {})", others.join(" and ")) };
        let mut notes = vec![format!("{:<11} {}{rest}", "preset", preset.name)];
        if preset.differs_from_file() {
            notes.push(format!("{:<11} {} differs and is not read: give its path to use it", "note", preset.file()));
        }
        Ok((loaded, notes))
    }

    /// The defaults for the environment that the argument names, with the changes, which name the algorithm.
    fn load_environment(&self) -> Result<Loaded, anyhow::Error> {
        let id = self.train.argument().to_string_lossy();
        let run_name = id.rsplit([':', '/']).next().unwrap_or(&id);
        Ok(Config::of_argument(&id, run_name, &self.train.changes()).map_err(SupervisorError::Config)?)
    }
}

/// The id of the environment that `module:Class` or `module:Registered-v0` means; `None` if the module looks like a
/// misspelt prefix.
fn python_class(asked: &str) -> Option<String> {
    let (module, class) = asked.split_once(':')?;
    let prefix = if is_versioned(class) { "gymnasium" } else { "python" };
    (may_be_module(module) && !class.contains(':')).then(|| format!("{prefix}:{asked}"))
}

/// What to train instead of `preset` with `algorithm`, if lines of the preset are refused because they have no effect
/// on that algorithm.
fn for_another_algorithm(preset: &Preset, algorithm: &str, errors: &ConfigErrors) -> Option<String> {
    let has_no_effect = |problem: &Problem| matches!(problem, Problem::WithoutEffect { .. });
    let lines = errors.0.iter().filter(|error| !error.place.is_override() && has_no_effect(&error.problem)).count();
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

/// The error about an argument that is no file, no preset, and no environment that a preset or a `--set` gives an
/// algorithm.
fn nothing_of_that_name(path: &Path, algorithm: &str, catalogue: &Catalogue) -> anyhow::Error {
    let argument = path.to_string_lossy();
    anyhow::Error::msg(if path.is_dir() {
        instead_of_folder(path)
    } else if argument.ends_with(".py") {
        let id = word(Path::new(&format!("python:{argument}:CLASS")));
        format!("to train in an environment of {argument}, write: shoal train {id} --set algorithm.name=ppo")
    } else {
        instead_of_unknown(&argument, algorithm, catalogue)
    })
}

/// What to name instead of a folder that is no preset.
fn instead_of_folder(path: &Path) -> String {
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

/// The command that trains in the environment `id`, with `algorithm` if no preset chooses one.
fn command_for(id: &str, algorithm: &str) -> String {
    let choice = if Preset::find(id).is_empty() { format!(" --set algorithm.name={algorithm}") } else { String::new() };
    format!("shoal train {id}{choice}")
}

/// Advice to train in the native environment of the same task as `id`, one of Gymnasium's, with its presets; `None`
/// if there is none.
fn without_python(id: &str) -> Option<String> {
    let native = configured_environment::without_python(id)?;
    let presets: Vec<_> = Preset::find(native).iter().map(|preset| preset.name).collect();
    let having = if presets.is_empty() { String::new() } else { format!(" and has the presets {}", presets.join(", ")) };
    Some(format!("; {native}, the same task without Python, is stepped faster{having}"))
}

/// What to name instead of `asked`, which is no file and no preset, and no environment of a preset.
fn instead_of_unknown(asked: &str, algorithm: &str, catalogue: &Catalogue) -> String {
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
            let advice = instead_of_unknown(asked, "dqn", &Catalogue::default());
            assert!(advice.contains(told), "{asked}: {advice}");
        }
        assert!(!instead_of_unknown("Pong-game", "dqn", &Catalogue::default()).contains("Gymnasium"));
    }

    #[test]
    fn the_command_for_a_file_of_environments_can_be_typed_whatever_the_file_is_called() {
        for (file, id) in [("tasks/reach.py", "python:tasks/reach.py:CLASS"), ("my tasks/reach.py", "'python:my tasks/reach.py:CLASS'")] {
            let advice = nothing_of_that_name(Path::new(file), "ppo", &Catalogue::default()).to_string();
            assert!(advice.contains(&format!("write: shoal train {id} --set")), "{advice}");
        }
    }
}
