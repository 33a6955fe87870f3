//! What the supervisor knows of a run at one moment: the input of every sink.
//!
//! Serialized, it is one line of `metrics.jsonl`: the parts of actors' and learners' time become flat keys
//! (`actor_environment_s`, `learner_compute_s`), and values that are not known yet are left out.

use std::ops::Sub;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::{ByKind, InsertedByProcess, share};
use crate::machine::machine_time::MachineTime;
use crate::metrics::{MOST_METRICS, Metric, Tally};

/// Totals and rates of a run; counters are summed over the processes, dead ones included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Seconds since the supervisor started.
    pub wall_s: f64,
    /// Seconds of training: from the first environment step until the run was told to end.
    pub training_s: f64,
    /// Seconds of `training_s` before the run went on from a checkpoint. They are no part of `effort_in_training`,
    /// which is of this life of the run alone.
    #[serde(skip)]
    pub earlier_training_s: f64,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Environment steps after which the run stops.
    pub stop_env_steps: u64,
    /// Seconds after which the run stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_wall_s: Option<f64>,
    /// Episodes finished by the actors.
    pub episodes: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Updates of the parameters before the run went on from a checkpoint.
    #[serde(skip)]
    pub earlier_updates: u64,
    /// Transitions inserted into the replay.
    pub inserted: u64,
    /// Transitions sampled from the replay.
    pub sampled: u64,
    /// Transitions, or steps of fragments, that learners learned from, each counted in every update that used it.
    pub learned: u64,
    /// Priority updates dropped because their transition had been overwritten.
    pub stale_priorities: u64,
    /// Priorities that were larger than the largest that the sum tree keeps, and were lowered to it.
    pub saturated_priorities: u64,
    /// Fragments that nobody learned from: too old when they were taken, or overwritten before.
    pub dropped_fragments: u64,
    /// Fragments that were put into a batch again after they had been taken.
    pub replayed_fragments: u64,
    /// Transitions now in the replay.
    pub replay_size: u64,
    /// Transitions that fit into the replay.
    pub replay_capacity: u64,
    /// Environment steps per second since the last snapshot.
    pub env_steps_per_s: f64,
    /// Environment steps per second since the first update in this life of the run, for the time left: random first steps take next to
    /// no time, and in a single moment there may be an evaluation alone, or updates alone. 0 before that update.
    #[serde(skip)]
    pub env_steps_per_s_of_learning: f64,
    /// Updates per second since the last snapshot.
    pub updates_per_s: f64,
    /// `learned` per second since the last snapshot: the update frame rate, updates times their batch.
    pub learned_per_s: f64,
    /// Cores that the run's processes computed on since the last snapshot, on average.
    pub cores_used: f64,
    /// Cores that each kind of process computed on since the last snapshot, on average.
    #[serde(skip)]
    pub cores_by_kind: ByKind,
    /// Share of the time of all the machine's cores that any program computed since the last snapshot; absent if the
    /// kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_busy_share: Option<f64>,
    /// Share of the newest moment in which the learners' GPUs computed, mean over the GPUs; absent if none is used,
    /// or if the driver says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_busy_share: Option<f64>,
    /// Bytes that are taken of the memory of the learners' GPUs, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_bytes: Option<u64>,
    /// Products that the networks of actors and learners computed per second since the last snapshot: multiplications
    /// with a weight, in forward passes and in those for gradients.
    pub products_per_s: f64,
    /// `products_per_s` as a share of what the cores that the run may use could compute if they did nothing else: how
    /// near the run is to that peak. Absent before the peak is measured, and if learners compute on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_share: Option<f64>,
    /// Mean return of the last training episodes (up to 100), with exploration; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_return_mean: Option<f64>,
    /// Mean length of the episodes of `train_return_mean`, in environment steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_length_mean: Option<f64>,
    /// Mean return of the newest evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_return_mean: Option<f64>,
    /// Standard deviation of the returns of the newest evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_return_std: Option<f64>,
    /// Episodes of the newest evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_episodes: Option<u64>,
    /// Parameter version of the newest evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_version: Option<u64>,
    /// Mean return of the best weights, over the fresh episodes that confirmed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_eval_return: Option<f64>,
    /// Lower end of the 95 % confidence interval of `best_eval_return`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_eval_ci95_low: Option<f64>,
    /// The mean return that ends the run once fresh episodes confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_eval_return: Option<f64>,
    /// The values of the algorithm's metrics. A snapshot that is read back from a line has none.
    #[serde(flatten, skip_deserializing)]
    pub metrics: Metrics,
    /// Exploration rate now (DQN, global exploration).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Importance-sampling exponent now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// Learning rate now.
    pub learning_rate: f64,
    /// Learning rate of the policy now, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_learning_rate: Option<f64>,
    /// Version of the newest published parameters.
    pub parameter_version: u64,
    /// Updates between the parameters that acted and the newest, mean over the inserted transitions.
    pub policy_lag_mean: f64,
    /// Largest policy lag seen.
    pub policy_lag_max: u64,
    /// What the actors spent their time on, summed over them, in seconds since the start of the run.
    #[serde(flatten)]
    pub actor_time: ActorTime,
    /// What the learners spent their time on, summed over them, in seconds since the start of the run.
    #[serde(flatten)]
    pub learner_time: LearnerTime,
    /// Processor time of the evaluator, in seconds since the supervisor started.
    pub evaluator_processor_s: f64,
    /// Processor time of the visualizer, in seconds since the supervisor started.
    pub visualizer_processor_s: f64,
    /// Processor time of the supervisor itself, in seconds since it began to observe the run.
    pub supervisor_processor_s: f64,
    /// What cores did since the supervisor started, for means since the last snapshot.
    #[serde(skip)]
    pub effort: Effort,
    /// `effort` spent while training, for means over training time.
    #[serde(skip)]
    pub effort_in_training: Effort,
    /// Products that the cores could compute per second, for `peak_share`; 0 if that is not known.
    #[serde(skip)]
    pub products_peak_per_s: u64,
    /// Actors alive now, attached ones included.
    pub actors: u64,
    /// Actors alive now that were attached from outside.
    pub attached: u64,
    /// Learners alive now.
    pub learners: u64,
    /// Processes that died, and were replaced unless the run ended first.
    pub restarts: u64,
    /// Whether training has ended and nothing but an evaluation of the last weights is waited for.
    #[serde(skip)]
    pub only_evaluates: bool,
    /// What each process inserted, for the closing report.
    #[serde(skip)]
    pub inserted_by_process: InsertedByProcess,
}

impl Snapshot {
    /// This snapshot with rates that are means since `before`, if time has passed since then.
    pub fn with_rates_since(self, before: &Self) -> Self {
        let elapsed_s = self.wall_s - before.wall_s;
        if elapsed_s <= 0.0 {
            return self;
        }
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_s;
        let effort = self.effort - before.effort;
        Self {
            env_steps_per_s: rate(self.env_steps, before.env_steps),
            updates_per_s: rate(self.updates, before.updates),
            learned_per_s: rate(self.learned, before.learned),
            ..self
        }
        .with_means_of(effort, elapsed_s)
    }

    /// This snapshot with rates that are means over the whole training. Rates of what cores did are means over the
    /// training of this life of the run.
    pub fn with_rates_of_training(self) -> Self {
        let effort = self.effort_in_training;
        let trained_here_s = self.training_s - self.earlier_training_s;
        Self {
            env_steps_per_s: self.per_training_second(self.env_steps),
            updates_per_s: self.per_training_second(self.updates),
            learned_per_s: self.per_training_second(self.learned),
            ..self
        }
        .with_means_of(effort, trained_here_s)
    }

    fn with_means_of(self, effort: Effort, seconds: f64) -> Self {
        let products_per_s = share(effort.products as f64, seconds);
        let peak_per_s = self.products_peak_per_s;
        Self {
            cores_used: share(effort.processor_s.of_run(), seconds),
            cores_by_kind: effort.processor_s / seconds,
            machine_busy_share: effort.machine_time.busy_share(),
            products_per_s,
            peak_share: (peak_per_s > 0).then(|| products_per_s / peak_per_s as f64),
            ..self
        }
    }

    /// `count` per second of training; 0 before there was any.
    fn per_training_second(&self, count: u64) -> f64 {
        share(count as f64, self.training_s)
    }
}

/// What cores did for a run and for other programs, in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Effort {
    /// Processor time of each kind of process, in seconds.
    pub processor_s: ByKind,
    /// Processor time of the whole machine, whoever used it.
    pub machine_time: MachineTime,
    /// Products that the networks of actors and learners computed.
    pub products: u64,
}

impl Sub for Effort {
    type Output = Self;

    /// The difference, never negative though the kernel's counts for the machine may fall.
    fn sub(self, before: Self) -> Self {
        Self {
            processor_s: self.processor_s - before.processor_s,
            machine_time: self.machine_time - before.machine_time,
            products: self.products.saturating_sub(before.products),
        }
    }
}

/// Names and values of an algorithm's metrics that are known; serialized as a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(pub Vec<(&'static str, f64)>);

impl Metrics {
    /// The value of a metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }
}

/// What is wrong with the metrics that an algorithm declares: too many, a name of a key that every run has, or one name
/// twice.
pub fn fault_of(metrics: &[Metric]) -> Option<String> {
    if metrics.len() > MOST_METRICS {
        return Some(format!("{} metrics, and {MOST_METRICS} have room", metrics.len()));
    }
    // A line with a text as the value of a known key is refused, since no key has a text.
    let is_taken = |name: &str| serde_json::from_value::<Snapshot>(json!({ name: "" })).is_err();
    metrics.iter().enumerate().find_map(|(index, metric)| match metric.name {
        name if is_taken(name) => Some(format!("a metric \"{name}\", which every run has (docs/metrics.md)")),
        name if metrics[..index].iter().any(|earlier| earlier.name == name) => Some(format!("two metrics \"{name}\"")),
        _ => None,
    })
}

impl From<Tally> for Metrics {
    fn from(tally: Tally) -> Self {
        Self(tally.known().map(|(metric, value)| (metric.name, value)).collect())
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// What actors spend their time on, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActorTime {
    /// Stepping environments.
    #[serde(rename = "actor_environment_s")]
    pub environment_s: f64,
    /// Taking over parameters and choosing actions.
    #[serde(rename = "actor_inference_s")]
    pub inference_s: f64,
    /// Staging and flushing.
    #[serde(rename = "actor_insert_s")]
    pub insert_s: f64,
    /// Waiting for the rate limiter.
    #[serde(rename = "actor_limiter_wait_s")]
    pub limiter_wait_s: f64,
    /// Processor time in all of the above.
    #[serde(rename = "actor_processor_s")]
    pub processor_s: f64,
    /// Time in all of the above in which the process was ready to run and every core that it may use was taken.
    #[serde(rename = "actor_core_wait_s")]
    pub core_wait_s: f64,
}

impl ActorTime {
    /// The sum of all activities, waiting included.
    pub fn total_s(&self) -> f64 {
        self.environment_s + self.inference_s + self.insert_s + self.limiter_wait_s
    }
}

/// What learners spend their time on, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LearnerTime {
    /// Drawing batches and writing priorities back.
    #[serde(rename = "learner_replay_s")]
    pub replay_s: f64,
    /// Forward and backward passes and the optimizer.
    #[serde(rename = "learner_compute_s")]
    pub compute_s: f64,
    /// Waiting for other learners and adding up gradients.
    #[serde(rename = "learner_exchange_s")]
    pub exchange_s: f64,
    /// Publishing parameters.
    #[serde(rename = "learner_publish_s")]
    pub publish_s: f64,
    /// Waiting for the rate limiter.
    #[serde(rename = "learner_limiter_wait_s")]
    pub limiter_wait_s: f64,
    /// Processor time in all of the above.
    #[serde(rename = "learner_processor_s")]
    pub processor_s: f64,
    /// Time in all of the above in which the process was ready to run and every core that it may use was taken.
    #[serde(rename = "learner_core_wait_s")]
    pub core_wait_s: f64,
}

impl LearnerTime {
    /// The sum of all activities, waiting included.
    pub fn total_s(&self) -> f64 {
        self.replay_s + self.compute_s + self.exchange_s + self.publish_s + self.limiter_wait_s
    }
}
