//! How far the running seeds have come, in one line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::curves::Point;
use super::report::runs_below;
use crate::readable::score;
use crate::telemetry::{RunFolder, jsonl};

/// Reads how far seeds have come from the files of their runs.
#[derive(Debug)]
pub struct Progress {
    folder: PathBuf,
    seeds: usize,
    stop_env_steps: u64,
    stop_wall_s: Option<f64>,
    runs: BTreeMap<u64, RunFolder>,
}

/// The part of a line of metrics that tells how far a run has come.
#[derive(Debug, Deserialize)]
struct Moment {
    env_steps: u64,
    wall_s: f64,
}

impl Progress {
    /// The progress of `seeds` seeds whose runs are below `folder`. Each ends after `stop_env_steps` steps or
    /// `stop_wall_s` seconds.
    pub fn new(folder: &Path, seeds: usize, stop_env_steps: u64, stop_wall_s: Option<f64>) -> Self {
        Self { folder: folder.to_path_buf(), seeds, stop_env_steps, stop_wall_s, runs: BTreeMap::new() }
    }

    /// How many seeds have `ended`, and how far the `running` ones have come, as many as fit into `width` columns.
    pub fn line(&mut self, ended: usize, running: &[u64], width: usize) -> String {
        if running.iter().any(|seed| !self.runs.contains_key(seed)) {
            // Most of many seeds are known already. Reading all their configurations twice a second would take a core
            // from the runs.
            let known: BTreeSet<&OsStr> = self.runs.values().filter_map(|run| run.path().file_name()).collect();
            let found: Vec<_> = runs_below(&self.folder, |name| !known.contains(name)).collect();
            self.runs.extend(found);
        }
        let mut line = format!("{ended} of {} seeds ended", self.seeds);
        for piece in running.iter().map(|&seed| self.piece(seed)) {
            if line.len() + piece.len() > width {
                break;
            }
            line.push_str(&piece);
        }
        line.chars().take(width).collect()
    }

    /// The piece of one seed: how far it has come, and its newest evaluation.
    fn piece(&self, seed: u64) -> String {
        let run = self.runs.get(&seed);
        let Some(Moment { env_steps, wall_s }) = run.and_then(|run| jsonl::last(&run.metrics())) else {
            return format!("  seed {seed} begins");
        };
        let by_time = self.stop_wall_s.map_or(0.0, |stop| wall_s / stop);
        let fraction = (env_steps as f64 / self.stop_env_steps as f64).max(by_time).min(1.0);
        let evaluation: Option<Point> = run.and_then(|run| jsonl::last(&run.evaluations()));
        let returned = evaluation.map(|point| format!(", eval {}", score(point.return_mean))).unwrap_or_default();
        format!("  seed {seed} {:.0}%{returned}", fraction * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_line_tells_how_far_each_seed_is_as_long_as_there_is_room() {
        let root = tempfile::tempdir().unwrap();
        let [first, second] = [1, 2].map(|seed| RunFolder::create(root.path(), "run", &format!("[run]\nseed = {seed}\n")).unwrap());
        fs::write(first.metrics(), "{\"env_steps\": 10, \"wall_s\": 1.0}\n{\"env_steps\": 250, \"wall_s\": 2.0}\n").unwrap();
        fs::write(first.evaluations(), "{\"kind\": \"routine\", \"env_steps\": 200, \"return_mean\": 21.5}\n").unwrap();
        fs::write(second.metrics(), "{\"env_steps\": 100, \"wall_s\": 8.0}\n").unwrap();
        let mut progress = Progress::new(root.path(), 5, 1000, Some(10.0));
        let all = "1 of 5 seeds ended  seed 1 25%, eval 21.5  seed 2 80%  seed 3 begins";
        assert_eq!(progress.line(1, &[1, 2, 3], 100), all);
        assert_eq!(progress.line(1, &[1, 2, 3], all.len() - 1), "1 of 5 seeds ended  seed 1 25%, eval 21.5  seed 2 80%");
        assert_eq!(progress.line(1, &[1, 2, 3], 6), "1 of 5");
    }
}
