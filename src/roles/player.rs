//! Playing a saved policy again, outside any run.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::evaluator::MOST_ENVIRONMENTS;
use super::run::RoleError;
use super::{environments, evaluator};
use crate::algorithms::{AlgorithmError, LATENT};
use crate::catalogue::Catalogue;
use crate::checkpoint::{Policy, WeightsError, WeightsEvaluation};
use crate::config::schema::AutoEncoderConfig;
use crate::config::{Config, ConfigErrors};
use crate::environments::film::{Film, FilmError, FinishedFilm};
use crate::environments::{EnvironmentError, Purpose};
use crate::telemetry::{Evaluation, RunFolder, Statistics, TelemetryError};

/// Which weights of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The best that fresh episodes confirmed; the last ones where none were.
    Best,
    /// The last ones.
    Last,
}

/// Why a policy could not be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The weights cannot be read.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The run folder cannot be read.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The environment is not there.
    #[error("{}", environments::advised(.0, EnvironmentError::is_unknown))]
    Environment(#[from] EnvironmentError),
    /// The algorithm is not there.
    #[error("{}", environments::advised(.0, AlgorithmError::is_unknown))]
    Algorithm(#[from] AlgorithmError),
    /// Playing failed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The film cannot be made.
    #[error(transparent)]
    Film(#[from] FilmError),
    /// The weights are not of the network that the configuration describes.
    #[error(
        "{path} holds a network of {found} parameters and {algorithm} on {environment} needs {expected}; it was trained with another [network]"
    )]
    Shape {
        /// Weights file.
        path: PathBuf,
        /// Parameters in it.
        found: usize,
        /// Parameters needed.
        expected: usize,
        /// Algorithm.
        algorithm: String,
        /// Environment.
        environment: String,
    },
}

/// How well a policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Weights file.
    pub weights: PathBuf,
    /// Whether they are the last ones of a run that has no best ones yet, though the best were asked for.
    pub instead_of_best: bool,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Updates in the weights.
    pub updates: u64,
    /// What their run said of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<WeightsEvaluation>,
    /// Seed of the environments.
    pub seed: u64,
    /// Mean, spread and confidence interval.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Every return.
    pub returns: Vec<f64>,
    /// The film of the first episode, where one was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub film: Option<FinishedFilm>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("unknown".into(), |value| format!("{value:.2}"));
        let Statistics { episodes, return_mean, return_std, return_min, return_max, ci95_low, ci95_high, .. } = self.statistics;
        writeln!(
            formatter,
            "policy      {} on {}, {} updates ({})",
            self.algorithm,
            self.environment,
            self.updates,
            self.weights.display()
        )?;
        if self.instead_of_best {
            writeln!(formatter, "weights     the last ones: the run has no best ones, because it ended before any were confirmed")?;
        }
        if let Some(WeightsEvaluation { return_mean, episodes, confirmed, .. }) = self.recorded {
            let fresh = if confirmed { "fresh " } else { "" };
            writeln!(formatter, "recorded    mean {return_mean:.2} over {episodes} {fresh}episodes of its run")?;
        }
        writeln!(formatter, "episodes    {episodes}, greedy, seed {}", self.seed)?;
        writeln!(formatter, "return      mean {}, standard deviation {}", number(return_mean), number(return_std))?;
        writeln!(formatter, "interval    {} to {} (95 %, Student's t)", number(ci95_low), number(ci95_high))?;
        write!(formatter, "range       {} to {}", number(return_min), number(return_max))?;
        if let Some(FinishedFilm { path, pictures }) = &self.film {
            write!(formatter, "\nfilm        {}, {pictures} pictures of the first episode", path.display())?;
        }
        Ok(())
    }
}

/// Let this process step the environment of the policy at `path`; may start the program anew, as
/// [`environments::become_ready`] does.
pub fn become_ready(path: &Path) -> Result<(), PlayError> {
    Ok(environments::become_ready(&config_at(path)?)?)
}

/// Play the policy at `path`, a run folder or a weights file, for `episodes` episodes. What it names is looked up in `catalogue`; a film of
/// the first one changes none of them.
pub fn play(
    catalogue: &Catalogue,
    path: &Path,
    which: Which,
    episodes: usize,
    seed: u64,
    film: Option<Film>,
) -> Result<Outcome, PlayError> {
    let (weights, instead_of_best) = weights_at(path, which)?;
    let saved = Policy::load(&weights)?;
    let mut config = config_at(path)?;
    config.algorithm.name.clone_from(&saved.metadata.algorithm);
    config.network.convolutions = saved.spec.convolutions();
    config.network.hidden = saved.spec.hidden();
    config.network.dueling = saved.spec.is_dueling();
    // Any weight: whoever acts has no decoder.
    config.auto_encoder =
        saved.spec.head_outputs(LATENT).map_or_else(AutoEncoderConfig::default, |latent| AutoEncoderConfig { coefficient: 1.0, latent });
    config.algorithm.normalise_observations = saved.metadata.input_scaling.is_some();
    let episodes = episodes.max(1);
    let most = episodes.min(MOST_ENVIRONMENTS);
    let mut environments = environments::make_filmed(catalogue, &config, most, Purpose::Evaluation, film.as_ref())?;
    let algorithm = catalogue.algorithms().build(&config, environments.spec())?;
    let expected = algorithm.network().parameter_count();
    if saved.parameters.len() != expected {
        return Err(PlayError::Shape {
            path: weights,
            found: saved.parameters.len(),
            expected,
            algorithm: saved.metadata.algorithm,
            environment: saved.metadata.environment,
        });
    }
    let mut policy = algorithm.policy()?;
    policy.set_parameters(&saved.published());
    let played = evaluator::play(&mut environments, &mut *policy, episodes, seed, evaluator::exploration(&config), || true)?;
    let evaluation = Evaluation { returns: played.returns, lengths: played.lengths, ..Evaluation::default() };
    Ok(Outcome {
        weights,
        instead_of_best,
        environment: saved.metadata.environment,
        algorithm: saved.metadata.algorithm,
        updates: saved.metadata.updates,
        recorded: saved.metadata.evaluation,
        seed,
        statistics: evaluation.statistics(),
        returns: evaluation.returns,
        film: film.map(Film::finish).transpose()?,
    })
}

/// The weights file, and whether it stands in for the best weights.
fn weights_at(path: &Path, which: Which) -> Result<(PathBuf, bool), PlayError> {
    if !path.is_dir() {
        return Ok((path.to_owned(), false));
    }
    let folder = RunFolder::open(path)?;
    let (best, last) = (folder.best_weights(), folder.last_weights());
    Ok(match which {
        Which::Best if !best.exists() && last.exists() => (last, true),
        Which::Best => (best, false),
        Which::Last => (last, false),
    })
}

/// The configuration of the run, or for weights alone the defaults of their environment.
fn config_at(path: &Path) -> Result<Config, PlayError> {
    if path.is_dir() {
        return Ok(Config::load(&RunFolder::open(path)?.config(), &[])?.config);
    }
    let mut config = Config::for_environment(&Policy::load(path)?.metadata.environment);
    environments::resolve(&mut config, Path::new(""))?;
    Ok(config)
}
