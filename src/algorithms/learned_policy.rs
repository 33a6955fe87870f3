//! A policy and its value under training: the network, its target network, and the decoder of its auto-encoder if it has one.

use super::auto_encoder::{Decoder, RECONSTRUCTION_LOSS};
use super::state::{StateReader, StateWriter};
use super::temporal_difference::finite_or;
use super::trained::Trained;
use crate::metrics::Share;
use crate::networks::{Device, Network};
use crate::values::Values;

/// A policy and its value under training.
pub(super) struct LearnedPolicy {
    network: Trained,
    decoder: Option<Decoder>,
    part: Vec<f32>,
    rows_at_once: usize,
}

/// Rows that go through the network at once on a CPU: as many as stay in the caches.
const BLOCK_ROWS: usize = 256;

impl LearnedPolicy {
    pub(super) fn new(network: Trained, decoder: Option<Decoder>, device: Device) -> Self {
        Self { part: vec![0.0; network.len()], network, decoder, rows_at_once: device.rows_at_once(BLOCK_ROWS) }
    }

    /// How many rows to take through the network at once.
    pub(super) fn rows_at_once(&self) -> usize {
        self.rows_at_once
    }

    /// What those who act need.
    pub(super) fn published(&self) -> &[f32] {
        self.network.online.parameters()
    }

    /// Columns of the network's output: policy, value, and the latent vector of an auto-encoder.
    pub(super) fn outputs(&self) -> usize {
        self.network.online.spec().outputs()
    }

    /// Outputs of which no gradient will be asked for.
    pub(super) fn infer(&mut self, seen: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.network.online.infer(seen, rows, outputs);
    }

    /// Outputs of which a gradient will be asked for.
    pub(super) fn forward(&mut self, seen: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.network.online.forward(seen, rows, outputs);
    }

    /// The network that policies are compared with.
    pub(super) fn target(&mut self) -> &mut dyn Network {
        self.network.target()
    }

    /// Add the gradient of the last [`Self::forward`]'s losses to `gradient`: of those of which `output_gradient` is the slope, and of the
    /// reconstructions of `rows`.
    pub(super) fn add_gradient(
        &mut self,
        seen: Values<'_>,
        rows: &[usize],
        outputs: &[f32],
        output_gradient: &mut [f32],
        gradient: &mut [f32],
        share: &mut Share,
    ) {
        let (of_network, of_decoder) = gradient.split_at_mut(self.part.len());
        if let Some(decoder) = &mut self.decoder {
            let sum = decoder.lose(seen, rows, outputs, output_gradient, of_decoder);
            share.tally.add_all(RECONSTRUCTION_LOSS, sum, rows.len() as f64);
        }
        self.network.online.backward(output_gradient, Some(&mut self.part), None);
        of_network.iter_mut().zip(&self.part).for_each(|(sum, part)| *sum += part);
    }

    /// One step against `gradient`, which is clipped in place, the network's part and the decoder's each by itself. Returns the norm of the
    /// network's before that; not finite when any part is not.
    pub(super) fn step(&mut self, gradient: &mut [f32], learning_rate: f32) -> f32 {
        let (of_network, of_decoder) = gradient.split_at_mut(self.part.len());
        let norm_of_decoder = self.decoder.as_mut().map_or(0.0, |decoder| decoder.step(of_decoder, learning_rate));
        finite_or(norm_of_decoder, self.network.step(of_network, learning_rate))
    }

    /// Updates made.
    pub(super) fn steps(&self) -> u64 {
        self.network.steps()
    }

    /// Make the target network equal to the one that learns.
    pub(super) fn copy_to_target(&mut self) {
        self.network.follow(1.0);
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.network.save(writer);
        if let Some(decoder) = &self.decoder {
            decoder.save(writer);
        }
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.network.restore(reader);
        if let Some(decoder) = &mut self.decoder {
            decoder.restore(reader);
        }
    }
}
