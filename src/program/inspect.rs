//! `shoal inspect`: lists this user's runs, or looks into one of them without disturbing it.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::end::{Code, SUCCESS};
use super::print::print;
use crate::inspector::{Cleaned, Ending, FolderReport, Inspection, RunList, watch};
use crate::rendezvous::Registry;
use crate::run_name::RunName;

/// List this user's runs, or look into one of them without disturbing it.
#[derive(Args)]
pub(crate) struct Inspect {
    /// The run: the process id of its supervisor, as the list shows it, or its folder, such as runs/latest. Without
    /// it, all runs are listed, and `--live` and `--transition` look into runs/latest.
    #[arg(value_name = "PID or FOLDER")]
    run: Option<RunName>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Remove what dead runs and shared replays left: shared memory, sockets, records.
    #[arg(long, conflicts_with_all = ["run", "live", "transition"])]
    clean: bool,
    /// Show the transition in one slot of the replay.
    #[arg(long, value_name = "SLOT")]
    transition: Option<usize>,
    /// Show the run full-screen, twice a second, until `q` is pressed.
    #[arg(long, conflicts_with_all = ["json", "transition"])]
    live: bool,
    /// Milliseconds over which the report on a run measures rates.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=60_000),
        requires = "run",
        conflicts_with_all = ["clean", "transition", "live"]
    )]
    interval_ms: u64,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<Code, anyhow::Error> {
        let registry = Registry::for_looking()?;
        let latest = RunName::Folder("runs/latest".into());
        match self.run.as_ref().or(self.needs_segment().then_some(&latest)) {
            None if self.clean => print(&Cleaned::sweep(&registry), self.json)?,
            None => print(&RunList::of(&registry), self.json)?,
            Some(run) => match (run.supervisor(&registry), run) {
                // A restart of the machine takes the memory of a run and may leave its record.
                (Ok(pid), RunName::Folder(path)) if !self.needs_segment() && Inspection::has_lost_its_memory(&registry, pid) => {
                    print(&FolderReport::read(path)?, self.json)?;
                }
                (Ok(pid), _) => self.look(&registry, pid)?,
                // The folder tells of a run that is not under way, or that cannot be seen from here.
                (Err(_), RunName::Folder(path)) if !self.needs_segment() => print(&FolderReport::read(path)?, self.json)?,
                (Err(error), _) => return Err(error.into()),
            },
        }
        Ok(SUCCESS)
    }

    fn needs_segment(&self) -> bool {
        self.live || self.transition.is_some()
    }

    fn look(&self, registry: &Registry, pid: u32) -> Result<(), anyhow::Error> {
        let inspection = Inspection::open(registry, pid)?;
        match self.transition {
            Some(slot) => print(&inspection.transition(slot)?, self.json),
            None if self.live => {
                if watch(&inspection)? == Ending::RunEnded {
                    writeln!(std::io::stdout(), "the run of supervisor {pid} has ended")?;
                }
                Ok(())
            }
            None => print(&inspection.report(Duration::from_millis(self.interval_ms)), self.json),
        }
    }
}
