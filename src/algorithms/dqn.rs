//! Deep Q-learning (Mnih et al. 2015) with double targets (van Hasselt et al. 2016), dueling streams (Wang et al. 2016),
//! n-step returns and prioritized replay (Schaul et al. 2016), in the distributed form of Ape-X (Horgan et al. 2018).
//!
//! Choices, beside what the configuration offers:
//! - the discount is part of a transition (gamma to the number of its steps), so returns may have mixed lengths;
//! - a terminated transition has no value behind it, a truncated one has;
//! - importance weights multiply the loss of each transition and are divided by the largest weight of the whole batch;
//! - the loss is the mean over the whole batch, whatever share of it a learner drew;
//! - priorities are the absolute temporal-difference errors of the batch, before the update.
//!
//! docs/dqn.md has the measured scores.

use rand::RngExt;

use super::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, discrete, is_terminated};
use super::{Algorithm, AlgorithmError, Learning, PartialUpdate, Policy, Random, UpdateReport};
use crate::config::Config;
use crate::config::schema::{Engine, Loss};
use crate::environments::{ActionSpace, EnvironmentSpec};
use crate::networks::{Adam, AdamSettings, Device, MlpSpec, Network, build, clip_norm, polyak};
use crate::replay::{Batch, Schema};

/// DQN in one environment.
pub struct Dqn {
    config: Config,
    network: MlpSpec,
    device: Device,
}

impl Dqn {
    /// DQN as `config` describes it, for an environment with discrete actions.
    pub fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let ActionSpace::Discrete { n } = &environment.action else {
            return Err(AlgorithmError::ActionSpace { algorithm: "dqn", environment: environment.id.clone() });
        };
        let network = MlpSpec {
            inputs: environment.observation.len(),
            hidden: config.network.hidden.clone(),
            outputs: *n,
            dueling: config.network.dueling,
        };
        network.validate()?;
        Ok(Self { config: config.clone(), network, device: config.learner.device.parse()? })
    }
}

impl Algorithm for Dqn {
    fn name(&self) -> &'static str {
        "dqn"
    }

    fn schema(&self) -> Schema {
        discrete(self.network.inputs)
    }

    fn network(&self) -> &MlpSpec {
        &self.network
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        // Actors act on the CPU, with the engine that starts fastest and takes the least memory.
        Ok(Box::new(GreedyPolicy::new(build(self.network.clone(), Engine::Cpu, Device::Cpu, 1)?)))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let network = || build(self.network.clone(), self.config.network.engine, self.device, self.config.machine.torch_threads);
        Ok(Box::new(DqnLearning::new(&self.config, network()?, network()?, &self.network.initialise(seed))))
    }
}

/// Epsilon-greedy over action values.
pub struct GreedyPolicy {
    network: Box<dyn Network>,
}

impl GreedyPolicy {
    /// Over the outputs of `network`.
    pub fn new(network: Box<dyn Network>) -> Self {
        Self { network }
    }
}

impl Policy for GreedyPolicy {
    fn set_parameters(&mut self, parameters: &[f32]) {
        self.network.set_parameters(parameters);
    }

    fn outputs(&self) -> usize {
        self.network.spec().outputs
    }

    fn infer(&mut self, observations: &[f32], rows: usize, outputs: &mut [f32]) {
        self.network.infer(observations, rows, outputs);
    }

    fn choose(&self, outputs: &[f32], exploration_rate: f32, random: &mut Random) -> (i32, f32) {
        let action = if exploration_rate > 0.0 && random.random::<f32>() < exploration_rate {
            random.random_range(0..outputs.len())
        } else {
            greedy(outputs)
        };
        (i32::try_from(action).unwrap_or(0), outputs[action])
    }

    fn random_action(&self, random: &mut Random) -> i32 {
        i32::try_from(random.random_range(0..self.outputs())).unwrap_or(0)
    }

    fn state_value(&self, outputs: &[f32]) -> f32 {
        outputs[greedy(outputs)]
    }
}

/// Index of the largest value; the first of equals.
fn greedy(values: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// The learner's side of DQN.
pub struct DqnLearning {
    online: Box<dyn Network>,
    target: Box<dyn Network>,
    adam: Adam,
    double: bool,
    loss: Loss,
    max_gradient_norm: Option<f32>,
    target_interval_updates: u64,
    target_tau: f32,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    values: Vec<f32>,
    next_values: Vec<f32>,
    next_target_values: Vec<f32>,
    output_gradient: Vec<f32>,
    errors: Vec<f32>,
}

#[expect(clippy::cast_possible_truncation, reason = "settings are given in f64 and used in f32")]
impl DqnLearning {
    /// Learn with `online`, starting from `parameters`; `target` is a second network of the same shape.
    pub fn new(config: &Config, mut online: Box<dyn Network>, mut target: Box<dyn Network>, parameters: &[f32]) -> Self {
        online.set_parameters(parameters);
        target.set_parameters(parameters);
        let settings =
            AdamSettings { beta1: config.learner.adam_beta1, beta2: config.learner.adam_beta2, epsilon: config.learner.adam_epsilon };
        Self {
            adam: Adam::new(parameters.len(), settings),
            online,
            target,
            double: config.algorithm.double,
            loss: config.algorithm.loss,
            max_gradient_norm: config.learner.max_gradient_norm.map(|norm| norm as f32),
            target_interval_updates: config.algorithm.target_interval_updates,
            target_tau: config.algorithm.target_tau as f32,
            buffers: Buffers::default(),
        }
    }

    /// Values of the successors, under the target network and, for double DQN, the online network.
    fn evaluate_successors(&mut self, next_observations: &[f32], rows: usize) {
        let Buffers { next_values, next_target_values, .. } = &mut self.buffers;
        self.target.infer(next_observations, rows, next_target_values);
        if self.double {
            self.online.infer(next_observations, rows, next_values);
        }
    }
}

impl Learning for DqnLearning {
    fn parameters(&self) -> &[f32] {
        self.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, gradient: &mut [f32]) -> PartialUpdate {
        let rows = batch.rows();
        let actions = self.online.spec().outputs;
        for buffer in [
            &mut self.buffers.values,
            &mut self.buffers.next_values,
            &mut self.buffers.next_target_values,
            &mut self.buffers.output_gradient,
        ] {
            buffer.resize(rows * actions, 0.0);
        }
        self.buffers.errors.resize(rows, 0.0);
        self.evaluate_successors(batch.column(NEXT_OBSERVATION).as_f32(), rows);
        self.online.forward(batch.column(OBSERVATION).as_f32(), rows, &mut self.buffers.values);

        let [rewards, discounts] = [REWARD, DISCOUNT].map(|field| batch.column(field).as_f32());
        let [taken, flags] = [ACTION, FLAGS].map(|field| batch.column(field).as_i32());
        let buffers = &mut self.buffers;
        buffers.output_gradient.fill(0.0);
        let mut found =
            PartialUpdate { transitions: rows as f64, largest_weight: f64::from(batch.largest_weight), ..PartialUpdate::default() };
        for row in 0..rows {
            let range = row * actions..(row + 1) * actions;
            let next_target = &buffers.next_target_values[range.clone()];
            let chooser = if self.double { &buffers.next_values[range.clone()] } else { next_target };
            let following = if is_terminated(flags[row]) { 0.0 } else { discounts[row] * next_target[greedy(chooser)] };
            let action = usize::try_from(taken[row]).unwrap_or(0).min(actions - 1);
            let value = buffers.values[range.start + action];
            let error = value - (rewards[row] + following);
            let (loss, slope) = self.loss.at(error);
            let weight = batch.weights[row];
            buffers.output_gradient[range.start + action] = weight * slope;
            buffers.errors[row] = error.abs();
            found.loss_sum += f64::from(weight * loss);
            found.q_sum += f64::from(value);
        }
        self.online.backward(&buffers.output_gradient, gradient, None);
        found
    }

    fn errors(&self) -> &[f32] {
        &self.buffers.errors
    }

    #[expect(clippy::cast_possible_truncation, reason = "a scale needs no more than an f32")]
    fn apply(&mut self, gradient: &mut [f32], total: PartialUpdate, learning_rate: f32) -> UpdateReport {
        let scale = 1.0 / (total.transitions * total.largest_weight);
        for value in gradient.iter_mut() {
            *value *= scale as f32;
        }
        let gradient_norm = clip_norm(gradient, self.max_gradient_norm.unwrap_or(f32::INFINITY));
        let adam = &mut self.adam;
        self.online.update_parameters(&mut |parameters| adam.step(parameters, gradient, learning_rate));
        if self.adam.steps().is_multiple_of(self.target_interval_updates) {
            let (online, tau) = (self.online.parameters(), self.target_tau);
            self.target.update_parameters(&mut |target| polyak(target, online, tau));
        }
        UpdateReport { loss: total.loss_sum * scale, q_mean: total.q_sum / total.transitions, gradient_norm: f64::from(gradient_norm) }
    }

    fn state(&self) -> ([&[f32]; 4], u64) {
        let parts = [self.online.parameters(), self.target.parameters(), self.adam.first_moment(), self.adam.second_moment()];
        (parts, self.adam.steps())
    }

    fn restore(&mut self, [online, target, first_moment, second_moment]: [&[f32]; 4], steps: u64) {
        self.online.set_parameters(online);
        self.target.set_parameters(target);
        self.adam = Adam::from_state(self.adam.settings(), first_moment.to_vec(), second_moment.to_vec(), steps);
    }
}

impl Loss {
    /// The loss of a temporal-difference error, and its derivative.
    fn at(self, error: f32) -> (f32, f32) {
        match self {
            Self::Mse => (0.5 * error * error, error),
            Self::Huber if error.abs() <= 1.0 => (0.5 * error * error, error),
            Self::Huber => (error.abs() - 0.5, error.signum()),
        }
    }
}
