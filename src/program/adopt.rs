//! `shoal adopt`: goes on with a run in the memory in which its sentinel kept it.

use clap::Args;

use super::end::Code;
use super::training;
use crate::catalogue::Catalogue;
use crate::roles::supervisor::Resumption;
use crate::run_name::RunName;
use crate::telemetry::Console;

/// Go on with a run whose supervisor was killed, in the memory in which its sentinel keeps it
/// (`machine.sentinel=keep`).
#[derive(Args)]
pub(crate) struct Adopt {
    /// The run: the process id that its supervisor had, or its folder.
    #[arg(default_value = "runs/latest", value_name = "PID or FOLDER")]
    run: RunName,
    /// Change a key that has no part in the layout of the memory, for instance `--set learner.learning_rate=1e-4`;
    /// may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Plan only: check everything, print the plan, start nothing.
    #[arg(long)]
    check: bool,
}

impl Adopt {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        let console = Console::stderr()?;
        let resumption = Resumption::adopt(&self.run, &|text| console.print(text))?;
        let loaded = resumption.load(&self.overrides)?;
        training::start(loaded, &[], catalogue, console, self.check, Some(resumption))
    }
}
