//! What the folder of a run says of the run: all that is left of one that has ended.

use std::fmt;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::Rates;
use super::printable::printable;
use super::words::{line, per_second, speed_with_gpus};
use crate::checkpoint::{Checkpoints, PolicyWeights};
use crate::config::Config;
use crate::readable::{harmless, score};
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
    /// The machine of the supervisor, if that is another one.
    pub elsewhere: Option<String>,
    /// Last line of `metrics.jsonl`.
    pub metrics: Option<Value>,
    /// Work per second of training. What cores did is of all training if the run noted its end, else of the moment of
    /// `metrics`.
    pub rates: Rates,
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
        let metrics = jsonl::last(&folder.metrics());
        let summary = record.finished.as_ref().map(|end| &end.summary);
        let rates = metrics.as_ref().map_or_else(Rates::default, |metrics| rates_of_training(metrics, summary.unwrap_or(metrics)));
        Ok(Self {
            folder: harmless(&folder.path().display().to_string()),
            name: printable(&record.name),
            started: record.started.to_string(),
            supervisor_lives: !record.has_lost_its_supervisor(),
            elsewhere: record.elsewhere().map(printable),
            ended: record.finished.map(|end| (end.at.to_string(), printable(end.headline()))),
            metrics,
            rates,
            best_confirmed: best_confirmed(&folder.best_weights()),
            last_evaluation: jsonl::last(&folder.evaluations()),
            // A long run has hundreds of thousands of evaluations, so none of them is kept.
            evaluations: jsonl::read::<IgnoredAny>(&folder.evaluations()).count(),
            checkpoints: Checkpoints::new(folder.checkpoints()).list().unwrap_or_default().iter().map(|path| name_of(path)).collect(),
            change_to_go_on,
        })
    }
}

/// The rates of a run's training, whose last line of metrics is `metrics`. What cores did is as `effort` says.
fn rates_of_training(metrics: &Value, effort: &Value) -> Rates {
    let training_s = metrics["training_s"].as_f64().filter(|&seconds| seconds > 0.0);
    let mean = |key: &str| Some(metrics[key].as_f64()? / training_s?);
    Rates {
        env_steps_per_s: mean("env_steps"),
        updates_per_s: mean("updates"),
        learned_per_s: mean("learned"),
        cores_used: effort["cores_used"].as_f64(),
        machine_busy_share: effort["machine_busy_share"].as_f64(),
        peak_share: effort["peak_share"].as_f64(),
        ..Rates::default()
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
                let why = match &self.elsewhere {
                    Some(machine) => format!("was started on {machine}: it runs there, or was killed"),
                    None if self.supervisor_lives => "lives: the run is just beginning, or another user's, or has another \
                         XDG_RUNTIME_DIR, or this is a copy of its folder"
                        .into(),
                    None => "is gone: it was killed, or runs in another container or on another machine".into(),
                };
                format!("its supervisor noted no end, and {why}")
            }
        };
        line(formatter, "state", &state)?;
        if let Some(metrics) = &self.metrics {
            let counted = |key: &str, rate| format!("{}{}", HumanCount(metrics[key].as_u64().unwrap_or(0)), per_second(rate));
            let env_steps = counted("env_steps", self.rates.env_steps_per_s);
            let updates = counted("updates", self.rates.updates_per_s);
            line(formatter, "progress", &format!("{env_steps} env steps, {updates} updates, after {:.1} s", number(metrics, "wall_s")))?;
            // What cores did may be of all training.
            if let Some(speed) = speed_with_gpus(&self.rates, "busy lately", |key| metrics[key].as_f64()) {
                line(formatter, "speed", &speed)?;
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
    fn what_cores_did_is_of_all_training_once_the_run_has_ended_and_of_the_last_moment_before() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "test", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
        let last = json!({
            "wall_s": 12.0, "training_s": 10.0, "env_steps": 5_000, "updates": 500, "learned": 32_000,
            "cores_used": 0.25, "machine_busy_share": 0.5, "gpu_busy_share": 0.75, "gpu_memory_bytes": 3_u64 << 30,
        });
        std::fs::write(folder.metrics(), format!("{last}\n")).unwrap();
        let told = || FolderReport::read(folder.path()).unwrap().to_string();
        let gpu = "GPU 75 % busy lately, 3.00 GiB of its memory\n";
        let moment = format!("speed       3,200 samples learned from per second, 0.25 cores used, machine 50 % busy, {gpu}");
        assert!(told().contains(&moment), "{}", told());
        let summary = json!({"cores_used": 1.5, "machine_busy_share": 0.875, "peak_share": 0.094});
        folder.write_finished(Finished { at: Timestamp::now(), reason: "step limit".into(), summary }).unwrap();
        let training = "3,200 samples learned from per second, 1.50 cores used, 9.4 % of what they could compute, machine 88 % busy";
        assert!(told().contains(&format!("speed       {training}, {gpu}")), "{}", told());
        assert!(told().contains("progress    5,000 (500/s) env steps, 500 (50/s) updates, after 12.0 s\n"), "{}", told());
    }

    #[test]
    fn a_run_of_another_machine_is_told_of_with_the_name_of_that() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "test", "").unwrap();
        let mut record = folder.record().unwrap();
        // Machines may have one name.
        record.boot = Some("its own".into());
        std::fs::write(folder.record_path(), serde_json::to_string(&record).unwrap()).unwrap();
        let told = FolderReport::read(folder.path()).unwrap().to_string();
        assert!(told.contains("is gone: it was killed, or runs in another container or on another machine"), "{told}");
        (record.machine, record.boot) = ("node07".into(), Some("its own".into()));
        std::fs::write(folder.record_path(), serde_json::to_string(&record).unwrap()).unwrap();
        let told = FolderReport::read(folder.path()).unwrap().to_string();
        assert!(told.contains("its supervisor noted no end, and was started on node07: it runs there, or was killed"), "{told}");
        // As one of a version that did not note it.
        let mut known = serde_json::to_value(record).unwrap();
        for key in ["machine", "boot"] {
            known.as_object_mut().unwrap().remove(key).unwrap();
        }
        std::fs::write(folder.record_path(), known.to_string()).unwrap();
        let told = FolderReport::read(folder.path()).unwrap().to_string();
        assert!(told.contains("its supervisor noted no end, and lives"), "{told}");
    }

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
