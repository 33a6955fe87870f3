//! `shoal attach`: actors that join a running supervisor.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::end::{Code, FAILURE, SUCCESS, say};
use super::single_threaded;
use crate::catalogue::Catalogue;
use crate::readable::harmless;
use crate::rendezvous::{RegisteredRun, Registry};
use crate::roles::attached;
use crate::run_name::RunName;
use crate::segment::system;

/// Join actors to a run. They leave at Ctrl+C, and when the run ends; killing them harms nothing.
#[derive(Args)]
pub(crate) struct Attach {
    /// The run: the process id of its supervisor, or its folder. `shoal inspect` lists the runs under way.
    #[arg(default_value = "runs/latest", value_name = "PID or FOLDER")]
    run: RunName,
    /// The record that the supervisor wrote of the run, instead of its process id. It also finds a run that was started
    /// with another XDG_RUNTIME_DIR.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    config: Option<PathBuf>,
    /// Actors to join.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    actors: u16,
}

impl Attach {
    pub(crate) fn run(&self, catalogue: &Catalogue) -> Result<Code, anyhow::Error> {
        let (registry, pid) = match &self.config {
            Some(path) => announced_in(path)?,
            None => {
                let registry = Registry::open()?;
                let pid = self.run.supervisor(&registry)?;
                (registry, pid)
            }
        };
        // Refuses what is certain to fail once, and not once per actor.
        attached::become_ready(&registry, pid, self.actors.into())?;
        if let Some(warning) = single_threaded::warning() {
            say(&warning);
        }
        system::handle_stop_signals()?;
        let joined = |number| say(&format!("actor {number} has joined the run of supervisor {pid}"));
        let actor = || match attached::run(&registry, catalogue, pid, joined) {
            Ok(()) => 0,
            Err(error) => {
                say(&format!("error: {}", harmless(&error.to_string())));
                1
            }
        };
        let children: Vec<_> = (0..self.actors).map(|_| system::fork_child(actor)).collect::<Result<_, _>>()?;
        Ok(if system::wait_for_children(&children) { SUCCESS } else { FAILURE })
    }
}

/// The registry that the record at `path` names, whichever this process would use itself, and the process id in the record.
fn announced_in(path: &Path) -> Result<(Registry, u32), anyhow::Error> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let record: RegisteredRun = serde_json::from_str(&text).with_context(|| format!("{} is no record of a run", path.display()))?;
    // The original lies beside its socket, though the file may be a copy.
    let folder = record.socket.parent().unwrap_or(Path::new("")).to_path_buf();
    Ok((Registry::open_at(folder)?, record.identity.supervisor_pid))
}
