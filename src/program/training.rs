//! Trains: plans a run, starts its processes, and watches over them until it ends.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::end::{Code, SUCCESS};
use super::single_threaded;
use crate::catalogue::Catalogue;
use crate::config::{Config, Loaded};
use crate::machine::Host;
use crate::networks::{self, NetworkError};
use crate::presets::Preset;
use crate::roles::configured_environment;
use crate::roles::supervisor::{Prepared, Resumption, SupervisorError};
use crate::telemetry::Console;

/// Where a run with a loaded configuration is planned or trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// In this process.
    Here,
    /// In processes that this one starts, one for each seed.
    Elsewhere,
}

/// The arguments that say what to train.
#[derive(Args)]
pub(crate) struct Train {
    /// The configuration, for instance `configs/cartpole_dqn.toml`. `shoal train` also takes a preset
    /// (`cartpole_dqn`), an environment with a preset (`CartPole-v1`), and with `--set algorithm.name=sac` any
    /// environment.
    #[arg(required = true)]
    pub(crate) config: Option<PathBuf>,
    /// Change a key, for instance `--set learner.learning_rate=5e-4`; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seed of the run: the same as `--set run.seed=SEED`.
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Name of the run, which becomes a part of the name of its folder. Without it, the name of the configuration.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Plan only: check the configuration, the memory, the device, the environment and the run folder, print the
    /// plan, start nothing. With `run.resume=auto` a run that is kept in memory is written to the disk for that.
    #[arg(long)]
    pub(crate) check: bool,
}

impl Train {
    /// The argument that names the configuration.
    pub(crate) fn argument(&self) -> &Path {
        self.config.as_deref().expect("clap requires it without a subcommand")
    }

    /// The changes of keys, as `KEY=VALUE`: of `--set`, `--seed` and `--name`.
    pub(crate) fn changes(&self) -> Vec<String> {
        let name = self.name.iter().map(|name| format!("run.name={}", toml::Value::from(name.as_str())));
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        self.overrides.iter().cloned().chain(seed).chain(name).collect()
    }

    /// Refuses `--seed` and `--name` beside a `--set` of the same key, since one of the two would have no effect.
    pub(crate) fn check_said_once(&self) -> Result<(), anyhow::Error> {
        if self.seed.is_some() {
            self.check_not_set("run.seed", "--seed")?;
        }
        if self.name.is_some() {
            self.check_not_set("run.name", "--name")?;
        }
        Ok(())
    }

    /// Refuses a `--set` of `key`, which `option` sets already.
    pub(crate) fn check_not_set(&self, key: &str, option: &str) -> Result<(), anyhow::Error> {
        let sets_key = |change: &&String| change.split('=').next().is_some_and(|path| path.trim() == key);
        match self.overrides.iter().find(sets_key) {
            Some(change) => bail!("{option} and --set {change} both set {key}; give one of them"),
            None => Ok(()),
        }
    }

    /// The configuration in the file that the argument names, with the changes.
    pub(crate) fn load_file(&self, begins: Begins) -> Result<Loaded, anyhow::Error> {
        let path = self.argument();
        let argument = path.to_string_lossy();
        if let (false, [preset, ..]) = (path.exists(), Preset::find(&argument).as_slice()) {
            bail!("there is no file {argument}; its preset is {}, and `shoal train {argument}` finds it", preset.file());
        }
        let loaded = Config::load(path, &self.changes()).map_err(SupervisorError::Config)?;
        if begins == Begins::Here && !path.is_file() && begins_anew(&loaded) {
            bail!("{argument} can be read once, and what it asks for has this program begin anew; write it to a file, and name that");
        }
        Ok(loaded)
    }

    /// Trains as `loaded` says, or with `--check` only plans it; prints `notes` first.
    pub(crate) fn run(&self, loaded: Loaded, notes: &[String], catalogue: &Catalogue, console: Console) -> Result<Code, anyhow::Error> {
        start(loaded, notes, catalogue, console, self.check, None)
    }
}

/// In an interpreter, refuses an engine that this build lacks. The Python package has a second build, which has
/// libtorch; that build can then train from the beginning.
pub(super) fn check_is_built(loaded: &Loaded) -> Result<(), NetworkError> {
    if Host::of_this_process().is_none() {
        return Ok(());
    }
    let mut devices = loaded.config.learner.devices().into_iter().filter_map(|device| device.parse().ok());
    devices.try_for_each(|device| networks::check_is_built(loaded.config.network.engine, device))
}

/// Whether this program starts itself anew before it trains as `loaded` says: for Python, or as the build that has
/// libtorch.
fn begins_anew(loaded: &Loaded) -> bool {
    match Host::of_this_process() {
        None => configured_environment::request(&loaded.config).needs_python(),
        Some(_) => check_is_built(loaded).is_err(),
    }
}

/// Trains as `loaded` says, from the beginning or from where `resumption` goes on; with `only_check` only plans that
/// and prints the plan. Prints `notes` first.
pub(super) fn start(
    loaded: Loaded,
    notes: &[String],
    catalogue: &Catalogue,
    console: Console,
    only_check: bool,
    resumption: Option<Resumption>,
) -> Result<Code, anyhow::Error> {
    check_is_built(&loaded)?;
    Prepared::become_ready(&loaded)?;
    // Only now: in becoming ready the program may have started itself anew, which would print them twice.
    notes.iter().for_each(|line| console.print(line));
    let mut prepared = Prepared::new(loaded, catalogue)?;
    if let Some(warning) = single_threaded::warning() {
        console.print(&warning);
    }
    let mut resumption = match resumption {
        None => prepared.find_broken_run(&|text| console.print(text))?,
        named => named,
    };
    let mut plan = prepared.plan(resumption.as_ref())?;
    if let Some(resumption) = &mut resumption {
        prepared.check_resumption(&plan, resumption)?;
    }
    if only_check {
        prepared.check(&mut plan, resumption.as_ref())?;
        console.print(plan.to_string().trim_end());
        console.print("checked     the run can start like this; nothing was started");
        return Ok(SUCCESS);
    }
    Ok(prepared.train(plan, console, resumption)?.exit_code())
}
