//! Training: plan a run, start its processes, watch over them until it ends.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::end::{Code, SUCCESS};
use crate::catalogue::Catalogue;
use crate::config::{Config, Loaded};
use crate::machine::Host;
use crate::networks::{self, NetworkError};
use crate::presets::Preset;
use crate::roles::environments;
use crate::roles::supervisor::{Prepared, Resumption, SupervisorError};
use crate::telemetry::Console;

/// What a run is made from.
#[derive(Args)]
pub(crate) struct Train {
    /// The configuration, for instance `configs/cartpole_dqn.toml`. `shoal train` also takes a preset (`cartpole_dqn`) and an
    /// environment: that of a preset (`CartPole-v1`), or any with `--set algorithm.name=sac`.
    #[arg(required = true)]
    pub(crate) config: Option<PathBuf>,
    /// Change a key, for instance `--set learner.learning_rate=5e-4`; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seed of the run: the same as `--set run.seed=SEED`.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Name of the run, which the name of its folder has in it; without it, that of the configuration.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Plan only: check the configuration, the memory, the device, the environment and the run folder, print the plan, start nothing.
    #[arg(long)]
    pub(crate) check: bool,
}

impl Train {
    /// What was named.
    pub(crate) fn asked(&self) -> &Path {
        self.config.as_deref().expect("clap requires it without a subcommand")
    }

    /// The changes that were asked for, as `KEY=VALUE`.
    pub(crate) fn changes(&self) -> Vec<String> {
        let name = self.name.iter().map(|name| format!("run.name={}", toml::Value::from(name.as_str())));
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        self.overrides.iter().cloned().chain(seed).chain(name).collect()
    }

    /// Refuse a change of a key beside the option that says the same, one of which would be without effect.
    ///
    /// # Errors
    /// There is one.
    pub(crate) fn check_said_once(&self, has_seeds: bool) -> Result<(), anyhow::Error> {
        let options =
            [("--seed", self.seed.is_some(), "run.seed"), ("--seeds", has_seeds, "run.seed"), ("--name", self.name.is_some(), "run.name")];
        for (option, _, key) in options.into_iter().filter(|(_, is_given, _)| *is_given) {
            let is_about = |change: &&String| change.split('=').next().is_some_and(|path| path.trim() == key);
            if let Some(change) = self.overrides.iter().find(is_about) {
                bail!("{option} and --set {change} both set {key}; give one of them");
            }
        }
        Ok(())
    }

    /// The configuration in the file that was named; `begins_here` says whether this program plans or trains with it, and not another.
    pub(crate) fn load_file(&self, begins_here: bool) -> Result<Loaded, anyhow::Error> {
        let path = self.asked();
        let asked = path.to_string_lossy();
        if let (false, [preset, ..]) = (path.exists(), Preset::find(&asked).as_slice()) {
            bail!("there is no file {asked}; its preset is {}, and `shoal train {asked}` finds it", preset.file());
        }
        let loaded = Config::load(path, &self.changes()).map_err(SupervisorError::Config)?;
        if begins_here && !path.is_file() && begins_anew(&loaded) {
            bail!("{asked} can be read once, and what it asks for has this program begin anew; write it to a file, and name that");
        }
        Ok(loaded)
    }

    /// Train as `loaded` says, or say how that would go, either after what is `told` of it.
    pub(crate) fn run(&self, loaded: Loaded, told: &[String], catalogue: &Catalogue, console: Console) -> Result<Code, anyhow::Error> {
        start(loaded, told, catalogue, console, self.check, None)
    }
}

/// Refuse an engine that this build lacks in an interpreter: the Python package has libtorch in a build of its own, which may have it from
/// the beginning.
pub(super) fn check_is_built(loaded: &Loaded) -> Result<(), NetworkError> {
    if Host::of_this_process().is_none() {
        return Ok(());
    }
    let mut devices = loaded.config.learner.devices().into_iter().filter_map(|device| device.parse().ok());
    devices.try_for_each(|device| networks::check_is_built(loaded.config.network.engine, device))
}

/// Whether this program is to be started anew before it trains as `loaded` says: for Python, or as a build that has libtorch.
fn begins_anew(loaded: &Loaded) -> bool {
    match Host::of_this_process() {
        None => environments::request(&loaded.config).needs_python(),
        Some(_) => check_is_built(loaded).is_err(),
    }
}

/// Train as `loaded` says, from the beginning or from where `resumption` goes on; or, if `only_check`, say how that would go. What is `told`
/// of it comes first.
pub(super) fn start(
    loaded: Loaded,
    told: &[String],
    catalogue: &Catalogue,
    console: Console,
    only_check: bool,
    resumption: Option<Resumption>,
) -> Result<Code, anyhow::Error> {
    check_is_built(&loaded)?;
    Prepared::become_ready(&loaded)?;
    // Not before: the program may have started anew.
    told.iter().for_each(|line| console.print(line));
    let prepared = Prepared::new(loaded, catalogue)?;
    let broken = || Resumption::of_a_broken_run(&prepared.loaded.config, &|text| console.print(text)).map_err(SupervisorError::from);
    let mut resumption = resumption.map_or_else(broken, |resumption| Ok(Some(resumption)))?;
    let mut plan = prepared.plan(resumption.as_ref())?;
    if let Some(resumption) = &mut resumption {
        prepared.check_resumption(&plan, resumption)?;
    }
    if only_check {
        prepared.check(&mut plan, resumption.as_ref())?;
        console.print(plan.to_string().trim_end());
        return Ok(SUCCESS);
    }
    Ok(prepared.train(plan, console, resumption)?.exit_code())
}
