//! A saved policy: one network and what is needed to play it again.

use std::path::Path;

use super::{
    error::WeightsError,
    weights::{NetworkWeights, Weights, WeightsMetadata},
};
use crate::networks::{InputScaling, NetworkSpec};

/// Name of the network in a policy's file.
const NETWORK: &str = "policy";

/// What an evaluation needs: the network that acts, and in `metadata` the environment and the algorithm that knows how to use it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyWeights {
    /// Shape of the network.
    pub spec: NetworkSpec,
    /// Its parameters, in the order of [`NetworkSpec::tensors`].
    pub parameters: Vec<f32>,
    /// Environment, algorithm and progress of the run that it comes from.
    pub metadata: WeightsMetadata,
}

impl PolicyWeights {
    /// A policy from what learners publish: the parameters of its network and, where observations are scaled, how.
    ///
    /// # Panics
    /// When `published` is shorter than the network's parameters.
    pub fn new(spec: NetworkSpec, published: &[f32], mut metadata: WeightsMetadata) -> Self {
        let (parameters, scaling) = published.split_at(spec.parameter_count());
        metadata.input_scaling = (!scaling.is_empty()).then(|| InputScaling::from_values(scaling));
        Self { spec, parameters: parameters.to_vec(), metadata }
    }

    /// What learners published.
    pub fn published(&self) -> Vec<f32> {
        let mut published = self.parameters.clone();
        if let Some(scaling) = &self.metadata.input_scaling {
            scaling.append_to(&mut published);
        }
        published
    }

    /// Saves under `path` in one step; see [`Weights::save`].
    ///
    /// # Errors
    /// As [`Weights::save`], and when the environment or the algorithm has no name.
    pub fn save(&self, path: &Path) -> Result<(), WeightsError> {
        if let Some(field) = unnamed(&self.metadata) {
            return Err(WeightsError::Encode { path: path.into(), message: format!("a policy needs the name of its {field}") });
        }
        let weights = NetworkWeights { spec: self.spec.clone(), parameters: self.parameters.clone() };
        Weights::single(NETWORK, weights, self.metadata.clone()).save(path)
    }

    /// Loads and checks a policy.
    ///
    /// # Errors
    /// As [`Weights::load`], and when the file holds something else than a policy.
    pub fn load(path: &Path) -> Result<Self, WeightsError> {
        let mut weights = Weights::load(path)?;
        let Some(NetworkWeights { spec, parameters }) = weights.networks.remove(NETWORK) else {
            return Err(weights.missing(NETWORK, path));
        };
        if let Some(field) = unnamed(&weights.metadata) {
            return Err(WeightsError::Unnamed { path: path.into(), field });
        }
        let scaling = weights.metadata.input_scaling.iter();
        let lengths = scaling.flat_map(|scaling| [scaling.means.len(), scaling.inverse_deviations.len()]);
        match lengths.into_iter().find(|&length| length != spec.inputs()) {
            Some(found) => Err(WeightsError::Scaling { path: path.into(), found, expected: spec.inputs() }),
            None => Ok(Self { spec, parameters, metadata: weights.metadata }),
        }
    }
}

fn unnamed(metadata: &WeightsMetadata) -> Option<&'static str> {
    [("environment", &metadata.environment), ("algorithm", &metadata.algorithm)]
        .into_iter()
        .find_map(|(field, name)| name.is_empty().then_some(field))
}
