//! `shoal resume`: goes on with a run that has ended or was killed.

use std::path::PathBuf;

use clap::Args;

use super::end::Code;
use super::training;
use crate::catalogue::Catalogue;
use crate::roles::supervisor::{Resumption, SupervisorError};
use crate::telemetry::Console;

/// Go on with a run that has ended or was killed, from its newest checkpoint.
#[derive(Args)]
pub(crate) struct ResumeRun {
    /// The folder of the run.
    #[arg(default_value = "runs/latest")]
    run: PathBuf,
    /// Go on from this checkpoint, a folder in the run's folder `checkpoints` or its name, instead of the newest.
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Change a key, for instance `--set run.stop_env_steps=2_000_000`; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Plan only: check everything, print the plan, start nothing. A run that is kept in memory is written to the
    /// disk for that.
    #[arg(long)]
    check: bool,
}

impl ResumeRun {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        let console = Console::stderr()?;
        let resumption = Resumption::find(&self.run, self.from.as_deref(), &|text| console.print(text)).map_err(SupervisorError::from)?;
        let loaded = resumption.load(&self.overrides)?;
        training::start(loaded, &[], catalogue, console, self.check, Some(resumption))
    }
}
