//! A network whose outputs are a distribution over actions and the value of the state, for policy-gradient algorithms.

use std::ops::Range;

use rand::RngExt;

use super::action::uniform;
use super::auto_encoder::{AutoEncoder, Decoder, LATENT};
use super::distribution::Distribution;
use super::trained::{Trained, WithTarget};
use super::trained_policy::TrainedPolicy;
use super::value_network::ValueNetwork;
use super::{ActionMut, AlgorithmError, Policy, Random};
use crate::config::Config;
use crate::environments::{EnvironmentSpec, derive_seed};
use crate::experience::Choice;
use crate::networks::{Device, Head, InputSpec, NamedHead, Network, NetworkSpec, TensorSpec, build_for_acting};

// Heads of the network, in the order of its outputs: first the policy, which is one head of logits, or one of means and
// one of logarithms of standard deviations; then the value, unless it has a network of its own; last the latent vector
// (`LATENT`), if there is an auto-encoder.
const POLICY: &str = "policy";
const MEAN: &str = "mean";
const LOG_DEVIATION: &str = "log_deviation";
pub(crate) const VALUE: &str = "value";
/// Factor on the initial parameters of the policy's output layers.
const FIRST_POLICY_SCALE: f32 = 0.01;

/// Policy and value in one environment, as a configuration describes them.
pub(super) struct PolicyAndValue {
    config: Config,
    /// The network that actors have: the policy's, and the value's unless that has one of its own.
    network: NetworkSpec,
    value_network: Option<NetworkSpec>,
    distribution: Distribution,
    auto_encoder: Option<AutoEncoder>,
    device: Device,
}

impl PolicyAndValue {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        let distribution = Distribution::of(&environment.action);
        let input = InputSpec { element: environment.observation.element, shape: environment.observation.shape.clone() };
        let head = |name: &str, outputs| NamedHead { name: name.into(), outputs };
        let mut heads = match distribution {
            Distribution::Categorical { actions } => vec![head(POLICY, actions)],
            Distribution::Gaussian { elements } => vec![head(MEAN, elements), head(LOG_DEVIATION, elements)],
        };
        let of_layers = |input, head| NetworkSpec::of_input(input, &config.network.convolutions, &config.network.hidden, head);
        let value_network = config.separates_value().then(|| of_layers(input.clone(), Head::Linear { outputs: 1 }));
        if value_network.is_none() {
            heads.push(head(VALUE, 1));
        }
        let auto_encoder = AutoEncoder::of(config, environment)?;
        heads.extend(auto_encoder.iter().map(|auto_encoder| head(LATENT, auto_encoder.latent)));
        let network = of_layers(input, Head::Named(heads));
        network.validate()?;
        Ok(Self {
            config: config.clone(),
            network,
            value_network,
            distribution,
            auto_encoder,
            device: config.learner.device_of(0).parse()?,
        })
    }

    pub(super) fn network(&self) -> &NetworkSpec {
        &self.network
    }

    pub(super) fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// The policy that actors and the evaluator act with.
    pub(super) fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        let network = build_for_acting(self.network.clone())?;
        Ok(Box::new(DrawnPolicy { network, distribution: self.distribution, tells_value: self.value_network.is_none() }))
    }

    /// Number of parameters of all networks that learn.
    pub(super) fn learned_parameters(&self) -> usize {
        self.network.parameter_count() + self.further_parameters().sum::<usize>()
    }

    /// Values of the state of all networks that learn.
    pub(super) fn state_values(&self, with_target: WithTarget) -> usize {
        let further = self.further_parameters().map(|parameters| Trained::state_values(parameters, WithTarget::No));
        Trained::state_values(self.network.parameter_count(), with_target) + further.sum::<usize>()
    }

    /// Number of parameters of each network that actors do not have.
    fn further_parameters(&self) -> impl Iterator<Item = usize> {
        let decoder = self.auto_encoder.as_ref().map(|auto_encoder| &auto_encoder.decoder);
        self.value_network.iter().chain(decoder).map(NetworkSpec::parameter_count)
    }

    /// Policy and value under training, drawn from `seed`.
    pub(super) fn trained(&self, seed: u64, with_target: WithTarget) -> Result<TrainedPolicy, AlgorithmError> {
        let network = Trained::build(&self.config, self.device, &self.network, with_target, &self.first_parameters(seed))?;
        let further = |spec: &NetworkSpec, seed| {
            let first = spec.initialise_as(self.config.network.initialisation, seed);
            Trained::build(&self.config, self.device, spec, WithTarget::No, &first)
        };
        // With the same seed, policy and value would begin with the same layers.
        let value = self.value_network.as_ref().map(|spec| further(spec, derive_seed(seed, 1))).transpose()?;
        let value = value.map(|network| ValueNetwork::new(network, self.distribution.outputs(), self.network.outputs()));
        let outputs = self.network.outputs() + usize::from(value.is_some());
        let decoder = self.auto_encoder.as_ref().map(|AutoEncoder { coefficient, latent, decoder }| {
            Ok::<_, AlgorithmError>(Decoder::new(further(decoder, seed)?, *coefficient, outputs, outputs - latent..outputs, self.device))
        });
        Ok(TrainedPolicy::new(network, value, decoder.transpose()?, self.fixed_parameters(), self.device))
    }

    /// Where the parameters lie that are never changed: the weights of deviations that are the same in every state.
    fn fixed_parameters(&self) -> Range<usize> {
        let fixed = self.network.tensors().into_iter().find(|tensor| self.is_fixed(tensor));
        fixed.map_or(0..0, |tensor| tensor.range())
    }

    fn is_fixed(&self, tensor: &TensorSpec) -> bool {
        self.config.algorithm.free_action_std && tensor.name.split_once('.') == Some((LOG_DEVIATION, "weight"))
    }

    fn first_parameters(&self, seed: u64) -> Vec<f32> {
        let mut parameters = self.network.initialise_as(self.config.network.initialisation, seed);
        for tensor in self.network.tensors() {
            let (head, kind) = tensor.name.split_once('.').unwrap_or_default();
            if [POLICY, MEAN, LOG_DEVIATION].contains(&head) {
                parameters[tensor.range()].iter_mut().for_each(|value| *value *= FIRST_POLICY_SCALE);
            }
            if (head, kind) == (LOG_DEVIATION, "bias") {
                parameters[tensor.range()].fill(self.config.algorithm.initial_action_std.ln() as f32);
            }
            if self.is_fixed(&tensor) {
                parameters[tensor.range()].fill(0.0);
            }
        }
        parameters
    }
}

/// A policy that draws its actions, and a value.
struct DrawnPolicy {
    network: Box<dyn Network>,
    distribution: Distribution,
    /// Whether the network also gives the value.
    tells_value: bool,
}

impl DrawnPolicy {
    fn choice(&self, outputs: &[f32], log_probability: f32) -> Choice {
        Choice { value: self.state_value(outputs), log_probability }
    }
}

impl Policy for DrawnPolicy {
    fn network(&mut self) -> &mut dyn Network {
        &mut *self.network
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        let policy_outputs = &outputs[..self.distribution.outputs()];
        if exploration > 0.0 {
            let log_probability = self.distribution.draw(policy_outputs, random, action);
            return self.choice(outputs, log_probability);
        }
        self.distribution.take_most_likely(policy_outputs, action);
        self.choice(outputs, 0.0)
    }

    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        let log_probability = match action {
            ActionMut::Discrete(action) => {
                let actions = self.distribution.outputs();
                *action = i32::try_from(random.random_range(0..actions)).unwrap_or(0);
                -(actions as f32).ln()
            }
            ActionMut::Continuous(action) => {
                uniform(random, action);
                // Each element is uniform from -1 to 1, with a density of 1/2.
                -(action.len() as f32) * 2.0f32.ln()
            }
        };
        self.choice(outputs, log_probability)
    }

    fn state_value(&self, outputs: &[f32]) -> f32 {
        if self.tells_value { outputs[self.distribution.outputs()] } else { 0.0 }
    }
}
