//! What the folder of a run says of the run: all that is left of one that has ended.

use std::fmt;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::printable::{harmless, printable};
use super::words::{line, per_second};
use crate::checkpoint::{Checkpoints, PolicyWeights};
use crate::config::Config;
use crate::readable::score;
use crate::shell::word;
use crate::telemetry::{RunFolder, TelemetryError, jsonl};

/// A run by its folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FolderReport {
    /// The folder.
    pub folder: String,
    /// Name of the run.
    pub name: String,
    /// Start, UTC.
    pub started: String,
    /// End and reason; absent while the run lasts, and for ever if its supervisor was killed.
    pub ended: Option<(String, String)>,
    /// Whether the supervisor lives, as far as this process can see.
    pub supervisor_lives: bool,
    /// Last line of `metrics.jsonl`.
    pub metrics: Option<Value>,
    /// Last line of `evaluations.jsonl`.
    pub last_evaluation: Option<Value>,
    /// The confirmation of the best weights by fresh episodes, as their file says. (The highest mean of many routine
    /// evaluations would be a lucky one.)
    pub best_confirmed: Option<Value>,
    /// Number of evaluations.
    pub evaluations: usize,
    /// Names of the complete checkpoints, the oldest first.
    pub checkpoints: Vec<String>,
    /// The options for what has to be changed for the run to go on from its last checkpoint, if anything has.
    pub change_to_go_on: Option<String>,
}

impl FolderReport {
    /// Reads the folder at `path`; links such as `runs/latest` are followed.
    ///
    /// # Errors
    /// The path does not lead to the folder of a run.
    pub fn read(path: &Path) -> Result<Self, TelemetryError> {
        let folder = RunFolder::open(path)?;
        let record = folder.record()?;
        let run = Config::load(&folder.config(), &[]).ok().map(|loaded| loaded.config.run);
        let change_to_go_on = record.reached().zip(run).and_then(|(reached, run)| reached.change_to_go_on(&run));
        Ok(Self {
            folder: harmless(&folder.path().display().to_string()),
            name: printable(&record.name),
            started: record.started.to_string(),
            supervisor_lives: !record.has_lost_its_supervisor(),
            ended: record.finished.map(|end| (end.at.to_string(), printable(end.headline()))),
            metrics: jsonl::last(&folder.metrics()),
            best_confirmed: best_confirmed(&folder.best_weights()),
            last_evaluation: jsonl::last(&folder.evaluations()),
            // A long run has hundreds of thousands of evaluations, so none of them is kept.
            evaluations: jsonl::read::<IgnoredAny>(&folder.evaluations()).count(),
            checkpoints: Checkpoints::new(folder.checkpoints()).list().iter().map(|path| name_of(path)).collect(),
            change_to_go_on,
        })
    }
}

/// The confirmation of the weights at `path`, with the keys of `evaluations.jsonl`; `None` if they are not confirmed.
fn best_confirmed(path: &Path) -> Option<Value> {
    let metadata = PolicyWeights::load(path).ok()?.metadata;
    let evaluation = metadata.confirmation()?;
    Some(json!({
        "version": metadata.parameter_version,
        "env_steps": metadata.environment_steps,
        "updates": metadata.updates,
        "episodes": evaluation.episodes,
        "return_mean": evaluation.return_mean,
        "ci95_low": evaluation.return_ci95_low,
    }))
}

fn name_of(path: &Path) -> String {
    printable(&path.file_name().unwrap_or_default().to_string_lossy())
}

impl fmt::Display for FolderReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(formatter, "run", &self.name)?;
        line(formatter, "folder", &self.folder)?;
        line(formatter, "started", &self.started)?;
        let state = match &self.ended {
            Some((at, reason)) => format!("ended at {at}: {reason}"),
            None => {
                let why = if self.supervisor_lives {
                    "lives: the run is just beginning, or another user's, or has another XDG_RUNTIME_DIR, or this is a copy of its folder"
                } else {
                    "is gone: it was killed, or runs in another container or on another machine"
                };
                format!("its supervisor noted no end, and {why}")
            }
        };
        line(formatter, "state", &state)?;
        if let Some(metrics) = &self.metrics {
            let training_s = number(metrics, "training_s");
            let mean = |key: &str| (training_s > 0.0).then(|| number(metrics, key) / training_s);
            let counted = |key: &str| format!("{}{}", HumanCount(metrics[key].as_u64().unwrap_or(0)), per_second(mean(key)));
            let progress =
                format!("{} env steps, {} updates, after {:.1} s", counted("env_steps"), counted("updates"), number(metrics, "wall_s"));
            line(formatter, "progress", &progress)?;
            if let Some(learned) = mean("learned") {
                line(formatter, "speed", &format!("{} samples learned from per second", HumanCount(learned.round() as u64)))?;
            }
        }
        if self.best_confirmed.is_none() && self.evaluations > 0 {
            line(formatter, "best", "none confirmed")?;
        }
        for (name, evaluation, of) in
            [("best", &self.best_confirmed, "fresh episodes, confirmed"), ("last", &self.last_evaluation, "episodes")]
        {
            if let Some(evaluation) = evaluation {
                let mean = score(number(evaluation, "return_mean"));
                let steps = HumanCount(evaluation["env_steps"].as_u64().unwrap_or(0));
                let episodes = evaluation["episodes"].as_u64().unwrap_or(0);
                line(formatter, name, &format!("mean return {mean} over {episodes} {of}, at {steps} env steps"))?;
            }
        }
        line(formatter, "evaluations", &self.evaluations.to_string())?;
        match self.checkpoints.as_slice() {
            [] => Ok(()),
            all => {
                let change = self.change_to_go_on.as_ref().map_or_else(String::new, |change| format!(" {change}"));
                let checkpoints =
                    format!("{}; `shoal resume {}{change}` goes on from the last", all.join(", "), word(Path::new(&self.folder)));
                line(formatter, "checkpoints", &checkpoints)
            }
        }
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::telemetry::Finished;

    #[test]
    fn the_command_that_is_offered_after_a_limit_is_one_that_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let config = "[environment]\nid = \"CartPole-v1\"\n[run]\nstop_env_steps = 5_000\nstop_wall_s = 1.25\n";
        let folder = RunFolder::create(root.path(), "test", config).unwrap();
        std::fs::create_dir_all(folder.checkpoints().join("000001-step5000")).unwrap();
        let told = |reason: &str, env_steps: u64, wall_s: f64| {
            let finished =
                Finished { at: Timestamp::now(), reason: reason.into(), summary: json!({"env_steps": env_steps, "wall_s": wall_s}) };
            folder.write_finished(finished).unwrap();
            FolderReport::read(folder.path()).unwrap().to_string()
        };
        let command = format!("`shoal resume {}", folder.path().canonicalize().unwrap().display());
        for (reason, env_steps, wall_s, change) in [
            ("step limit", 5_008, 1.0, " --set run.stop_env_steps=10016"),
            ("time limit", 100, 1.3, " --set run.stop_wall_s=3"),
            ("interrupted", 100, 1.0, ""),
        ] {
            let told = told(reason, env_steps, wall_s);
            assert!(told.contains(&format!("{command}{change}` goes on")), "{told}");
        }
    }
}
