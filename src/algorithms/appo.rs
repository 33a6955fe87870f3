//! APPO: asynchronous proximal policy optimization. Actors and learners as in IMPALA (Espeholt et al. 2018), whose
//! V-trace corrects for policies that lag behind; the clipped surrogate of PPO (Schulman et al. 2017) against a target
//! network; and batches that are used several times, as in IMPACT (Luo et al. 2020, "IMPACT: Importance Weighted
//! Asynchronous Architectures with Clipped Target Networks").
//!
//! Per step, with the policy mu that acted, that of the target network, and the value V:
//! - V-trace from mu to the target network's policy gives the value's target v and the advantage A;
//! - the loss is `surrogate(A) + c_v (V - v)^2 / 2 - c_e entropy + c_k KL(target || policy)`, its mean over the steps
//!   of all learners.
//!
//! Choices, beside what the configuration offers:
//! - the deviations of a continuous policy are outputs of its network;
//! - the policy's output layer starts at a hundredth of the usual size, so that the first policy is nearly uniform;
//! - a continuous action is kept as it was drawn, and the environment gets it within its bounds.
//!
//! An auto-encoder (`auto_encoder.rs`) adds its reconstruction to the loss. docs/appo.md has the measured scores.

use std::ops::Range;

use super::auto_encoder::RECONSTRUCTION_LOSS;
use super::distribution::{Distribution, Slopes};
use super::policy_gradient::{Kind, entropy_coefficient};
use super::state::{StateReader, StateWriter};
use super::step_sums::{CLIPPED, DIVERGENCE, EXPLAINED_VARIANCE, Explained, StepSums, VALUE_LOSS, mean_and_deviation};
use super::surrogate::LogProbabilities;
use super::temporal_difference::{ACTION_STD, ENTROPY, GRADIENT_NORM, POLICY_LOSS, mean_factor};
use super::trained::WithTarget;
use super::trained_policy::TrainedPolicy;
use super::v_trace::{Traced, TracedStep, VTrace};
use super::{Learning, Random};
use crate::config::Config;
use crate::config::schema::{AlgorithmConfig, FragmentsConfig};
use crate::experience::fragment::FragmentShape;
use crate::experience::{FragmentBatch, Reuse};
use crate::metrics::{Metric, Share};
use crate::replay::Batch;
use crate::values::ValueBuffer;

const IMPORTANCE_WEIGHT: Metric = Metric::mean("importance_weight");
const METRICS: &[Metric] = &[
    POLICY_LOSS,
    VALUE_LOSS,
    EXPLAINED_VARIANCE,
    ENTROPY,
    ACTION_STD,
    DIVERGENCE,
    CLIPPED,
    IMPORTANCE_WEIGHT,
    RECONSTRUCTION_LOSS,
    GRADIENT_NORM,
];

/// Smallest and largest weight of the divergence, which `adapt_penalty` changes.
const PENALTY: std::ops::RangeInclusive<f32> = 1e-4..=1e2;

/// APPO as `config` describes it.
pub(super) fn kind(config: &Config) -> Kind {
    let FragmentsConfig { kept_batches, uses, max_policy_lag_updates, .. } = config.fragments;
    Kind {
        name: "appo",
        metrics: METRICS,
        reuse: Reuse {
            kept_batches,
            uses,
            max_policy_lag_updates: Some(max_policy_lag_updates),
            most_waiting: config.most_waiting_fragments(),
            replayed: config.replayed_fragments(),
            retained: config.retained_fragments(),
        },
        with_target: WithTarget::Yes,
        // The penalty.
        further_state_values: 1,
        learning: |settings, shape, distribution, policy| Box::new(AppoLearning::new(settings, shape, distribution, policy)),
    }
}

/// The learner's side of APPO.
struct AppoLearning {
    settings: AlgorithmConfig,
    trace: VTrace,
    shape: FragmentShape,
    distribution: Distribution,
    policy: TrainedPolicy,
    target_interval_updates: u64,
    clip_ratio: f32,
    value_coefficient: f32,
    normalise_advantages: bool,
    entropy_coefficient: f32,
    /// Weight of the divergence in the loss; 0 without a target for the divergence.
    penalty: f32,
    /// Batches prepared so far; a batch is numbered by it.
    prepared: u64,
    target_cache: TargetCache,
    block: Block,
}

/// A part of a prepared batch: the number of the batch, and the part's first fragment.
type PartName = (u64, usize);

/// The target network's policy outputs for parts of batches: a part may be learned from again, and its outputs stay the
/// same until the target network changes.
#[derive(Default)]
struct TargetCache {
    /// Outputs of each part. An entry without a name is free: its buffer is used again.
    parts: Vec<(Option<PartName>, Vec<f32>)>,
}

impl TargetCache {
    fn get(&self, part: PartName) -> Option<&[f32]> {
        self.parts.iter().find(|(name, _)| *name == Some(part)).map(|(_, outputs)| outputs.as_slice())
    }

    fn insert(&mut self, part: PartName, outputs: impl Iterator<Item = f32>) {
        let free = self.parts.iter().position(|(name, _)| name.is_none());
        let place = free.unwrap_or_else(|| {
            self.parts.push((None, Vec::new()));
            self.parts.len() - 1
        });
        let (name, values) = &mut self.parts[place];
        *name = Some(part);
        values.clear();
        values.extend(outputs);
    }

    fn forget_batch(&mut self, number: u64) {
        self.parts.iter_mut().for_each(|(name, _)| *name = name.filter(|&(batch, _)| batch != number));
    }

    fn clear(&mut self) {
        self.parts.iter_mut().for_each(|(name, _)| *name = None);
    }
}

/// Some fragments on their way through the network. Each has a row for every step and one for where the last step led.
struct Block {
    /// Per fragment: its place in the batch, its first row, and its steps.
    fragments: Vec<(usize, usize, usize)>,
    rows: usize,
    /// The rows of steps.
    step_rows: Vec<usize>,
    inputs: ValueBuffer,
    outputs: Vec<f32>,
    target_outputs: Vec<f32>,
    /// Probabilities of the actions in one row: of the policy, and of the target network's.
    probabilities: [Vec<f32>; 2],
    output_gradient: Vec<f32>,
    steps: Vec<TracedStep>,
    traced: Vec<Traced>,
}

impl AppoLearning {
    fn new(settings: &AlgorithmConfig, shape: &FragmentShape, distribution: Distribution, policy: TrainedPolicy) -> Self {
        let trace = VTrace {
            max_importance_weight: settings.max_importance_weight as f32,
            max_trace_weight: settings.max_trace_weight as f32,
            decay: settings.trace_decay("appo") as f32,
        };
        Self {
            trace,
            shape: shape.clone(),
            distribution,
            policy,
            target_interval_updates: settings.target_networks("appo").interval_updates,
            clip_ratio: settings.clip_ratio("appo") as f32,
            value_coefficient: settings.value_coefficient("appo") as f32,
            normalise_advantages: settings.normalises_advantages("appo"),
            entropy_coefficient: settings.entropy_start as f32,
            penalty: if settings.kl_target.is_some() { 1.0 } else { 0.0 },
            prepared: 0,
            target_cache: TargetCache::default(),
            block: Block {
                fragments: Vec::new(),
                rows: 0,
                step_rows: Vec::new(),
                inputs: ValueBuffer::zeros(shape.element, 0),
                outputs: Vec::new(),
                target_outputs: Vec::new(),
                probabilities: [Vec::new(), Vec::new()],
                output_gradient: Vec::new(),
                steps: Vec::new(),
                traced: Vec::new(),
            },
            settings: settings.clone(),
        }
    }

    /// Put the observations of the fragments in `range` together, and ask both networks about them.
    fn evaluate(&mut self, batch: &Batch, range: Range<usize>) {
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let shape = &self.shape;
        let part = (batch.number, range.start);
        let outputs = self.policy.outputs();
        let policy = self.distribution.outputs();
        let block = &mut self.block;
        block.fragments.clear();
        block.step_rows.clear();
        block.rows = 0;
        for fragment in range {
            let length = trajectories.length(fragment);
            block.fragments.push((fragment, block.rows, length));
            block.step_rows.extend(block.rows..block.rows + length);
            block.rows += length + 1;
        }
        let most_rows = block.fragments.len() * (shape.steps + 1);
        block.inputs.grow(most_rows * shape.observation_length());
        for &(fragment, first, length) in &block.fragments {
            for step in 0..=length {
                trajectories.write_observation(fragment, step, block.inputs.row_mut(first + step, shape.observation_length()));
            }
        }
        for buffer in [&mut block.outputs, &mut block.target_outputs, &mut block.output_gradient] {
            buffer.resize(block.rows * outputs, 0.0);
        }
        let inputs = block.inputs.values().first(block.rows * shape.observation_length());
        if let Some(cached) = self.target_cache.get(part) {
            let rows = block.target_outputs.chunks_exact_mut(outputs).zip(cached.chunks_exact(policy));
            rows.for_each(|(row, cached)| row[..policy].copy_from_slice(cached));
        } else {
            self.policy.infer_target(inputs, block.rows, &mut block.target_outputs);
            if batch.number > 0 {
                let policy_outputs = block.target_outputs.chunks_exact(outputs).flat_map(|row| &row[..policy]).copied();
                self.target_cache.insert(part, policy_outputs);
            }
        }
        self.policy.forward(inputs, block.rows, &mut block.outputs);
    }

    /// Targets and advantages of the block's steps, a row for each row of the network.
    fn trace(&mut self, batch: &Batch) {
        let outputs = self.policy.outputs();
        let value = self.distribution.outputs();
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let gamma = self.settings.gamma as f32;
        let Block { fragments, rows, step_rows, outputs: online, target_outputs, steps, traced, .. } = &mut self.block;
        traced.clear();
        traced.resize(*rows, Traced::default());
        for &(fragment, first, length) in &*fragments {
            steps.clear();
            for step in 0..length {
                let row = (first + step) * outputs;
                let log_probability =
                    self.distribution.log_probability(&target_outputs[row..row + value], trajectories.action(fragment, step));
                steps.push(TracedStep {
                    reward: trajectories.reward(fragment, step),
                    discount: if trajectories.is_terminated(fragment, step) { 0.0 } else { gamma },
                    value: online[row + value],
                    importance_weight: (log_probability - trajectories.log_probability(fragment, step)).exp(),
                });
            }
            let bootstrap_value = online[(first + length) * outputs + value];
            self.trace.trace(steps, bootstrap_value, &mut traced[first..first + length]);
        }
        // A single step would always have an advantage of zero.
        if self.normalise_advantages && step_rows.len() > 1 {
            let (mean, deviation) = mean_and_deviation(step_rows.iter().map(|&row| traced[row].advantage));
            step_rows.iter().for_each(|&row| traced[row].advantage = (traced[row].advantage - mean) / deviation);
        }
    }

    /// The gradient of the block's losses with respect to the network's outputs; the metrics go to `share`, and what the
    /// values explain to `explained`.
    fn loss_gradient(&mut self, batch: &Batch, share: &mut Share, explained: &mut Explained) {
        let outputs = self.policy.outputs();
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let mut sums = StepSums::of([POLICY_LOSS, VALUE_LOSS, ENTROPY, DIVERGENCE, CLIPPED, IMPORTANCE_WEIGHT]);
        let Block { fragments, outputs: online, target_outputs, probabilities, output_gradient, traced, .. } = &mut self.block;
        let [online_probabilities, target_probabilities] = probabilities;
        output_gradient.fill(0.0);
        for &(fragment, first, length) in &*fragments {
            for step in 0..length {
                let row = (first + step) * outputs;
                let policy = row..row + self.distribution.outputs();
                let value = policy.end;
                let online_policy = self.distribution.describe(&online[policy.clone()], online_probabilities);
                let target_policy = self.distribution.describe(&target_outputs[policy.clone()], target_probabilities);
                let action = trajectories.action(fragment, step);
                let Traced { target, advantage } = traced[first + step];
                let log_probabilities = LogProbabilities {
                    online: online_policy.log_probability(action),
                    target: target_policy.log_probability(action),
                    acted: trajectories.log_probability(fragment, step),
                };
                let policy_loss = self.settings.surrogate.at(log_probabilities, advantage, self.clip_ratio);
                let error = online[value] - target;
                explained.add(target, error);
                output_gradient[value] = self.value_coefficient * error;
                let slopes = Slopes { log_probability: policy_loss.slope, entropy: -self.entropy_coefficient, divergence: self.penalty };
                online_policy.add_gradient(action, &target_policy, slopes, &mut output_gradient[policy]);
                let values = [
                    policy_loss.loss,
                    0.5 * error * error,
                    online_policy.entropy,
                    online_policy.divergence(&target_policy),
                    if policy_loss.is_clipped { 1.0 } else { 0.0 },
                    (log_probabilities.target - log_probabilities.acted).exp().min(self.trace.max_importance_weight),
                ];
                sums.add(values.map(f64::from), online_policy.deviation());
            }
        }
        sums.report(share);
    }

    /// Add the gradient of the block's losses with respect to everything that learns to `gradient`.
    fn backward(&mut self, gradient: &mut [f32], share: &mut Share) {
        let Block { rows, step_rows, inputs, outputs, output_gradient, .. } = &mut self.block;
        let seen = inputs.values().first(*rows * self.shape.observation_length());
        self.policy.add_gradient(seen, step_rows, outputs, output_gradient, gradient, share);
    }

    /// Adapt the penalty to the divergence of an update: up if that is above twice its target,
    /// down if it is below half.
    fn adapt_penalty(&mut self, total: &Share) {
        let (Some(target), Some(divergence)) = (self.settings.kl_target, total.tally.get(DIVERGENCE.name)) else { return };
        if divergence > 2.0 * target {
            self.penalty *= 1.5;
        } else if divergence < 0.5 * target {
            self.penalty *= 0.5;
        }
        self.penalty = self.penalty.clamp(*PENALTY.start(), *PENALTY.end());
    }
}

impl Learning for AppoLearning {
    fn published(&mut self) -> &[f32] {
        self.policy.published()
    }

    fn prepare(&mut self, batch: &mut Batch) {
        // The buffer of a batch that was used up is used again, and still has that batch's number.
        self.target_cache.forget_batch(batch.number);
        self.prepared += 1;
        batch.number = self.prepared;
    }

    fn schedule(&mut self, env_steps: u64) {
        self.entropy_coefficient = entropy_coefficient(&self.settings, env_steps);
    }

    fn gradient(&mut self, batch: &Batch, _random: &mut Random, gradient: &mut [f32]) -> Share {
        let mut share = Share { largest_weight: 1.0, ..Share::new(METRICS) };
        let fragments = batch.rows();
        // Advantages are normalised over all fragments, which therefore need to be one block.
        let at_once = if self.normalise_advantages { fragments } else { (self.policy.rows_at_once() / (self.shape.steps + 1)).max(1) };
        self.policy.begin_gradient();
        let mut explained = Explained::default();
        for first in (0..fragments).step_by(at_once) {
            self.evaluate(batch, first..(first + at_once).min(fragments));
            self.trace(batch);
            self.loss_gradient(batch, &mut share, &mut explained);
            self.backward(gradient, &mut share);
        }
        explained.report(&mut share.tally);
        share
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let norm = self.policy.step(gradient, mean_factor(total), learning_rate);
        if self.policy.steps().is_multiple_of(self.target_interval_updates) {
            // The policy is as far from the target network now as it gets.
            self.adapt_penalty(total);
            self.policy.copy_to_target();
            self.target_cache.clear();
        }
        total.tally.add(GRADIENT_NORM, f64::from(norm));
        norm
    }

    fn save(&self, state: &mut [f32]) {
        let mut writer = StateWriter::new(state);
        self.policy.save(&mut writer);
        writer.values(&[self.penalty]);
    }

    fn restore(&mut self, state: &[f32]) {
        let mut reader = StateReader::new(state);
        self.policy.restore(&mut reader);
        self.target_cache.clear();
        self.penalty = reader.values(1)[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::OnFull;

    #[test]
    fn fragments_are_reused_as_the_configuration_says() {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = "appo".into();
        (config.actor.count, config.actor.environments, config.actor.attach_slots) = (2, 10, 0);
        config.learner.batch_size = 64;
        config.fragments = FragmentsConfig {
            length_steps: 8,
            capacity: Some(500),
            on_full: OnFull::Wait,
            max_policy_lag_updates: 7,
            kept_batches: 3,
            uses: 5,
            replay_share: 0.5,
            retained: Some(40),
        };
        let expected =
            Reuse { kept_batches: 3, uses: 5, max_policy_lag_updates: Some(7), most_waiting: Some(480), replayed: 4, retained: 40 };
        assert_eq!(kind(&config).reuse, expected);
        (config.fragments.on_full, config.fragments.replay_share) = (OnFull::DropOldest, 0.0);
        assert_eq!(kind(&config).reuse, Reuse { most_waiting: None, replayed: 0, retained: 0, ..expected });
    }
}
