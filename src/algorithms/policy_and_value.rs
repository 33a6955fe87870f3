//! A network whose outputs describe a distribution over actions, and the value of the state: what policy gradients are made with.

use rand::RngExt;

use super::auto_encoder::{AutoEncoder, Decoder, LATENT};
use super::distribution::Distribution;
use super::learned_policy::LearnedPolicy;
use super::trained::Trained;
use super::{ActionMut, AlgorithmError, Policy, Random, action::uniform};
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::experience::Choice;
use crate::metrics::Metric;
use crate::networks::{Device, Head, InputSpec, NamedHead, Network, NetworkSpec, build, build_for_acting};
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
/// and of logarithms of standard deviations. The last is there with an auto-encoder only.
const POLICY: &str = "policy";
const MEAN: &str = "mean";
const LOG_DEVIATION: &str = "log_deviation";
const VALUE: &str = "value";
/// What the first parameters of the policy's output layers are multiplied by.
const FIRST_POLICY_SCALE: f32 = 0.01;

/// Policy and value in one environment, as a configuration describes them.
pub(super) struct PolicyAndValue {
    config: Config,
    network: NetworkSpec,
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
        heads.push(head(VALUE, 1));
        let auto_encoder = AutoEncoder::of(config, environment)?;
        heads.extend(auto_encoder.iter().map(|auto_encoder| head(LATENT, auto_encoder.latent)));
        let network = NetworkSpec::of_input(input, &config.network.convolutions, &config.network.hidden, Head::Named(heads));
        network.validate()?;
        Ok(Self { config: config.clone(), network, distribution, auto_encoder, device: config.learner.device_of(0).parse()? })
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
        Ok(Box::new(DrawnPolicy { network, distribution: self.distribution }))
    }

    /// Parameters of everything that learns.
    pub(super) fn learned_parameters(&self) -> usize {
        self.network.parameter_count() + self.decoder_parameters().unwrap_or(0)
    }

    /// Values of the state of everything that learns.
    pub(super) fn state_values(&self, with_target: bool) -> usize {
        let of_decoder = self.decoder_parameters().map_or(0, |parameters| Trained::state_values(parameters, false));
        Trained::state_values(self.network.parameter_count(), with_target) + of_decoder
    }

    fn decoder_parameters(&self) -> Option<usize> {
        self.auto_encoder.as_ref().map(|auto_encoder| auto_encoder.decoder.parameter_count())
    }

    /// Policy and value under training, with or without a target network.
    pub(super) fn learned(&self, seed: u64, with_target: bool) -> Result<LearnedPolicy, AlgorithmError> {
        let build = |spec: &NetworkSpec| build(spec.clone(), self.config.network.engine, self.device, self.config.machine.torch_threads);
        let target = with_target.then(|| build(&self.network)).transpose()?;
        let network = Trained::new(&self.config.learner, build(&self.network)?, target, &self.first_parameters(seed));
        let decoder = self.auto_encoder.as_ref().map(|AutoEncoder { coefficient, latent, decoder }| {
            let first = decoder.initialise_as(self.config.network.initialisation, seed);
            let trained = Trained::new(&self.config.learner, build(decoder)?, None, &first);
            let outputs = self.network.outputs();
            Ok::<_, AlgorithmError>(Decoder::new(trained, *coefficient, outputs, outputs - latent..outputs, self.device))
        });
        Ok(LearnedPolicy::new(network, decoder.transpose()?, self.device))
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
        outputs[self.distribution.outputs()]
    }
}
