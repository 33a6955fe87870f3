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
use crate::roles::supervisor::{Prepared, Resumption, SupervisorError};
use crate::telemetry::Console;

/// What a run is made from.
#[derive(Args)]
pub(crate) struct Train {
    /// The configuration, for instance `configs/cartpole_dqn.toml`. `shoal train` also takes a preset (`cartpole_dqn`) and an
    /// environment: that of a preset (`CartPole-v1`), or any with `--set algorithm.name=sac`.
    #[arg(required = true)]
    pub(crate) config: Option<PathBuf>,
    /// Change a key, for instance `--set learner.batch_size=512`; may be given several times.
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

    /// The configuration in the file that was named.
    pub(crate) fn load_file(&self) -> Result<Loaded, anyhow::Error> {
        let path = self.asked();
        let asked = path.to_string_lossy();
        if let (false, [preset, ..]) = (path.exists(), Preset::find(&asked).as_slice()) {
            bail!("there is no file {asked}; its preset is {}, and `shoal train {asked}` finds it", preset.file());
        }
        Ok(Config::load(path, &self.changes()).map_err(SupervisorError::Config)?)
    }

    /// Train as `loaded` says, or say how that would go.
    pub(crate) fn run(&self, loaded: Loaded, catalogue: &Catalogue, console: Console) -> Result<Code, anyhow::Error> {
        start(loaded, catalogue, console, self.check, None)
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

/// Train as `loaded` says, from the beginning or from where `resumption` goes on; or, if `only_check`, say how that would go.
pub(super) fn start(
    loaded: Loaded,
    catalogue: &Catalogue,
    console: Console,
    only_check: bool,
    resumption: Option<Resumption>,
) -> Result<Code, anyhow::Error> {
    check_is_built(&loaded)?;
    Prepared::become_ready(&loaded)?;
    let prepared = Prepared::new(loaded, catalogue)?;
    let broken = || Resumption::of_a_broken_run(&prepared.loaded.config, &|text| console.print(text)).map_err(SupervisorError::from);
    let mut resumption = resumption.map_or_else(broken, |resumption| Ok(Some(resumption)))?;
    let plan = prepared.plan(resumption.as_ref())?;
    if let Some(resumption) = &mut resumption {
        prepared.check_resumption(&plan, resumption)?;
    }
    if only_check {
        prepared.check(resumption.as_ref())?;
        console.print(plan.to_string().trim_end());
        return Ok(SUCCESS);
    }
    Ok(prepared.train(plan, console, resumption)?.exit_code())
}
