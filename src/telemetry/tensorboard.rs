//! Which scalar of a run appears under which tag in TensorBoard; the horizontal axis is always the environment steps.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use super::event_file::{EventFile, unix_seconds};
use super::hyper_parameters::{PLUGIN, PluginData, TAG};
use super::run_record::machine_name;
use super::{Evaluation, EvaluationKind, Snapshot, TelemetryError};

/// How the names of event files begin.
const PREFIX: &str = "events.out.tfevents.";

/// The event file of a run.
#[derive(Debug)]
pub struct TensorBoard {
    file: EventFile,
}

impl TensorBoard {
    /// Creates the event file, with the keys of the resolved configuration as hyper-parameters. For a run that goes
    /// on, `from` is the number of environment steps from which it does.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(path: &Path, config_toml: &str, from: Option<u64>) -> Result<Self, TelemetryError> {
        let mut file = EventFile::create(path)?;
        file.for_plugin(PLUGIN, TAG, &PluginData::of_configuration(config_toml, unix_seconds()))?;
        if let Some(env_steps) = from {
            // Values at this step itself stay, such as the evaluation of the last weights.
            file.begin_at(env_steps.saturating_add(1))?;
        }
        Ok(Self { file })
    }

    /// Writes the scalars of a moment.
    ///
    /// # Errors
    /// The disk is full or failing.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), TelemetryError> {
        self.file.scalars(snapshot.env_steps, snapshot_scalars(snapshot))
    }

    /// Writes the scalars of an evaluation, at the environment steps that its parameters had seen.
    ///
    /// # Errors
    /// The disk is full or failing.
    pub fn evaluation(&mut self, evaluation: &Evaluation) -> Result<(), TelemetryError> {
        self.file.scalars(evaluation.env_steps, evaluation_scalars(evaluation))
    }
}

/// The path of an event file in `folder`, with the usual name: the time, the host and the process.
pub fn event_file_path(folder: &Path, unix_seconds: i64) -> PathBuf {
    let host = machine_name().replace('/', "_");
    folder.join(format!("{PREFIX}{unix_seconds:010}.{host}.{}.0", std::process::id()))
}

/// The second for the name of one more event file in `folder`: `now`, or one more than the newest file has. Readers
/// take files in the order of their names, and the clock may have been set back.
pub(super) fn second_of_another(folder: &Path, now: i64) -> i64 {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let seconds = names.filter_map(|name| name.to_str()?.strip_prefix(PREFIX)?.split('.').next()?.parse::<i64>().ok());
    seconds.max().map_or(now, |newest| now.max(newest.saturating_add(1)))
}

fn snapshot_scalars(snapshot: &Snapshot) -> Vec<(Cow<'static, str>, f64)> {
    let actor = &snapshot.actor_time;
    let actor_s = actor.total_s();
    let learner = &snapshot.learner_time;
    let learner_s = learner.total_s();
    let always = [
        ("rollout/episodes", snapshot.episodes as f64),
        ("rollout/policy_lag_mean", snapshot.policy_lag_mean),
        ("rollout/policy_lag_max", snapshot.policy_lag_max as f64),
        ("train/updates", snapshot.updates as f64),
        ("train/parameter_version", snapshot.parameter_version as f64),
        ("train/learning_rate", snapshot.learning_rate),
        ("replay/size", snapshot.replay_size as f64),
        ("replay/stale_priorities", snapshot.stale_priorities as f64),
        ("replay/saturated_priorities", snapshot.saturated_priorities as f64),
        ("replay/dropped_fragments", snapshot.dropped_fragments as f64),
        ("replay/replayed_fragments", snapshot.replayed_fragments as f64),
        ("time/wall_s", snapshot.wall_s),
        ("time/training_s", snapshot.training_s),
        ("time/env_steps_per_s", snapshot.env_steps_per_s),
        ("time/updates_per_s", snapshot.updates_per_s),
        ("time/learned_per_s", snapshot.learned_per_s),
        ("time/cores_used", snapshot.cores_used),
        ("time/products_per_s", snapshot.products_per_s),
        ("processes/actors", snapshot.actors as f64),
        ("processes/attached", snapshot.attached as f64),
        ("processes/learners", snapshot.learners as f64),
        ("processes/restarts", snapshot.restarts as f64),
    ];
    let sometimes = [
        ("rollout/episode_return_mean", snapshot.train_return_mean),
        ("rollout/episode_length_mean", snapshot.train_length_mean),
        ("rollout/epsilon", snapshot.epsilon),
        ("train/policy_learning_rate", snapshot.policy_learning_rate),
        ("time/machine_busy_share", snapshot.machine_busy_share),
        ("time/peak_share", snapshot.peak_share),
        ("time/gpu_busy_share", snapshot.gpu_busy_share),
        ("time/gpu_memory_bytes", snapshot.gpu_memory_bytes.map(|bytes| bytes as f64)),
        ("replay/beta", snapshot.beta),
        ("replay/samples_per_insert", share_if_any(snapshot.sampled as f64, snapshot.inserted as f64)),
        ("evaluation/best_return_mean", snapshot.best_eval_return),
        ("evaluation/best_return_ci95_low", snapshot.best_eval_ci95_low),
        ("actor_time/environment_share", share_if_any(actor.environment_s, actor_s)),
        ("actor_time/inference_share", share_if_any(actor.inference_s, actor_s)),
        ("actor_time/insert_share", share_if_any(actor.insert_s, actor_s)),
        ("actor_time/limiter_wait_share", share_if_any(actor.limiter_wait_s, actor_s)),
        ("learner_time/replay_share", share_if_any(learner.replay_s, learner_s)),
        ("learner_time/compute_share", share_if_any(learner.compute_s, learner_s)),
        ("learner_time/exchange_share", share_if_any(learner.exchange_s, learner_s)),
        ("learner_time/publish_share", share_if_any(learner.publish_s, learner_s)),
        ("learner_time/limiter_wait_share", share_if_any(learner.limiter_wait_s, learner_s)),
    ];
    let named = always.into_iter().chain(known(sometimes)).map(|(tag, value)| (Cow::from(tag), value));
    let cores = snapshot.cores_by_kind.named().map(|(kind, cores)| (Cow::from(format!("cores/{kind}")), cores));
    let metrics = snapshot.metrics.0.iter().map(|(name, value)| (Cow::from(format!("train/{name}")), *value));
    named.chain(cores).chain(metrics).collect()
}

/// The scalars of an evaluation. Confirmations have tags of their own: only good weights are confirmed, which would
/// bend the curve of routine evaluations.
fn evaluation_scalars(evaluation: &Evaluation) -> Vec<(String, f64)> {
    let statistics = evaluation.statistics();
    let group = match evaluation.kind {
        EvaluationKind::Routine => "evaluation",
        EvaluationKind::Confirmation => "confirmation",
    };
    let scalars = known([
        ("return_mean", statistics.return_mean),
        ("return_std", statistics.return_std),
        ("return_min", statistics.return_min),
        ("return_max", statistics.return_max),
        ("return_ci95_low", statistics.ci95_low),
        ("return_ci95_high", statistics.ci95_high),
        ("length_mean", statistics.length_mean),
    ]);
    scalars.map(|(name, value)| (format!("{group}/{name}"), value)).collect()
}

fn known(scalars: impl IntoIterator<Item = (&'static str, Option<f64>)>) -> impl Iterator<Item = (&'static str, f64)> {
    scalars.into_iter().filter_map(|(tag, value)| Some((tag, value?)))
}

/// `part` as a share of `whole`; `None` if there is no whole.
fn share_if_any(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
