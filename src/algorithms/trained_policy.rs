//! A policy and its value under training: the network, its target network, and, if there are any, the value's separate
//! network and the auto-encoder's decoder.

use std::ops::Range;

use super::auto_encoder::{Decoder, RECONSTRUCTION_LOSS};
use super::state::{StateReader, StateWriter};
use super::temporal_difference::finite_or;
use super::trained::Trained;
use super::value_network::ValueNetwork;
use crate::metrics::Share;
use crate::networks::Device;
use crate::values::Values;

/// A policy and its value under training.
///
/// A gradient has the network's part first, then the value's, then the decoder's.
pub(super) struct TrainedPolicy {
    network: Trained,
    value: Option<ValueNetwork>,
    decoder: Option<Decoder>,
    /// Parameters of the network that are never changed.
    fixed: Range<usize>,
    /// Whether nothing has been added to the gradient yet.
    begins_gradient: bool,
    rows_at_once: usize,
}

/// Rows that go through the network at once on a CPU: as many as fit the caches.
const BLOCK_ROWS: usize = 256;

impl TrainedPolicy {
    pub(super) fn new(
        network: Trained,
        value: Option<ValueNetwork>,
        decoder: Option<Decoder>,
        fixed: Range<usize>,
        device: Device,
    ) -> Self {
        Self { network, value, decoder, fixed, begins_gradient: true, rows_at_once: device.rows_at_once(BLOCK_ROWS) }
    }

    /// How many rows to take through the network at once.
    pub(super) fn rows_at_once(&self) -> usize {
        self.rows_at_once
    }

    /// The parameters that actors and the evaluator act with.
    pub(super) fn published(&self) -> &[f32] {
        self.network.online.parameters()
    }

    /// Columns of the output: policy, value, and the latent vector of an auto-encoder.
    pub(super) fn outputs(&self) -> usize {
        self.network.online.spec().outputs() + usize::from(self.value.is_some())
    }

    /// Compute `outputs` of the rows of `seen`, without what a gradient needs.
    pub(super) fn infer(&mut self, seen: Values<'_>, rows: usize, outputs: &mut [f32]) {
        let network = &mut self.network.online;
        let Some(value) = &mut self.value else { return network.infer(seen, rows, outputs) };
        let (value_network, policy_outputs, values) = value.begin_pass(rows);
        network.infer(seen, rows, policy_outputs);
        value_network.infer(seen, rows, values);
        value.merge(outputs);
    }

    /// Compute `outputs` of the rows of `seen`, and keep what [`Self::add_gradient`] needs.
    pub(super) fn forward(&mut self, seen: Values<'_>, rows: usize, outputs: &mut [f32]) {
        let network = &mut self.network.online;
        let Some(value) = &mut self.value else { return network.forward(seen, rows, outputs) };
        let (value_network, policy_outputs, values) = value.begin_pass(rows);
        network.forward(seen, rows, policy_outputs);
        value_network.forward(seen, rows, values);
        value.merge(outputs);
    }

    /// Compute `outputs` with the target network. A separate value network has no target network; its column is 0.
    pub(super) fn infer_target(&mut self, seen: Values<'_>, rows: usize, outputs: &mut [f32]) {
        let network = self.network.target();
        let Some(value) = &mut self.value else { return network.infer(seen, rows, outputs) };
        let (_, policy_outputs, values) = value.begin_pass(rows);
        network.infer(seen, rows, policy_outputs);
        values.fill(0.0);
        value.merge(outputs);
    }

    /// Let the next [`Self::add_gradient`] overwrite the gradient that it is given.
    pub(super) fn begin_gradient(&mut self) {
        self.begins_gradient = true;
    }

    /// Add the gradient of the last [`Self::forward`]'s losses to `gradient`: of the losses whose derivative with
    /// respect to the outputs is `output_gradient`, and of the auto-encoder's reconstruction of `rows`.
    pub(super) fn add_gradient(
        &mut self,
        seen: Values<'_>,
        rows: &[usize],
        outputs: &[f32],
        output_gradient: &mut [f32],
        gradient: &mut [f32],
        share: &mut Share,
    ) {
        let is_first = std::mem::take(&mut self.begins_gradient);
        let (network_gradient, others) = gradient.split_at_mut(self.network.len());
        let (value_gradient, decoder_gradient) = others.split_at_mut(self.value.as_ref().map_or(0, ValueNetwork::len));
        if let Some(decoder) = &mut self.decoder {
            if is_first {
                decoder_gradient.fill(0.0);
            }
            let sum = decoder.add_gradient(seen, rows, outputs, output_gradient, decoder_gradient);
            share.tally.add_all(RECONSTRUCTION_LOSS, sum, rows.len() as f64);
        }
        let output_gradient = match &mut self.value {
            None => output_gradient,
            Some(value) => value.add_gradient(output_gradient, value_gradient, is_first),
        };
        self.network.add_gradient(output_gradient, network_gradient, is_first);
        network_gradient[self.fixed.clone()].fill(0.0);
    }

    /// One step against `gradient` times `factor`, clipped: policy and value together, whether they share a network or
    /// not, and the decoder by itself. Returns the norm of policy and value before that; not finite if any part of the
    /// gradient is not.
    pub(super) fn step(&mut self, gradient: &[f32], factor: f32, learning_rate: f32) -> f32 {
        let value_parameters = self.value.as_ref().map_or(0, ValueNetwork::len);
        let (together, decoder_gradient) = gradient.split_at(self.network.len() + value_parameters);
        let decoder_norm = self.decoder.as_mut().map_or(0.0, |decoder| decoder.step(decoder_gradient, factor, learning_rate));
        let (norm, factors) = self.network.norm_and_factors(together, factor);
        if norm.is_finite() {
            let (network_gradient, value_gradient) = together.split_at(self.network.len());
            self.network.step_by(network_gradient, factors, learning_rate);
            if let Some(value) = &mut self.value {
                value.step(value_gradient, factors, learning_rate);
            }
        }
        finite_or(decoder_norm, norm)
    }

    /// Updates made so far.
    pub(super) fn steps(&self) -> u64 {
        self.network.steps()
    }

    /// Make the target network equal to the one that learns.
    pub(super) fn copy_to_target(&mut self) {
        self.network.follow(1.0);
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.network.save(writer);
        if let Some(value) = &self.value {
            value.save(writer);
        }
        if let Some(decoder) = &self.decoder {
            decoder.save(writer);
        }
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.network.restore(reader);
        if let Some(value) = &mut self.value {
            value.restore(reader);
        }
        if let Some(decoder) = &mut self.decoder {
            decoder.restore(reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::WithTarget;
    use crate::config::schema::{Engine, LearnerConfig};
    use crate::networks::{Head, NetworkSpec, build, clip_norm};

    const POLICY_OUTPUTS: usize = 4;
    /// What makes a mean of a sum of 48.
    const FACTOR: f32 = 1.0 / 48.0;

    /// A network that is clipped to a norm of `maximum`, if there is one.
    fn trained(outputs: usize, maximum: Option<f64>) -> Trained {
        let config = LearnerConfig { max_gradient_norm: maximum, ..LearnerConfig::default() };
        let spec = NetworkSpec::perceptron(3, &[50], Head::Linear { outputs });
        let network = build(spec.clone(), Engine::Cpu, Device::Cpu, 1).unwrap();
        Trained::new(&config, network, None, &spec.initialise(1))
    }

    fn trained_policy(maximum: Option<f64>) -> TrainedPolicy {
        let value = ValueNetwork::new(trained(1, maximum), 2, POLICY_OUTPUTS);
        TrainedPolicy::new(trained(POLICY_OUTPUTS, maximum), Some(value), None, 0..0, Device::Cpu)
    }

    /// Every bit of what `save` writes about networks of so many parameters.
    fn bits(lengths: [usize; 2], save: impl FnOnce(&mut StateWriter<'_>)) -> Vec<u32> {
        let mut state = vec![0.0; lengths.map(|length| Trained::state_values(length, WithTarget::No)).iter().sum()];
        save(&mut StateWriter::new(&mut state));
        state.into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn policy_and_value_step_bit_for_bit_as_after_one_pass_for_the_mean_and_one_that_clips_both_together() {
        for maximum in [Some(0.5), None] {
            let mut together = trained_policy(maximum);
            // Only the test clips for these. The value has so much of the norm that it reaches the limit alone.
            let (mut policy, mut value) = (trained(POLICY_OUTPUTS, None), trained(1, None));
            let (of_policy, of_value) = (policy.len(), value.len());
            for step in 0..3 {
                let size = |index: usize| if index < of_policy { 1e-2f32 } else { 1e3 };
                let gradient: Vec<f32> = (0..of_policy + of_value).map(|index| size(index) * ((index + step) as f32).sin()).collect();
                let mut clipped: Vec<f32> = gradient.iter().map(|value| value * FACTOR).collect();
                let norm = clip_norm(&mut clipped, maximum.map_or(f32::INFINITY, |maximum| maximum as f32));
                policy.step(&clipped[..of_policy], 1e-3);
                value.step(&clipped[of_policy..], 1e-3);
                assert_eq!(together.step(&gradient, FACTOR, 1e-3), norm);
                let expected = bits([of_policy, of_value], |writer| {
                    policy.save(writer);
                    value.save(writer);
                });
                let found = bits([of_policy, of_value], |writer| together.save(writer));
                assert!(found == expected, "step {step}, clipped to {maximum:?}");
            }
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_in_one_part_changes_neither_policy_nor_value() {
        let mut together = trained_policy(Some(0.5));
        let lengths = [POLICY_OUTPUTS, 1].map(|outputs| trained(outputs, None).len());
        let before = bits(lengths, |writer| together.save(writer));
        for bad in [0, lengths[0]] {
            let mut gradient = vec![0.1; lengths.iter().sum()];
            gradient[bad] = f32::NAN;
            assert!(together.step(&gradient, FACTOR, 1e-3).is_nan());
        }
        assert!(bits(lengths, |writer| together.save(writer)) == before);
    }
}
