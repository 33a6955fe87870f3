//! A network whose outputs describe a distribution over actions, and the value of the state: what policy gradients are made with.

use std::ops::Range;

use rand::RngExt;

use super::auto_encoder::{AutoEncoder, Decoder, LATENT};
use super::distribution::Distribution;
use super::learned_policy::LearnedPolicy;
use super::own_value::OwnValue;
use super::trained::Trained;
use super::{ActionMut, AlgorithmError, Policy, Random, action::uniform};
use crate::config::Config;
use crate::environments::{EnvironmentSpec, derive_seed};
use crate::experience::Choice;
use crate::metrics::Metric;
use crate::networks::{Device, Head, InputSpec, NamedHead, Network, NetworkSpec, TensorSpec, build, build_for_acting};
use crate::values::Values;

/// Half the squared error of the values.
pub(super) const VALUE_LOSS: Metric = Metric::mean("value_loss");
/// Entropy of the policy.
pub(super) const ENTROPY: Metric = Metric::mean("entropy");
/// Divergence of the policy from the one that it is compared with.
pub(super) const DIVERGENCE: Metric = Metric::mean("kl");
/// Steps whose ratio was beyond the clip.
pub(super) const CLIPPED: Metric = Metric::mean("clipped_share");

/// Heads of the network, in the order of its outputs: those of the policy come first. The policy is one head of logits, or two of means
/// and of logarithms of standard deviations. The value has a head where it has no network of its own. The last is there with an
/// auto-encoder only.
const POLICY: &str = "policy";
const MEAN: &str = "mean";
const LOG_DEVIATION: &str = "log_deviation";
pub(crate) const VALUE: &str = "value";
/// What the first parameters of the policy's output layers are multiplied by.
const FIRST_POLICY_SCALE: f32 = 0.01;

/// Policy and value in one environment, as a configuration describes them.
pub(super) struct PolicyAndValue {
    config: Config,
    /// The policy's, which actors have, and with it the value's unless that has one of its own.
    network: NetworkSpec,
    own_value: Option<NetworkSpec>,
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
        let own_value = config.network.separate_value.then(|| of_layers(input.clone(), Head::Linear { outputs: 1 }));
        if own_value.is_none() {
            heads.push(head(VALUE, 1));
        }
        let auto_encoder = AutoEncoder::of(config, environment)?;
        heads.extend(auto_encoder.iter().map(|auto_encoder| head(LATENT, auto_encoder.latent)));
        let network = of_layers(input, Head::Named(heads));
        network.validate()?;
        Ok(Self { config: config.clone(), network, own_value, distribution, auto_encoder, device: config.learner.device_of(0).parse()? })
    }

    pub(super) fn network(&self) -> &NetworkSpec {
        &self.network
    }

    pub(super) fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// What actors draw their actions with.
    pub(super) fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        let network = build_for_acting(self.network.clone())?;
        Ok(Box::new(DrawnPolicy { network, distribution: self.distribution, tells_value: self.own_value.is_none() }))
    }

    /// Parameters of everything that learns.
    pub(super) fn learned_parameters(&self) -> usize {
        self.network.parameter_count() + self.further_parameters().sum::<usize>()
    }

    /// Values of the state of everything that learns.
    pub(super) fn state_values(&self, with_target: bool) -> usize {
        let further = self.further_parameters().map(|parameters| Trained::state_values(parameters, false));
        Trained::state_values(self.network.parameter_count(), with_target) + further.sum::<usize>()
    }

    /// Parameters of each network that actors do not have.
    fn further_parameters(&self) -> impl Iterator<Item = usize> {
        let decoder = self.auto_encoder.as_ref().map(|auto_encoder| &auto_encoder.decoder);
        self.own_value.iter().chain(decoder).map(NetworkSpec::parameter_count)
    }

    /// Policy and value under training, with or without a target network.
    pub(super) fn learned(&self, seed: u64, with_target: bool) -> Result<LearnedPolicy, AlgorithmError> {
        let build = |spec: &NetworkSpec| build(spec.clone(), self.config.network.engine, self.device, self.config.machine.torch_threads);
        let target = with_target.then(|| build(&self.network)).transpose()?;
        let network = Trained::new(&self.config.learner, build(&self.network)?, target, &self.first_parameters(seed));
        let further = |spec: &NetworkSpec, seed| {
            let first = spec.initialise_as(self.config.network.initialisation, seed);
            Ok::<_, AlgorithmError>(Trained::new(&self.config.learner, build(spec)?, None, &first))
        };
        // The same seed would begin both with the same layers.
        let value = self.own_value.as_ref().map(|spec| further(spec, derive_seed(seed, 1))).transpose()?;
        let value = value.map(|network| OwnValue::new(network, self.distribution.outputs(), self.network.outputs()));
        let outputs = self.network.outputs() + usize::from(value.is_some());
        let decoder = self.auto_encoder.as_ref().map(|AutoEncoder { coefficient, latent, decoder }| {
            Ok::<_, AlgorithmError>(Decoder::new(further(decoder, seed)?, *coefficient, outputs, outputs - latent..outputs, self.device))
        });
        Ok(LearnedPolicy::new(network, value, decoder.transpose()?, self.fixed_parameters(), self.device))
    }

    /// Where parameters lie that stay as they are: the weights of deviations that are the same in every state.
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

/// What to take from advantages and divide them by, so that they have mean 0 and variance 1.
pub(super) fn mean_and_deviation(advantages: impl ExactSizeIterator<Item = f32> + Clone) -> (f32, f32) {
    let count = advantages.len() as f32;
    let mean = advantages.clone().sum::<f32>() / count;
    let variance = advantages.map(|advantage| (advantage - mean).powi(2)).sum::<f32>() / count;
    (mean, variance.sqrt() + 1e-8)
}

/// A policy that draws its actions, and a value.
struct DrawnPolicy {
    network: Box<dyn Network>,
    distribution: Distribution,
    /// Whether the network gives the value too.
    tells_value: bool,
}

impl DrawnPolicy {
    fn choice(&self, outputs: &[f32], log_probability: f32) -> Choice {
        Choice { value: self.state_value(outputs), log_probability }
    }
}

impl Policy for DrawnPolicy {
    fn set_parameters(&mut self, published: &[f32]) {
        self.network.set_parameters(published);
    }

    fn outputs(&self) -> usize {
        self.network.spec().outputs()
    }

    fn infer(&mut self, observations: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.network.infer(observations, rows, outputs);
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        let of_policy = &outputs[..self.distribution.outputs()];
        if exploration > 0.0 {
            let log_probability = self.distribution.draw(of_policy, random, action);
            return self.choice(outputs, log_probability);
        }
        self.distribution.take_most_likely(of_policy, action);
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
                // Each element from -1 to 1.
                -(action.len() as f32) * 2.0f32.ln()
            }
        };
        self.choice(outputs, log_probability)
    }

    fn state_value(&self, outputs: &[f32]) -> f32 {
        if self.tells_value { outputs[self.distribution.outputs()] } else { 0.0 }
    }
}
