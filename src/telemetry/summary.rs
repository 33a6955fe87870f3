//! The closing report: why the run stopped, what it reached, where everything lies, and what held it back.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::bottleneck::Verdict;
use super::evaluation::Statistics;
use super::play_command::word;
use super::units::{clock, grouped, score, short};

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// An evaluation reached `run.stop_eval_return`.
    Solved,
    /// `run.stop_env_steps` were taken.
    StepLimit,
    /// `run.stop_wall_s` passed.
    TimeLimit,
    /// The user stopped it.
    Interrupted,
    /// It could not go on, for this reason: a line, and below it what explains it, such as a traceback.
    Failed(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Solved => formatter.write_str("solved"),
            Self::StepLimit => formatter.write_str("step limit"),
            Self::TimeLimit => formatter.write_str("time limit"),
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Failed(why) => write!(formatter, "failed: {why}"),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The evaluation with the highest mean return.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BestEvaluation {
    /// Version of its parameters.
    pub version: u64,
    /// Environment steps that its parameters had seen.
    pub env_steps: u64,
    /// Its figures. Being the best of several, its mean tends to flatter the parameters.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// A finished run in a few lines (`Display`) or as an object in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Why it stopped.
    pub reason: StopReason,
    /// Seconds it took.
    pub wall_s: f64,
    /// Of those, seconds of training: without the start and without waiting for processes to leave. Rates are over these.
    pub training_s: f64,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Training episodes finished.
    pub episodes: u64,
    /// Processes that died and were replaced.
    pub restarts: u64,
    /// Number of evaluations.
    pub evaluations: u64,
    /// The best of them.
    pub best_evaluation: Option<BestEvaluation>,
    /// What held it back.
    pub bottleneck: Verdict,
    /// The run folder.
    pub folder: PathBuf,
    /// Files in it, relative to the folder.
    pub files: Vec<String>,
    /// Where the runs beside this one have their event files for TensorBoard.
    pub charts: PathBuf,
    /// What could not be written, in words.
    pub losses: Vec<String>,
    /// The command that plays what was learned; `None` when the run failed or nothing was saved.
    pub play: Option<String>,
}

impl Summary {
    fn per_second(&self, count: u64) -> f64 {
        if self.training_s > 0.0 { count as f64 / self.training_s } else { 0.0 }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: String| writeln!(formatter, "{name:<11} {text}");
        let reason = self.reason.to_string();
        let (reason, details) = reason.split_once('\n').unwrap_or((&reason, ""));
        let after = format!("{reason}, after {}", clock(self.wall_s));
        line("stopped", if details.is_empty() { after } else { format!("{after}\n{details}") })?;
        let episodes = grouped(self.episodes);
        line("steps", format!("{} ({}/s), {episodes} episodes", grouped(self.env_steps), short(self.per_second(self.env_steps))))?;
        line("updates", format!("{} ({}/s)", grouped(self.updates), short(self.per_second(self.updates))))?;
        line("evaluation", evaluation(self.best_evaluation.as_ref(), self.evaluations))?;
        line("bottleneck", self.bottleneck.to_string())?;
        if self.restarts > 0 {
            line("restarts", format!("{} processes died and were replaced", self.restarts))?;
        }
        for loss in &self.losses {
            line("lost", loss.clone())?;
        }
        line("written", format!("{}: {}", self.folder.display(), self.files.join(", ")))?;
        line("charts", format!("tensorboard --logdir {}", word(&self.charts)))?;
        if let Some(command) = &self.play {
            line("play it", command.clone())?;
        }
        Ok(())
    }
}

fn evaluation(best: Option<&BestEvaluation>, evaluations: u64) -> String {
    let Some((best, mean)) = best.and_then(|best| Some((best, best.statistics.return_mean?))) else { return "none".into() };
    let interval = match (best.statistics.ci95_low, best.statistics.ci95_high) {
        (Some(low), Some(high)) => format!(" (95 % interval {} to {}, {} episodes)", score(low), score(high), best.statistics.episodes),
        _ => String::new(),
    };
    let when = format!("version {}, {} steps", best.version, short(best.env_steps as f64));
    format!("best mean return {}{interval}, {when}, out of {}", score(mean), grouped(evaluations))
}
