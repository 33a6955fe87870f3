//! Playing a saved policy again, outside any run.

mod acting;
mod error;
mod saved;

use std::fmt;
use std::path::Path;

use serde::Serialize;

pub use self::acting::{ActingPolicy, ObservationError, ObservedEnvironment};
pub use self::error::PlayError;
pub use self::saved::{SavedPolicy, Which};
use super::configured_environment::Look;
use super::{configured_environment, evaluator};
use crate::catalogue::Catalogue;
use crate::checkpoint::WeightsEvaluation;
use crate::environments::video::{FinishedVideo, RecordVideo};
use crate::environments::{Purpose, VectorEnvironment};
use crate::readable::grouped;
use crate::segment::system;
use crate::telemetry::ReturnStatistics;

/// How well a policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayedPolicy {
    /// Weights file, or the folder of the checkpoint; where its path is not UTF-8, nearly.
    pub weights: String,
    /// Number of the checkpoint that they were taken from, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// Whether they are the last ones of a run that has no best ones yet, though the best were asked for.
    pub instead_of_best: bool,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Updates in the weights.
    pub updates: u64,
    /// Environment steps of their run when they were published.
    pub environment_steps: u64,
    /// What their run said of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<WeightsEvaluation>,
    /// Whether the best actions were taken; drawn as the policy draws them, where the run has `evaluator.greedy = false`.
    pub greedy: bool,
    /// Seed of the environments.
    pub seed: u64,
    /// Mean, spread and confidence interval.
    #[serde(flatten)]
    pub statistics: ReturnStatistics,
    /// Every return.
    pub returns: Vec<f64>,
    /// How many episodes were cut off, and count as far as they came.
    pub cut_off: usize,
    /// Steps after which one is: `evaluator.episode_limit_steps`.
    pub episode_limit_steps: u32,
    /// The video of the first episode; absent until it is finished, and where none was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<FinishedVideo>,
}

impl fmt::Display for PlayedPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("unknown".into(), |value| format!("{value:.2}"));
        let ReturnStatistics { episodes, return_mean, return_std, return_min, return_max, ci95_low, ci95_high, .. } = self.statistics;
        writeln!(formatter, "policy      {} on {}, {} updates ({})", self.algorithm, self.environment, self.updates, self.weights)?;
        if self.instead_of_best {
            writeln!(formatter, "weights     the last ones: the run has confirmed none as its best")?;
        }
        if let Some(number) = self.checkpoint {
            let steps = grouped(self.environment_steps);
            writeln!(formatter, "weights     those of checkpoint {number}, after {steps} environment steps, the newest that are saved")?;
        }
        if let Some(WeightsEvaluation { return_mean, episodes, confirmed, .. }) = self.recorded {
            let fresh = if confirmed { "fresh " } else { "" };
            writeln!(formatter, "recorded    mean {return_mean:.2} over {episodes} {fresh}episodes of its run")?;
        }
        let actions = if self.greedy { "greedy" } else { "actions drawn" };
        writeln!(formatter, "episodes    {episodes}, {actions}, seed {}", self.seed)?;
        if self.cut_off > 0 {
            let limit_steps = self.episode_limit_steps;
            writeln!(formatter, "cut off     {} of them at step {limit_steps} (evaluator.episode_limit_steps)", self.cut_off)?;
        }
        if episodes == 1 {
            // One number has neither spread nor range.
            write!(formatter, "return      {}", number(return_mean))?;
        } else {
            writeln!(formatter, "return      mean {}, standard deviation {}", number(return_mean), number(return_std))?;
            writeln!(formatter, "interval    {} to {} (95 %, Student's t)", number(ci95_low), number(ci95_high))?;
            write!(formatter, "range       {} to {}", number(return_min), number(return_max))?;
        }
        if let Some(FinishedVideo { path, pictures }) = &self.video {
            write!(formatter, "\nvideo       {}, {pictures} pictures of the first episode", path.display())?;
        }
        Ok(())
    }
}

/// Let this process step the environment of the policy at `path`, or the one that the user has `named` for a file of weights; may start
/// the program anew, as [`configured_environment::become_ready`] does.
///
/// # Errors
/// There is no policy at `path`, the configuration of its run cannot be read, its environment is code that the weights alone name, or there
/// is no Python that fits.
pub fn become_ready(path: &Path, named: Option<&str>) -> Result<(), PlayError> {
    let (config, may_run_code) = saved::config_at(path, named)?;
    saved::check_code(&config, may_run_code)?;
    Ok(configured_environment::become_ready(&config)?)
}

/// Play the policy at `path`, a run folder or a weights file, for `episodes` episodes. What it names is looked up in `catalogue`, or the
/// environment that the user has `named` for the file. A `video` of the first one changes none of them, and is left to be finished: returns
/// are told even if that fails.
///
/// # Errors
/// What cannot be played, and [`PlayError::Interrupted`] at a stop signal, where those are handled.
pub fn play(
    catalogue: &Catalogue,
    path: &Path,
    which: Which,
    named: Option<&str>,
    episodes: usize,
    seed: u64,
    video: Option<&RecordVideo>,
) -> Result<PlayedPolicy, PlayError> {
    let saved = SavedPolicy::open(path, which, named)?;
    saved::check_code(&saved.config, saved.may_run_code)?;
    let episodes = episodes.max(1);
    let count = episodes.min(saved.config.evaluator.environments);
    let make = |index: usize| {
        let look = match video {
            Some(video) if index == 0 => Look::Recorded(video),
            // All are made alike, so that they are of one kind.
            Some(_) => Look::Drawn,
            None => Look::Never,
        };
        configured_environment::make(catalogue, &saved.config, Purpose::Evaluation, look)
    };
    let mut environments = VectorEnvironment::new((0..count).map(make).collect::<Result<_, _>>()?)?;
    let algorithm = catalogue.algorithms().build(&saved.config, environments.spec())?;
    let mut policy = saved.policy_of(&*algorithm)?;
    let exploration = evaluator::exploration(&saved.config, &*algorithm, saved.weights.metadata.environment_steps);
    let played = evaluator::play(&mut environments, &mut *policy, episodes, seed, exploration, || !system::stop_requested())?;
    if let Some(signal) = system::stop_signal() {
        return Err(PlayError::Interrupted { signal });
    }
    let metadata = saved.weights.metadata;
    Ok(PlayedPolicy {
        weights: saved.path.display().to_string(),
        checkpoint: saved.checkpoint,
        instead_of_best: saved.instead_of_best,
        environment: saved.config.environment.id,
        algorithm: metadata.algorithm,
        updates: metadata.updates,
        environment_steps: metadata.environment_steps,
        recorded: metadata.evaluation,
        greedy: saved.config.evaluator.greedy,
        seed,
        statistics: ReturnStatistics::of(&played.returns, &played.lengths),
        returns: played.returns,
        cut_off: played.cut_off,
        episode_limit_steps: saved.config.evaluator.episode_limit_steps,
        video: None,
    })
}
