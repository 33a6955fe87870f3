//! A network under training: the network, its optimizer, and the slowly following copy that targets are computed with.

use super::AlgorithmError;
use super::state::{COUNT_VALUES, StateReader, StateWriter};
use crate::config::Config;
use crate::config::schema::LearnerConfig;
use crate::networks::{Adam, AdamSettings, Device, Network, NetworkSpec, build, norm_and_scale, polyak};

/// Whether a network under training has a target network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithTarget {
    /// With a target network.
    Yes,
    /// Without one.
    No,
}

/// A network with its optimizer and, where it has one, its target network.
pub struct Trained {
    /// The network that learns.
    pub online: Box<dyn Network>,
    /// The target network: a copy that follows the online network.
    pub target: Option<Box<dyn Network>>,
    adam: Adam,
    max_gradient_norm: f32,
    /// Buffer for a gradient that is added to others.
    part: Vec<f32>,
}

impl Trained {
    /// Train `online` from `parameters` on; `target` is a second network of the same shape.
    pub fn new(config: &LearnerConfig, mut online: Box<dyn Network>, mut target: Option<Box<dyn Network>>, parameters: &[f32]) -> Self {
        online.set_parameters(parameters);
        if let Some(target) = &mut target {
            target.set_parameters(parameters);
        }
        let adam = Adam::new(parameters.len(), adam_settings(config));
        Self { adam, max_gradient_norm: max_gradient_norm(config), online, target, part: Vec::new() }
    }

    /// Build the network that `spec` describes on `device`, and train it from `parameters` on.
    pub(super) fn build(
        config: &Config,
        device: Device,
        spec: &NetworkSpec,
        with_target: WithTarget,
        parameters: &[f32],
    ) -> Result<Self, AlgorithmError> {
        let network = || build(spec.clone(), config.network.engine, device, config.machine.torch_threads);
        let target = (with_target == WithTarget::Yes).then(network).transpose()?;
        Ok(Self::new(&config.learner, network()?, target, parameters))
    }

    /// Number of parameters of the network.
    pub(super) fn len(&self) -> usize {
        self.online.parameters().len()
    }

    /// Values of the state of a network of `parameters` parameters: what [`Self::save`] writes.
    pub fn state_values(parameters: usize, with_target: WithTarget) -> usize {
        // The parameters and the two moments of Adam.
        let copies = match with_target {
            WithTarget::Yes => 4,
            WithTarget::No => 3,
        };
        parameters * copies + COUNT_VALUES
    }

    /// Updates made so far.
    pub fn steps(&self) -> u64 {
        self.adam.steps()
    }

    /// Add the gradient of the parameters to `gradient`, given that of the outputs of the last forward pass; the first of
    /// several passes overwrites `gradient` instead.
    pub(super) fn add_gradient(&mut self, output_gradient: &[f32], gradient: &mut [f32], is_first: bool) {
        if is_first {
            return self.online.backward(output_gradient, Some(gradient), None);
        }
        self.part.resize(gradient.len(), 0.0);
        self.online.backward(output_gradient, Some(&mut self.part), None);
        gradient.iter_mut().zip(&self.part).for_each(|(sum, part)| *sum += part);
    }

    /// One step against `gradient`, clipped to `learner.max_gradient_norm`; returns its norm before that. A gradient
    /// whose norm is not finite changes nothing: the caller sees the norm.
    pub fn step(&mut self, gradient: &[f32], learning_rate: f32) -> f32 {
        self.step_scaled(gradient, 1.0, learning_rate)
    }

    /// [`Self::step`] against `gradient` times `factor`, without a pass that multiplies it.
    pub(super) fn step_scaled(&mut self, gradient: &[f32], factor: f32, learning_rate: f32) -> f32 {
        let (norm, factors) = self.norm_and_factors(gradient, factor);
        if norm.is_finite() {
            self.step_by(gradient, factors, learning_rate);
        }
        norm
    }

    /// The norm of `gradient` times `factor`, of this network and others that are to be clipped with it, and the factors
    /// with which each of them makes its step: `factor`, and what then clips all of them together.
    pub(super) fn norm_and_factors(&self, gradient: &[f32], factor: f32) -> (f32, [f32; 2]) {
        let (norm, scale) = norm_and_scale(gradient, factor, self.max_gradient_norm);
        (norm, [factor, scale])
    }

    /// One step against `gradient` times what [`Self::norm_and_factors`] gave beside a norm that is finite.
    pub(super) fn step_by(&mut self, gradient: &[f32], factors: [f32; 2], learning_rate: f32) {
        let adam = &mut self.adam;
        self.online.update_parameters(&mut |parameters| adam.step_scaled(parameters, gradient, factors, learning_rate));
    }

    /// Count a step that another process makes.
    pub(super) fn count_step(&mut self) {
        self.adam.count_step();
    }

    /// Move the target network towards the online one.
    pub fn follow(&mut self, tau: f32) {
        if let Some(target) = &mut self.target {
            let online = self.online.parameters();
            target.update_parameters(&mut |target| polyak(target, online, tau));
        }
    }

    /// The network that targets are computed with.
    ///
    /// # Panics
    /// If there is none.
    pub fn target(&mut self) -> &mut dyn Network {
        &mut **self.target.as_mut().expect("whoever asks for targets has made a target network")
    }

    /// Write everything into a learner's state: [`Self::state_values`] values.
    pub fn save(&self, writer: &mut StateWriter<'_>) {
        writer.values(self.online.parameters());
        if let Some(target) = &self.target {
            writer.values(target.parameters());
        }
        writer.adam(&self.adam);
    }

    /// Go on from what [`Self::save`] wrote.
    pub fn restore(&mut self, reader: &mut StateReader<'_>) {
        let length = self.len();
        self.online.set_parameters(reader.values(length));
        if let Some(target) = &mut self.target {
            target.set_parameters(reader.values(length));
        }
        self.adam = reader.adam(self.adam.settings(), length);
    }
}

/// Adam's settings in a configuration, for what is learned beside a [`Trained`] network, such as a single number.
pub fn adam_settings(config: &LearnerConfig) -> AdamSettings {
    AdamSettings { beta1: config.adam_beta1, beta2: config.adam_beta2, epsilon: config.adam_epsilon }
}

fn max_gradient_norm(config: &LearnerConfig) -> f32 {
    config.max_gradient_norm.map_or(f32::INFINITY, |norm| norm as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::Engine;
    use crate::networks::Head;

    #[test]
    fn a_gradient_that_is_not_finite_is_told_and_changes_nothing() {
        let spec = NetworkSpec::perceptron(2, &[3], Head::Linear { outputs: 1 });
        let network = build(spec.clone(), Engine::Cpu, Device::Cpu, 1).unwrap();
        let start = spec.initialise(1);
        let mut trained = Trained::new(&LearnerConfig::default(), network, None, &start);
        let mut gradient = vec![0.1; start.len()];
        gradient[4] = f32::NAN;
        assert!(trained.step(&gradient, 1e-3).is_nan());
        assert_eq!((trained.online.parameters(), trained.steps()), (start.as_slice(), 0));
        gradient[4] = 0.1;
        assert!(trained.step(&gradient, 1e-3).is_finite());
        assert_ne!(trained.online.parameters(), start);
    }
}
