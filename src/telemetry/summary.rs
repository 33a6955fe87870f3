//! The closing report: why the run stopped, what it reached, where everything lies, and what held it back.

use std::fmt;
use std::path::PathBuf;

use indicatif::BinaryBytes;
use serde::Serialize;

use super::bottleneck::Diagnosis;
use super::evaluation::{EvaluatedWeights, EvaluationCounts};
use super::goal::GoalOutcome;
use super::stop_reason::StopReason;
use super::{ByKind, InsertedByProcess, share};
use crate::readable::{as_text, clock, counted, grouped, headline_and_details, percent, score, short};
use crate::shell::word;

/// A finished run in a few lines (`Display`) or as an object in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Why it stopped.
    pub reason: StopReason,
    /// Seconds that the run took.
    pub wall_s: f64,
    /// Seconds of training: without the start and without waiting for processes to leave. Rates are means over these.
    pub training_s: f64,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Updates of the parameters before the run went on from a checkpoint.
    #[serde(skip)]
    pub earlier_updates: u64,
    /// Transitions, or steps of fragments, that learners learned from per second of training: the update frame rate.
    pub learned_per_s: f64,
    /// Cores that the run's processes computed on in training, on average.
    pub cores_used: f64,
    /// Cores that each kind of process computed on in training, on average.
    pub cores_by_kind: ByKind,
    /// Share of the time of all the machine's cores that any program computed in training; `None` if the kernel does
    /// not say.
    pub machine_busy_share: Option<f64>,
    /// Share of the newest moment in which the learners' GPUs computed, mean over the GPUs; `None` if learners use no
    /// GPU.
    pub gpu_busy_share: Option<f64>,
    /// Bytes that are taken of the memory of these GPUs, all together.
    pub gpu_memory_bytes: Option<u64>,
    /// What networks computed in training as a share of what the cores could; `None` if that was not measured.
    pub peak_share: Option<f64>,
    /// Training episodes finished.
    pub episodes: u64,
    /// What each process inserted into the replay.
    pub inserted: InsertedByProcess,
    /// Processes that died, and were replaced unless the run ended first.
    pub restarts: u64,
    /// Number of evaluations.
    #[serde(flatten)]
    pub evaluations: EvaluationCounts,
    /// The confirmation of the best weights. They are the best of several that were confirmed, so the lower end of the
    /// interval says more about them than its middle.
    pub best_evaluation: Option<EvaluatedWeights>,
    /// The evaluation of the last weights, if there was time for it.
    pub last_evaluation: Option<EvaluatedWeights>,
    /// What became of `run.stop_eval_return`.
    pub goal: Option<GoalOutcome>,
    /// What the run was fitted to while it was under way, as options that repeat it; `None` if nothing was fitted.
    pub fitted: Option<String>,
    /// What held the run back.
    pub bottleneck: Diagnosis,
    /// The run folder.
    #[serde(serialize_with = "as_text")]
    pub folder: PathBuf,
    /// Files in the run folder and in its `weights`, relative to the run folder.
    pub files: Vec<String>,
    /// The folder with the event files for TensorBoard of this run and of the runs beside it.
    #[serde(serialize_with = "as_text")]
    pub charts: PathBuf,
    /// What could not be written, in words.
    pub losses: Vec<String>,
    /// The command that plays what was learned; `None` if the run failed or saved nothing.
    pub play: Option<String>,
    /// The command that goes on with the run; `None` if it is solved, has no checkpoint, or cannot go on from one.
    pub resume: Option<String>,
    /// Environment steps of the checkpoint from which that goes on, if others came after it.
    pub resumes_from: Option<u64>,
}

impl Summary {
    fn best_weights(&self) -> String {
        let EvaluationCounts { routine, confirmations } = self.evaluations;
        let counts = format!("{}, {}", counted(routine as usize, "evaluation"), counted(confirmations as usize, "confirmation"));
        match self.best_evaluation.and_then(|best| best.describe()) {
            Some(best) => format!("best confirmed {best}; {counts}"),
            None if routine == 0 => "none".into(),
            None => format!("none confirmed; {counts}"),
        }
    }

    /// What is to be said of the last weights; nothing if they are the best, or if the run ended without waiting for
    /// their evaluation.
    fn last_weights(&self) -> Option<String> {
        match self.last_evaluation {
            Some(last) if self.best_evaluation.is_some_and(|best| best.version_and_steps() == last.version_and_steps()) => None,
            Some(last) if self.best_evaluation.is_some_and(|best| last.is_clearly_worse_than(&best)) => {
                Some(format!("{}: worse than the best, which `shoal evaluate` plays", last.describe()?))
            }
            Some(last) => last.describe(),
            None if self.evaluations.routine == 0 => None,
            None => matches!(self.reason, StopReason::StepLimit | StopReason::TimeLimit).then(|| "not evaluated".into()),
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        share(count as f64, self.training_s)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: String| writeln!(formatter, "{name:<11} {text}");
        let reason = self.reason.to_string();
        let (reason, details) = headline_and_details(&reason);
        let score = self.best_evaluation.filter(|_| self.reason == StopReason::Solved).and_then(|best| best.score());
        let solved = score.map(|score| format!(": {score}, confirmed with the same weights")).unwrap_or_default();
        let after = format!("{reason}{solved}, after {}", clock(self.wall_s));
        line("stopped", if details.is_empty() { after } else { format!("{after}\n{details}") })?;
        let episodes = grouped(self.episodes);
        line("steps", format!("{} ({}/s), {episodes} episodes", grouped(self.env_steps), short(self.per_second(self.env_steps))))?;
        let updates_per_s = short(self.per_second(self.updates));
        let none_lately = if self.updates > 0 && self.updates == self.earlier_updates { "; none since the run went on" } else { "" };
        let samples_per_s = short(self.learned_per_s);
        line("updates", format!("{} ({updates_per_s}/s), {samples_per_s} samples/s{none_lately}", grouped(self.updates)))?;
        let busy = self.machine_busy_share.map_or_else(String::new, |share| format!("; the machine was {} busy", percent(share)));
        line("cores", format!("{:.2} used on average{}{busy}", self.cores_used, self.cores_by_kind.in_parentheses(2)))?;
        if let Some((busy_share, memory_bytes)) = self.gpu_busy_share.zip(self.gpu_memory_bytes) {
            line("GPU", format!("{} busy lately, {} of its memory taken", percent(busy_share), BinaryBytes(memory_bytes)))?;
        }
        if let Some(share) = self.peak_share {
            line("peak", format!("networks computed {:.1} % of what the cores could", share * 100.0))?;
        }
        if self.inserted.are_several() {
            line("inserted", self.inserted.to_string())?;
        }
        if let Some(goal) = self.goal.filter(|_| self.reason != StopReason::Solved) {
            line("goal", missed(goal))?;
        }
        line("evaluation", self.best_weights())?;
        if let Some(last) = self.last_weights() {
            line("last", last)?;
        }
        if let Some(fitted) = &self.fitted {
            line("fitted to", fitted.clone())?;
        }
        line("bottleneck", self.bottleneck.to_string())?;
        if self.restarts > 0 {
            line("deaths", format!("{} of processes in the whole run", self.restarts))?;
        }
        for loss in &self.losses {
            line("lost", loss.clone())?;
        }
        line("written", format!("{}: {}", self.folder.display(), self.files.join(", ")))?;
        line("charts", format!("tensorboard --logdir {}", word(&self.charts)))?;
        if let Some(command) = &self.play {
            line("play it", command.clone())?;
        }
        if let Some(command) = &self.resume {
            line("go on", command.clone())?;
            // No comment behind the command: not every shell takes one where commands are typed.
            if let Some(saved) = self.resumes_from {
                line("", format!("from {} steps: nothing was saved since", grouped(saved)))?;
            }
        }
        Ok(())
    }
}

/// What became of a goal that did not end the run.
fn missed(goal: GoalOutcome) -> String {
    let wanted = score(goal.wanted);
    match goal {
        GoalOutcome { confirmed: true, .. } => format!("{wanted}, confirmed once training had ended"),
        GoalOutcome { unconfirmed: 0, .. } => format!("{wanted}, not reached"),
        GoalOutcome { unconfirmed, .. } => {
            format!("{wanted}, reached by {} that fresh episodes did not confirm", counted(unconfirmed as usize, "evaluation"))
        }
    }
}
