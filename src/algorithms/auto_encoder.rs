//! The auto-encoder in a policy's network: the network gives a latent vector beside policy and value, and a decoder of
//! transposed convolutions learns to reconstruct the observation from it. So the shared layers learn from every pixel,
//! even while there is no reward yet.
//!
//! The decoder of frames of 42 x 42 is that of RLlib's first APPO (2018): two channels of a kernel of 21, then one of
//! 22 for each channel of the observation. Other sizes are halved in the same way. Learners alone train the decoder; it
//! is not published, and actors do not build it.

use std::ops::Range;

use super::AlgorithmError;
use super::state::{StateReader, StateWriter};
use super::trained::Trained;
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::metrics::Metric;
use crate::networks::{Device, NetworkSpec};
use crate::values::{BYTE_SCALE, ValueType, Values};

/// Name of the head that gives the latent vector.
pub(crate) const LATENT: &str = "latent";

/// Half the squared error of a reconstruction, summed over its pixels.
pub(super) const RECONSTRUCTION_LOSS: Metric = Metric::mean("reconstruction_loss");

/// Images that are decoded at once on a CPU: an image takes some hundred times the memory of its latent vector.
const BLOCK_IMAGES: usize = 32;

/// An auto-encoder as a configuration describes it.
#[derive(Debug, Clone)]
pub(super) struct AutoEncoder {
    /// Weight of the reconstruction's loss.
    pub(super) coefficient: f32,
    /// Length of the latent vector.
    pub(super) latent: usize,
    /// From a latent vector to an image.
    pub(super) decoder: NetworkSpec,
}

impl AutoEncoder {
    /// The auto-encoder that `config` asks for, if any.
    ///
    /// # Errors
    /// Observations are normalised or not square images of bytes, or the decoder cannot be built.
    pub(super) fn of(config: &Config, environment: &EnvironmentSpec) -> Result<Option<Self>, AlgorithmError> {
        let coefficient = config.auto_encoder.coefficient as f32;
        let latent = config.auto_encoder.latent;
        if coefficient == 0.0 {
            return Ok(None);
        }
        if config.algorithm.normalise_observations {
            let reason = "an auto-encoder draws bytes as they are, and algorithm.normalise_observations makes floats of them; set \
                          it to false, or auto_encoder.coefficient to 0";
            return Err(AlgorithmError::Refused { key: "algorithm.normalise_observations", reason: reason.into() });
        }
        let observation = &environment.observation;
        let (ValueType::U8, &[channels, side, width]) = (observation.element, observation.shape.as_slice()) else {
            return Err(refused(
                coefficient,
                &format!("an image of bytes, and it shows {:?} {}", observation.shape, observation.element.name()),
            ));
        };
        if side != width || side < 2 {
            return Err(refused(coefficient, &format!("a square image of at least 2 x 2 pixels, and it shows {side} x {width}")));
        }
        let decoder = NetworkSpec::decoder(latent, channels, side);
        decoder.validate().map_err(|error| AlgorithmError::Refused {
            key: "auto_encoder.latent",
            reason: format!("with an auto_encoder.latent of {latent} there can be no decoder: {error}"),
        })?;
        Ok(Some(Self { coefficient, latent, decoder }))
    }
}

fn refused(coefficient: f32, what: &str) -> AlgorithmError {
    let reason = format!("an auto_encoder.coefficient of {coefficient} needs an environment that shows {what}; set it to 0");
    AlgorithmError::Refused { key: "auto_encoder.coefficient", reason }
}

/// A decoder under training.
pub(super) struct Decoder {
    network: Trained,
    coefficient: f32,
    /// Length of a row of the policy network's outputs.
    outputs: usize,
    /// Place of the latent vector in such a row.
    latent: Range<usize>,
    latents: Vec<f32>,
    latent_gradient: Vec<f32>,
    images: Vec<f32>,
    part: Vec<f32>,
    images_at_once: usize,
}

impl Decoder {
    /// Train `network` on the columns `latent` of the policy network's `outputs`.
    pub(super) fn new(network: Trained, coefficient: f32, outputs: usize, latent: Range<usize>, device: Device) -> Self {
        Self {
            part: vec![0.0; network.len()],
            images_at_once: device.rows_at_once(BLOCK_IMAGES),
            network,
            coefficient,
            outputs,
            latent,
            latents: Vec::new(),
            latent_gradient: Vec::new(),
            images: Vec::new(),
        }
    }

    /// Compute the loss of reconstructing each of `rows` of `seen`. The gradient with respect to the latent vectors is
    /// written into `output_gradient`, the gradient with respect to the decoder's parameters is added to `gradient`.
    /// Returns the sum of the losses, without their weight.
    pub(super) fn add_gradient(
        &mut self,
        seen: Values<'_>,
        rows: &[usize],
        outputs: &[f32],
        output_gradient: &mut [f32],
        gradient: &mut [f32],
    ) -> f64 {
        let Values::U8(bytes) = seen else { unreachable!("a decoder is built for bytes alone") };
        let spec = self.network.online.spec();
        let (pixels, latent) = (spec.outputs(), spec.inputs());
        let columns = self.outputs;
        let mut sum = 0.0;
        for rows in rows.chunks(self.images_at_once) {
            self.latents.clear();
            rows.iter().for_each(|row| self.latents.extend_from_slice(&outputs[row * columns..][self.latent.clone()]));
            self.latent_gradient.resize(rows.len() * latent, 0.0);
            self.images.resize(rows.len() * pixels, 0.0);
            self.network.online.forward(Values::F32(&self.latents), rows.len(), &mut self.images);
            for (image, row) in self.images.chunks_exact_mut(pixels).zip(rows) {
                let mut squares = 0.0;
                for (pixel, &byte) in image.iter_mut().zip(&bytes[row * pixels..][..pixels]) {
                    let error = *pixel - f32::from(byte) * BYTE_SCALE;
                    squares += error * error;
                    *pixel = self.coefficient * error;
                }
                sum += f64::from(0.5 * squares);
            }
            self.network.online.backward(&self.images, Some(&mut self.part), Some(&mut self.latent_gradient));
            gradient.iter_mut().zip(&self.part).for_each(|(sum, part)| *sum += part);
            for (latent_gradient, row) in self.latent_gradient.chunks_exact(latent).zip(rows) {
                output_gradient[row * columns..][self.latent.clone()].copy_from_slice(latent_gradient);
            }
        }
        sum
    }

    /// As [`Trained::step_scaled`].
    pub(super) fn step(&mut self, gradient: &[f32], factor: f32, learning_rate: f32) -> f32 {
        self.network.step_scaled(gradient, factor, learning_rate)
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.network.save(writer);
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.network.restore(reader);
    }
}
