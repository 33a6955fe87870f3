//! The list of runs, and what a clean-up removed, as plain text.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use indicatif::HumanCount;

use super::runs::{Cleaned, RunList};
use super::words::{age, liveliness};
use crate::rendezvous::Liveliness;
use crate::segment::control::RunState;
use crate::telemetry::Table;

impl Display for RunList {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return writeln!(
                formatter,
                "no runs under way; of those that have ended, `shoal inspect runs/latest` shows one, `shoal dashboard` all side by side"
            );
        }
        let header = ["pid", "state", "algorithm", "environment", "age", "env steps", "updates", "folder"];
        let mut table = Table::new(&header, &[1, 2, 3, 7], 0);
        for run in &self.runs {
            let count = |count: Option<u64>| count.map_or_else(|| "?".into(), |count| HumanCount(count).to_string());
            // The phase in the segment of a dead run is that of its death, unless a process keeps the run in memory.
            let state = match (run.state, run.phase) {
                (Liveliness::Running, Some(phase)) => phase.name(),
                _ if run.is_kept() => RunState::Kept.name(),
                (state, _) => liveliness(state),
            };
            table.row(vec![
                run.pid.to_string(),
                state.into(),
                run.algorithm.clone(),
                run.environment.clone(),
                age(run.age_s),
                count(run.env_steps),
                count(run.updates),
                from_here(&run.run_folder),
            ]);
        }
        write!(formatter, "{table}")?;
        for run in &self.runs {
            if let Some(problem) = &run.problem {
                writeln!(formatter, "{}: {problem}", run.pid)?;
            }
        }
        if let Some(run) = self.runs.iter().find(|run| run.is_kept()) {
            writeln!(formatter, "`shoal adopt {}` goes on with a run that is kept in memory", run.pid)?;
        }
        if self.runs.iter().any(|run| run.state == Liveliness::Dead && !run.is_kept()) {
            writeln!(formatter, "`shoal inspect --clean` removes what dead runs left")?;
        }
        writeln!(formatter, "runs that have ended: `shoal inspect FOLDER` for one, `shoal dashboard` for all side by side")?;
        Ok(())
    }
}

/// The folder, relative to the working directory if it lies below.
pub(super) fn from_here(folder: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    match Path::new(folder).strip_prefix(here) {
        Ok(path) if path.as_os_str().is_empty() => ".".to_owned(),
        Ok(path) => path.display().to_string(),
        Err(_) => folder.to_owned(),
    }
}

impl Display for Cleaned {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for name in &self.removed {
            writeln!(formatter, "removed {name}")?;
        }
        for pid in &self.kept {
            writeln!(formatter, "kept what supervisor {pid} left: processes of its run still live")?;
        }
        if self.removed.is_empty() && self.kept.is_empty() {
            writeln!(formatter, "nothing to remove")?;
        }
        Ok(())
    }
}
