//! PPO: proximal policy optimization (Schulman et al. 2017, algorithm 1), the synchronous original of which APPO is the
//! asynchronous heir.
//!
//! A batch of fragments is learned from in several passes, each in another order and in parts that are an update each.
//! Before the first pass values and advantages are estimated once, by generalized advantage estimation (Schulman et al.
//! 2016, equation 16). Per step, with the policy mu that acted, the advantage A and the return v, the loss is
//! `-min(A R, A clip(R, 1 - eps, 1 + eps)) + c_v (V - v)^2 / 2 - c_e entropy` with `R = pi(a) / mu(a)`.
//!
//! Choices, beside what the configuration offers, are APPO's about network, first policy and continuous actions, and:
//! - actors go on while a batch is learned from, and wait once another is complete, so what is learned from is about
//!   one batch old. With `actor.count = 0` nobody acts meanwhile, as in the original;
//! - values are not clipped, and no divergence ends the passes early.
//!
//! An auto-encoder (`auto_encoder.rs`) adds its reconstruction to the loss. docs/ppo.md has the measured scores.

use rand::seq::SliceRandom;

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
use crate::config::schema::{AlgorithmConfig, Surrogate};
use crate::experience::fragment::FragmentShape;
use crate::experience::{FragmentBatch, Reuse};
use crate::metrics::{Metric, Share};
use crate::replay::Batch;
use crate::values::ValueBuffer;

const METRICS: &[Metric] =
    &[POLICY_LOSS, VALUE_LOSS, EXPLAINED_VARIANCE, ENTROPY, ACTION_STD, DIVERGENCE, CLIPPED, RECONSTRUCTION_LOSS, GRADIENT_NORM];

/// PPO as `config` describes it.
pub(super) fn kind(config: &Config) -> Kind {
    Kind {
        name: "ppo",
        metrics: METRICS,
        reuse: Reuse {
            kept_batches: 1,
            uses: config.algorithm.epochs * config.algorithm.minibatches,
            max_policy_lag_updates: None,
            // Actors wait while a whole batch waits.
            most_waiting: Some(config.fragments_per_batch().saturating_sub(1)),
            replayed: 0,
            retained: 0,
        },
        with_target: WithTarget::No,
        further_state_values: 0,
        learning: |settings, shape, distribution, policy| Box::new(PpoLearning::new(settings, shape, distribution, policy)),
    }
}

/// The learner's side of PPO.
struct PpoLearning {
    settings: AlgorithmConfig,
    /// With weights of one, V-trace is generalized advantage estimation.
    estimation: VTrace,
    clip_ratio: f32,
    value_coefficient: f32,
    normalise_advantages: bool,
    entropy_coefficient: f32,
    shape: FragmentShape,
    distribution: Distribution,
    policy: TrainedPolicy,
    /// The steps of the batch, in the order of this pass.
    steps: Vec<Step>,
    /// Parts of this pass that have been learned from.
    parts_done: usize,
    /// The steps of the part that is learned from, with their advantages as they count there.
    part: Vec<Step>,
    estimates: Estimates,
    /// How well the values foretell the returns of the batch, as both were estimated.
    explained: Explained,
    block: Block,
}

/// A step of the batch, with what was estimated for it.
#[derive(Debug, Clone, Copy)]
struct Step {
    fragment: usize,
    step: usize,
    advantage: f32,
    /// Target of the value.
    target: f32,
}

/// Buffers in which advantages are estimated.
#[derive(Default)]
struct Estimates {
    /// All observations of the batch as (fragment, step): of every fragment the one before each step and the
    /// one after the last step.
    seen: Vec<(usize, usize)>,
    /// Value of each observation in `seen`.
    values: Vec<f32>,
    /// The steps of one fragment.
    consecutive: Vec<TracedStep>,
    /// Target of each of these steps.
    traced: Vec<Traced>,
}

/// Steps on their way through the network.
struct Block {
    /// The rows in use, from 0 on.
    rows: Vec<usize>,
    inputs: ValueBuffer,
    outputs: Vec<f32>,
    /// Probabilities of the actions in one row.
    probabilities: Vec<f32>,
    output_gradient: Vec<f32>,
}

impl Block {
    /// Put together the observations before `steps`, given as (fragment, step), and make room for
    /// `outputs` outputs of each.
    fn observe(
        &mut self,
        trajectories: FragmentBatch<'_>,
        shape: &FragmentShape,
        steps: impl ExactSizeIterator<Item = (usize, usize)>,
        outputs: usize,
    ) {
        let rows = steps.len();
        let length = shape.observation_length();
        self.rows.clear();
        self.rows.extend(0..rows);
        self.outputs.resize(rows * outputs, 0.0);
        self.output_gradient.resize(rows * outputs, 0.0);
        self.inputs.grow(rows * length);
        for (row, (fragment, step)) in steps.enumerate() {
            trajectories.write_observation(fragment, step, self.inputs.row_mut(row, length));
        }
    }
}

impl PpoLearning {
    fn new(settings: &AlgorithmConfig, shape: &FragmentShape, distribution: Distribution, policy: TrainedPolicy) -> Self {
        Self {
            estimation: VTrace { max_importance_weight: 1.0, max_trace_weight: 1.0, decay: settings.trace_decay("ppo") as f32 },
            clip_ratio: settings.clip_ratio("ppo") as f32,
            value_coefficient: settings.value_coefficient("ppo") as f32,
            normalise_advantages: settings.normalises_advantages("ppo"),
            entropy_coefficient: settings.entropy_start as f32,
            shape: shape.clone(),
            distribution,
            policy,
            steps: Vec::new(),
            parts_done: 0,
            part: Vec::new(),
            estimates: Estimates::default(),
            explained: Explained::default(),
            block: Block {
                rows: Vec::new(),
                inputs: ValueBuffer::zeros(shape.element, 0),
                outputs: Vec::new(),
                probabilities: Vec::new(),
                output_gradient: Vec::new(),
            },
            settings: settings.clone(),
        }
    }

    /// Compute the values of all observations of `batch`, fragment after fragment.
    fn estimate_values(&mut self, batch: &Batch) {
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let outputs = self.policy.outputs();
        let value = self.distribution.outputs();
        let Estimates { seen, values, .. } = &mut self.estimates;
        seen.clear();
        seen.extend((0..batch.rows()).flat_map(|fragment| (0..=trajectories.length(fragment)).map(move |step| (fragment, step))));
        values.clear();
        for seen in seen.chunks(self.policy.rows_at_once()) {
            let block = &mut self.block;
            block.observe(trajectories, &self.shape, seen.iter().copied(), outputs);
            let inputs = block.inputs.values().first(seen.len() * self.shape.observation_length());
            self.policy.infer(inputs, seen.len(), &mut block.outputs);
            values.extend(block.outputs.chunks_exact(outputs).map(|outputs| outputs[value]));
        }
    }

    /// The steps of the next part of this pass; after the last part, a new pass begins in another order.
    fn next_part(&mut self, random: &mut Random) -> std::ops::Range<usize> {
        let steps = self.steps.len();
        let parts = self.settings.minibatches;
        if self.parts_done == parts {
            self.parts_done = 0;
        }
        if self.parts_done == 0 {
            self.steps.shuffle(random);
        }
        let first = steps * self.parts_done / parts;
        self.parts_done += 1;
        // With fewer steps than parts, some steps are in several parts.
        first..(steps * self.parts_done / parts).max(first + 1)
    }

    /// The gradient of the losses of `steps` with respect to the network's outputs; the metrics go to `share`.
    fn loss_gradient(&mut self, batch: &Batch, steps: &[Step], share: &mut Share) {
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let outputs = self.policy.outputs();
        let policy_outputs = self.distribution.outputs();
        let Block { outputs: online, probabilities, output_gradient, .. } = &mut self.block;
        output_gradient.fill(0.0);
        let rows = online.chunks_exact(outputs).zip(output_gradient.chunks_exact_mut(outputs));
        let mut sums = StepSums::of([POLICY_LOSS, VALUE_LOSS, ENTROPY, DIVERGENCE, CLIPPED]);
        for (&Step { fragment, step, advantage, target }, (outputs, gradient)) in steps.iter().zip(rows) {
            let (policy, value) = outputs.split_at(policy_outputs);
            let policy = self.distribution.describe(policy, probabilities);
            let (policy_gradient, value_gradient) = gradient.split_at_mut(policy_outputs);
            let action = trajectories.action(fragment, step);
            let acted = trajectories.log_probability(fragment, step);
            // PPO has no target network: the policy that acted takes its place.
            let log_probabilities = LogProbabilities { online: policy.log_probability(action), target: acted, acted };
            let log_ratio = f64::from(log_probabilities.online - acted);
            let policy_loss = Surrogate::Clipped.at(log_probabilities, advantage, self.clip_ratio);
            let error = value[0] - target;
            value_gradient[0] = self.value_coefficient * error;
            let slopes = Slopes { log_probability: policy_loss.slope, entropy: -self.entropy_coefficient, divergence: 0.0 };
            policy.add_gradient(action, &policy, slopes, policy_gradient);
            let values = [
                f64::from(policy_loss.loss),
                f64::from(0.5 * error * error),
                f64::from(policy.entropy),
                // An estimate of KL(mu || pi) that is never negative (Schulman 2020, "Approximating KL Divergence").
                log_ratio.exp_m1() - log_ratio,
                if policy_loss.is_clipped { 1.0 } else { 0.0 },
            ];
            sums.add(values, policy.deviation());
        }
        sums.report(share);
    }

    /// Add the gradient of the block's losses with respect to everything that learns to `gradient`.
    fn backward(&mut self, gradient: &mut [f32], share: &mut Share) {
        let Block { rows, inputs, outputs, output_gradient, .. } = &mut self.block;
        let seen = inputs.values().first(rows.len() * self.shape.observation_length());
        self.policy.add_gradient(seen, rows, outputs, output_gradient, gradient, share);
    }
}

impl Learning for PpoLearning {
    fn published(&mut self) -> &[f32] {
        self.policy.published()
    }

    fn prepare(&mut self, batch: &mut Batch) {
        self.estimate_values(batch);
        let trajectories = FragmentBatch::new(batch, &self.shape);
        let gamma = self.settings.gamma as f32;
        let Estimates { values, consecutive, traced, .. } = &mut self.estimates;
        let mut values = values.as_slice();
        self.steps.clear();
        self.parts_done = 0;
        for fragment in 0..batch.rows() {
            let length = trajectories.length(fragment);
            consecutive.clear();
            consecutive.extend((0..length).map(|step| TracedStep {
                reward: trajectories.reward(fragment, step),
                discount: if trajectories.is_terminated(fragment, step) { 0.0 } else { gamma },
                value: values[step],
                importance_weight: 1.0,
            }));
            traced.clear();
            traced.resize(length, Traced::default());
            self.estimation.trace(consecutive, values[length], traced);
            self.steps.extend(traced.iter().enumerate().map(|(step, &Traced { target, .. })| Step {
                fragment,
                step,
                advantage: target - values[step],
                target,
            }));
            values = &values[length + 1..];
        }
        self.explained = Explained::default();
        self.steps.iter().for_each(|step| self.explained.add(step.target, step.advantage));
    }

    fn schedule(&mut self, env_steps: u64) {
        self.entropy_coefficient = entropy_coefficient(&self.settings, env_steps);
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        let mut share = Share { largest_weight: 1.0, ..Share::new(METRICS) };
        let range = self.next_part(random);
        // Taken out while the rest is borrowed; an empty vector does not allocate.
        let mut part = std::mem::take(&mut self.part);
        part.clear();
        part.extend_from_slice(&self.steps[range]);
        // A single step would always have an advantage of zero.
        if self.normalise_advantages && part.len() > 1 {
            let (mean, deviation) = mean_and_deviation(part.iter().map(|step| step.advantage));
            part.iter_mut().for_each(|step| step.advantage = (step.advantage - mean) / deviation);
        }
        self.policy.begin_gradient();
        for steps in part.chunks(self.policy.rows_at_once()) {
            let block = &mut self.block;
            let places = steps.iter().map(|step| (step.fragment, step.step));
            block.observe(FragmentBatch::new(batch, &self.shape), &self.shape, places, self.policy.outputs());
            let inputs = block.inputs.values().first(steps.len() * self.shape.observation_length());
            self.policy.forward(inputs, steps.len(), &mut block.outputs);
            self.loss_gradient(batch, steps, &mut share);
            self.backward(gradient, &mut share);
        }
        self.part = part;
        self.explained.report(&mut share.tally);
        share
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let norm = self.policy.step(gradient, mean_factor(total), learning_rate);
        total.tally.add(GRADIENT_NORM, f64::from(norm));
        norm
    }

    fn save(&self, state: &mut [f32]) {
        self.policy.save(&mut StateWriter::new(state));
    }

    fn restore(&mut self, state: &[f32]) {
        self.policy.restore(&mut StateReader::new(state));
    }
}
