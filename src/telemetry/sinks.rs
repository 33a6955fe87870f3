//! Everything that records a run, behind one object: progress, `metrics.jsonl`, `evaluations.jsonl`,
//! `adaptation.jsonl`, TensorBoard, `run.log`, the report.
//!
//! A disk that fills up must not end a training. It is reported once, whatever files it concerns, and each file is
//! tried again at every later record.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::append::AppendFile;
use super::bottleneck::{Context, Judged};
use super::evaluation::EvaluatedWeights;
use super::goal::Goal;
use super::invocation::Invocation;
use super::jsonl::{EvaluationLine, JsonLines};
use super::mean_rates::MeanRates;
use super::reached::Reached;
use super::run_record::Finished;
use super::stop_reason::StopReason;
use super::summary::Summary;
use super::tensorboard::TensorBoard;
use super::{Console, Evaluation, Progress, Remembered, RunFolder, Snapshot, TelemetryError};
use crate::config::Config;
use crate::readable::harmless;

/// How long the end of the program waits for a slow reader of standard error.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// The recorder of one run, fed by the supervisor's loop. No call starts a thread or waits for a reader.
#[derive(Debug)]
pub struct Sinks {
    folder: RunFolder,
    /// The folder for TensorBoard.
    charts: PathBuf,
    console: Console,
    progress: Progress,
    metrics: Guarded<JsonLines>,
    evaluations: Guarded<JsonLines>,
    adaptation: Option<Guarded<JsonLines>>,
    tensorboard: Guarded<TensorBoard>,
    log: Guarded<AppendFile>,
    metrics_interval_s: f64,
    next_metrics_s: f64,
    last_metrics_s: Option<f64>,
    metrics_rates: MeanRates,
    judged: Judged,
    /// The causes of failures that the user has been told.
    known_causes: BTreeSet<String>,
    /// What could not be written at all, in words.
    lost: Vec<String>,
    /// What evaluations found. The steps and the count of unconfirmed goals are added in [`Self::remembered`].
    remembered: Remembered,
    goal: Option<Goal>,
    /// The setting that the run was fitted to, in words.
    fitted: Option<String>,
}

impl Sinks {
    /// Creates the files of the run or, after an `earlier` life of it, opens them to append; and shows the folder's
    /// warnings. `context` is that of the verdict on the bottleneck; a run that adapts has an `adaptation.jsonl`.
    ///
    /// # Errors
    /// A file cannot be created or opened: it is better to know before the training.
    pub fn open(folder: RunFolder, console: Console, context: Context, earlier: Option<&Remembered>) -> Result<Self, TelemetryError> {
        let goes_on = earlier.is_some();
        let from = earlier.map(|earlier| earlier.env_steps);
        let lines = |name, path: PathBuf| JsonLines::open(&path, goes_on).map(|file| Guarded::new(name, file));
        let remembered = earlier.cloned().unwrap_or_default();
        let mut sinks = Self {
            progress: Progress::new(console.clone()),
            metrics: lines("metrics.jsonl", folder.metrics())?,
            evaluations: lines("evaluations.jsonl", folder.evaluations())?,
            adaptation: context.adapts.then(|| lines("adaptation.jsonl", folder.adaptation())).transpose()?,
            log: Guarded::new("run.log", AppendFile::of_lines(&folder.log(), goes_on)?),
            // Created last, since it tells TensorBoard to forget what came after these steps.
            tensorboard: Guarded::new("the TensorBoard events", TensorBoard::create(&folder.events(), &context.config.to_toml(), from)?),
            console,
            charts: folder.charts(),
            folder,
            metrics_interval_s: context.config.run.metrics_interval_s,
            next_metrics_s: 0.0,
            last_metrics_s: None,
            metrics_rates: MeanRates::over(0.0),
            goal: context.config.run.stop_eval_return.map(|wanted| Goal::new(wanted, remembered.unconfirmed)),
            judged: Judged::new(context),
            known_causes: BTreeSet::new(),
            lost: Vec::new(),
            remembered,
            fitted: None,
        };
        for warning in sinks.folder.warnings().to_vec() {
            sinks.event(&format!("warning: {warning}"));
        }
        Ok(sinks)
    }

    /// What is known of the run when it has taken `env_steps`.
    pub fn remembered(&self, env_steps: u64) -> Remembered {
        Remembered { env_steps, unconfirmed: self.unconfirmed(), ..self.remembered }
    }

    /// The run folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Has later files go to `folder`, to which the run folder was moved, and says so. Files that are open were moved with it. The link to
    /// the newest run follows it among the runs.
    pub fn follow(&mut self, folder: RunFolder) {
        self.event(&format!("the folder of the run was moved, and its results go to {}", folder.path().display()));
        if let Err(warning) = folder.keep_latest(&self.folder) {
            self.event(&format!("warning: {warning}"));
        }
        // The charts lie beside the folder, so they were moved only if all runs were.
        if folder.charts().join(folder.id()).is_dir() {
            self.charts = folder.charts();
        }
        self.folder = folder;
    }

    /// Locks the run folder anew, as [`RunFolder::take_anew`] does.
    pub fn take_folder_anew(&mut self) -> bool {
        self.folder.take_anew()
    }

    /// Shows a moment, and writes it down if the metrics interval has passed.
    pub fn record(&mut self, snapshot: &Snapshot) {
        self.judged.record(snapshot);
        self.progress.update(snapshot);
        if snapshot.wall_s >= self.next_metrics_s {
            self.next_metrics_s = snapshot.wall_s + self.metrics_interval_s;
            self.write_metrics(snapshot);
        }
    }

    /// Takes note of the last moment of training: the verdict on the bottleneck leaves out the time after it, and is for
    /// the `cores` that the run may use by then.
    pub fn training_ended(&mut self, trained: &Snapshot, cores: f64) {
        self.judged.training_ended(trained, cores);
    }

    /// Records an evaluation. The progress line has its figures from the next snapshot.
    pub fn evaluation(&mut self, evaluation: &Evaluation) {
        self.remembered.take_in(evaluation.into(), evaluation.is_best);
        if let Some(notice) = self.goal.as_mut().and_then(|goal| goal.observe(evaluation)) {
            self.event(&notice);
        }
        let line = self.evaluations.attempt(|file| file.append(&EvaluationLine::from(evaluation)));
        let scalars = self.tensorboard.attempt(|file| file.evaluation(evaluation));
        self.report(line);
        self.report(scalars);
    }

    /// Records a setting that was tried.
    pub fn probe(&mut self, probe: &impl Serialize) {
        let error = self.adaptation.as_mut().and_then(|file| file.attempt(|file| file.append(probe)));
        self.report(error);
    }

    /// How many evaluations reached the goal of the run and were not confirmed.
    pub fn unconfirmed(&self) -> u64 {
        self.goal.as_ref().map_or(0, |goal| goal.outcome().unconfirmed)
    }

    /// The newest evaluation, if it was of the weights with this version.
    pub fn evaluation_of(&self, version: u64) -> Option<EvaluatedWeights> {
        self.remembered.newest.filter(|evaluated| evaluated.version == version)
    }

    /// Shows something that happened, such as the death of an actor, and notes it in `run.log`.
    pub fn event(&mut self, text: &str) {
        self.progress.print(text);
        let error = self.log.attempt(|file| file.append(log_line(text).as_bytes()));
        if let Some(news) = error.and_then(|error| self.news(error.cause(), &error.to_string())) {
            self.progress.print(&news);
        }
    }

    /// Shows that something could not be written or started for now. Each `cause` is shown once, so that a full disk
    /// is one event and not one per file.
    pub fn trouble(&mut self, cause: String, what: &str) {
        if let Some(news) = self.news(cause, what) {
            self.event(&news);
        }
    }

    /// Shows something that a process says again and again, once for each cause.
    pub fn event_once(&mut self, cause: String, text: &str) {
        if self.known_causes.insert(cause) {
            self.event(text);
        }
    }

    /// Shows what comes of causes that begin with `beginning` once more: they have been over meanwhile.
    pub fn forget(&mut self, beginning: &str) {
        self.known_causes.retain(|cause| !cause.starts_with(beginning));
    }

    /// Notes for the closing report that something could not be written at all.
    pub fn lose(&mut self, what: String) {
        self.lost.push(what);
    }

    /// Takes note of what the run was fitted to: `setting` in words, for the closing report, and as the configuration
    /// that advice starts from.
    pub fn fitted_to(&mut self, setting: String, config: Config) {
        self.fitted = Some(setting);
        self.judged.fitted_to(config);
    }

    /// Writes the last moment, completes `run.json` and prints the closing report.
    pub fn finish(mut self, reason: StopReason, snapshot: &Snapshot) -> Summary {
        if self.last_metrics_s != Some(snapshot.wall_s) {
            self.write_metrics(snapshot);
        }
        self.progress.finish(snapshot);
        let saved = self.folder.best_weights().is_file() || self.folder.last_weights().is_file();
        let playable = saved && !reason.is_failure();
        let saved_env_steps = self.folder.saved_env_steps().filter(|_| !matches!(reason, StopReason::Failed(_) | StopReason::Solved));
        let goal = self.goal.as_ref().map(Goal::outcome);
        let change = Reached::of(snapshot.env_steps, snapshot.wall_s, goal).change_to_go_on(&self.judged.config().run);
        let means = snapshot.clone().with_rates_of_training();
        let mut summary = Summary {
            reason,
            wall_s: snapshot.wall_s,
            training_s: snapshot.training_s,
            env_steps: snapshot.env_steps,
            updates: snapshot.updates,
            earlier_updates: snapshot.earlier_updates,
            learned_per_s: means.learned_per_s,
            cores_used: means.cores_used,
            cores_by_kind: means.cores_by_kind,
            machine_busy_share: means.machine_busy_share,
            gpu_busy_share: means.gpu_busy_share,
            gpu_memory_bytes: means.gpu_memory_bytes,
            peak_share: means.peak_share,
            episodes: snapshot.episodes,
            inserted: snapshot.inserted_by_process.clone(),
            restarts: snapshot.restarts,
            evaluations: self.remembered.evaluations,
            best_evaluation: self.remembered.best,
            last_evaluation: self.evaluation_of(snapshot.parameter_version),
            goal,
            fitted: self.fitted.take(),
            bottleneck: self.judged.verdict(snapshot),
            folder: self.folder.path().to_path_buf(),
            files: files_in(self.folder.path()),
            charts: self.charts.clone(),
            losses: self.losses(),
            play: playable.then(|| Invocation::current().play(self.folder.path())).flatten(),
            resume: saved_env_steps.and_then(|_| Invocation::current().resume(self.folder.path(), change)),
            resumes_from: saved_env_steps.filter(|&saved| saved < snapshot.env_steps),
        };
        let figures = serde_json::to_value(&summary).unwrap_or_default();
        let finished = Finished { at: Timestamp::now(), reason: summary.reason.to_string(), summary: figures };
        if let Err(error) = self.folder.write_finished(finished) {
            summary.losses.push(format!("how the run ended is not in run.json: {error}"));
        }
        self.event(&summary.to_string());
        self.console.drain(LAST_WORDS_PATIENCE);
        summary
    }

    fn write_metrics(&mut self, snapshot: &Snapshot) {
        self.last_metrics_s = Some(snapshot.wall_s);
        let steady = self.metrics_rates.steady(snapshot);
        let line = self.metrics.attempt(|file| file.append(&steady));
        let scalars = self.tensorboard.attempt(|file| file.snapshot(&steady));
        self.report(line);
        self.report(scalars);
    }

    fn report(&mut self, error: Option<TelemetryError>) {
        if let Some(error) = error {
            self.trouble(error.cause(), &error.to_string());
        }
    }

    /// The warning for the user about a failure, if it is the first of this `cause`.
    fn news(&mut self, cause: String, what: &str) -> Option<String> {
        self.known_causes.insert(cause).then(|| format!("warning: {what}; training goes on, and it is tried again quietly"))
    }

    fn losses(&self) -> Vec<String> {
        let adaptation = self.adaptation.as_ref().and_then(Guarded::losses);
        let records = [self.metrics.losses(), self.evaluations.losses(), adaptation, self.tensorboard.losses(), self.log.losses()];
        self.lost.iter().cloned().chain(records.into_iter().flatten()).collect()
    }
}

/// Appends an event to the `run.log` of a run that has no recorder any more.
///
/// # Errors
/// The file cannot be written.
pub fn note(folder: &RunFolder, text: &str) -> Result<(), TelemetryError> {
    AppendFile::continue_lines(&folder.log())?.append(log_line(text).as_bytes())
}

fn log_line(text: &str) -> String {
    format!("{:.3} {}\n", Timestamp::now(), harmless(text))
}

/// A file that may fail for a while.
#[derive(Debug)]
struct Guarded<T> {
    name: &'static str,
    file: T,
    lost_records: u64,
}

impl<T> Guarded<T> {
    fn new(name: &'static str, file: T) -> Self {
        Self { name, file, lost_records: 0 }
    }

    /// Writes, and returns the error if that failed.
    fn attempt(&mut self, write: impl FnOnce(&mut T) -> Result<(), TelemetryError>) -> Option<TelemetryError> {
        let error = write(&mut self.file).err()?;
        self.lost_records += 1;
        Some(error)
    }

    fn losses(&self) -> Option<String> {
        (self.lost_records > 0).then(|| format!("{} records of {}, which could not be written", self.lost_records, self.name))
    }
}

/// The files of the run in `folder`, and as `NAME/` its folders that hold something, apart from that of the weights, whose
/// files are named.
fn files_in(folder: &Path) -> Vec<String> {
    let list = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let weights = folder.join("weights");
    let is_shown = |path: &PathBuf| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    let named = |path: PathBuf| {
        let name = path.strip_prefix(folder).ok()?.display().to_string();
        let is_filled_folder = path != weights && list(&path).any(|path| is_shown(&path));
        if is_filled_folder { Some(name + "/") } else { path.is_file().then_some(name) }
    };
    let mut files: Vec<String> = list(folder).chain(list(&weights)).filter(is_shown).filter_map(named).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_the_files_of_a_run_and_its_folders_that_hold_something() {
        let root = tempfile::tempdir().unwrap();
        for name in ["weights", "videos", "checkpoints/000001-step9"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        for name in ["run.json", ".lock", "videos/.lock", "weights/last.safetensors"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(files_in(root.path()), ["checkpoints/", "run.json", "weights/last.safetensors"]);
    }
}
