//! Deep Q-learning (Mnih et al. 2015) with double targets (van Hasselt et al. 2016), dueling streams (Wang
//! et al. 2016), n-step returns and prioritized replay (Schaul et al. 2016), in the distributed form of
//! Ape-X (Horgan et al. 2018).
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

use super::action::{discrete_actions, greedy};
use super::state::{StateReader, StateWriter};
use super::temporal_difference::{GRADIENT_NORM, LOSS, Q_MEAN, weighted_mean_factor};
use super::trained::{Trained, WithTarget};
use super::{ActionMut, Algorithm, AlgorithmError, Learning, Policy, Random, Sizes, exploration};
use crate::config::schema::{AlgorithmConfig, Loss};
use crate::config::{Config, TargetNetworks};
use crate::environments::EnvironmentSpec;
use crate::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, is_terminated};
use crate::experience::{Choice, Experience, Transitions};
use crate::metrics::{Metric, Share};
use crate::networks::{Device, Head, InputSpec, Network, NetworkSpec, build_for_acting};
use crate::replay::Batch;
use crate::values::Values;

const METRICS: &[Metric] = &[LOSS, Q_MEAN, GRADIENT_NORM];

/// DQN in one environment.
pub struct Dqn {
    config: Config,
    transitions: Transitions,
    network: NetworkSpec,
    device: Device,
}

impl Dqn {
    /// DQN as `config` describes it, for an environment with discrete actions.
    ///
    /// # Errors
    /// The actions of the environment are not discrete, the network cannot be built, or no device has the configured
    /// name.
    pub fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let outputs = discrete_actions("dqn", environment)?;
        let input = InputSpec { element: environment.observation.element, shape: environment.observation.shape.clone() };
        let head = if config.network.dueling { Head::Dueling { outputs } } else { Head::Linear { outputs } };
        let network = NetworkSpec::of_input(input, &config.network.convolutions, &config.network.hidden, head);
        network.validate()?;
        let transitions = Transitions::new(config, environment);
        Ok(Self { config: config.clone(), transitions, network, device: config.learner.device_of(0).parse()? })
    }
}

impl Algorithm for Dqn {
    fn name(&self) -> &'static str {
        "dqn"
    }

    fn experience(&self) -> &dyn Experience {
        &self.transitions
    }

    fn network(&self) -> &NetworkSpec {
        &self.network
    }

    fn sizes(&self) -> Sizes {
        let parameters = self.network.parameter_count();
        Sizes { published: parameters, learned: parameters, state: Trained::state_values(parameters, WithTarget::Yes) }
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32 {
        exploration::epsilon(&self.config.algorithm, environment, of, env_steps) as f32
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(EpsilonGreedyPolicy { network: build_for_acting(self.network.clone())? }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let network = Trained::build(&self.config, self.device, &self.network, WithTarget::Yes, &self.network.initialise(seed))?;
        Ok(Box::new(DqnLearning::new(&self.config.algorithm, network)))
    }
}

/// Epsilon-greedy over action values.
struct EpsilonGreedyPolicy {
    network: Box<dyn Network>,
}

impl Policy for EpsilonGreedyPolicy {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        if exploration > 0.0 && random.random::<f32>() < exploration {
            return self.choose_randomly(outputs, random, action);
        }
        action.choose(greedy(outputs), outputs)
    }

    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        action.choose(random.random_range(0..outputs.len()), outputs)
    }

    fn state_value(&self, outputs: &[f32]) -> f32 {
        outputs[greedy(outputs)]
    }
}

/// The learner's side of DQN.
struct DqnLearning {
    network: Trained,
    double: bool,
    loss: Loss,
    target_networks: TargetNetworks,
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

impl DqnLearning {
    /// Learn with `network`, which has a target network.
    fn new(algorithm: &AlgorithmConfig, network: Trained) -> Self {
        Self {
            network,
            double: algorithm.double,
            loss: algorithm.loss("dqn"),
            target_networks: algorithm.target_networks("dqn"),
            buffers: Buffers::default(),
        }
    }

    /// Compute the values of the successors, with the target network and, for double DQN, with the online network.
    fn evaluate_successors(&mut self, next_observations: Values<'_>, rows: usize) {
        let Buffers { next_values, next_target_values, .. } = &mut self.buffers;
        self.network.target().infer(next_observations, rows, next_target_values);
        if self.double {
            self.network.online.infer(next_observations, rows, next_values);
        }
    }
}

impl Learning for DqnLearning {
    fn published(&mut self) -> &[f32] {
        self.network.online.parameters()
    }

    fn gradient(&mut self, batch: &Batch, _random: &mut Random, gradient: &mut [f32]) -> Share {
        let rows = batch.rows();
        let actions = self.network.online.spec().outputs();
        for buffer in [
            &mut self.buffers.values,
            &mut self.buffers.next_values,
            &mut self.buffers.next_target_values,
            &mut self.buffers.output_gradient,
        ] {
            buffer.resize(rows * actions, 0.0);
        }
        self.buffers.errors.resize(rows, 0.0);
        self.evaluate_successors(batch.column(NEXT_OBSERVATION).as_values(), rows);
        self.network.online.forward(batch.column(OBSERVATION).as_values(), rows, &mut self.buffers.values);

        let [rewards, discounts] = [REWARD, DISCOUNT].map(|field| batch.column(field).as_f32());
        let [taken, flags] = [ACTION, FLAGS].map(|field| batch.column(field).as_i32());
        let buffers = &mut self.buffers;
        buffers.output_gradient.fill(0.0);
        let (mut loss_sum, mut q_sum) = (0.0, 0.0);
        for row in 0..rows {
            let range = row * actions..(row + 1) * actions;
            let next_target = &buffers.next_target_values[range.clone()];
            let chooser = if self.double { &buffers.next_values[range.clone()] } else { next_target };
            let bootstrap_value = if is_terminated(flags[row]) { 0.0 } else { discounts[row] * next_target[greedy(chooser)] };
            // An attached process can have added any number.
            let action = usize::try_from(taken[row]).unwrap_or(0).min(actions - 1);
            let value = buffers.values[range.clone()][action];
            let error = value - (rewards[row] + bootstrap_value);
            let (loss, slope) = self.loss.at(error);
            let weight = batch.weights[row];
            buffers.output_gradient[range.start + action] = weight * slope;
            buffers.errors[row] = error.abs();
            loss_sum += f64::from(weight * loss);
            q_sum += f64::from(value);
        }
        self.network.online.backward(&buffers.output_gradient, Some(gradient), None);
        let mut share = Share::of(METRICS, rows, batch.largest_weight);
        share.tally.add_all(LOSS, loss_sum, share.samples);
        share.tally.add_all(Q_MEAN, q_sum, share.samples);
        share
    }

    fn errors(&self) -> &[f32] {
        &self.buffers.errors
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let norm = self.network.step_scaled(gradient, weighted_mean_factor(total), learning_rate);
        total.tally.add(GRADIENT_NORM, f64::from(norm));
        if self.network.steps().is_multiple_of(self.target_networks.interval_updates) {
            self.network.follow(self.target_networks.tau as f32);
        }
        norm
    }

    fn save(&self, state: &mut [f32]) {
        self.network.save(&mut StateWriter::new(state));
    }

    fn restore(&mut self, state: &[f32]) {
        self.network.restore(&mut StateReader::new(state));
    }
}
