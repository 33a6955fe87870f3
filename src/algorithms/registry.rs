//! Algorithms by name: those of this library, and those that a program adds.

use std::sync::Arc;

use super::deterministic::Deterministic;
use super::dqn::Dqn;
use super::normalised::Normalised;
use super::policy_gradient::PolicyGradient;
use super::sac::Sac;
use super::{Algorithm, AlgorithmError, Normalisation, appo, ddpg, ppo, td3};
use crate::config::{AlgorithmKey, Config};
use crate::environments::EnvironmentSpec;
use crate::suggestion::nearest;

/// The names of this library's own.
pub const NAMES: &[&str] = &["dqn", "ddpg", "td3", "sac", "appo", "ppo"];

/// What is said of an algorithm before one is built.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name in a configuration: small letters, digits and `_`.
    pub name: &'static str,
    /// The keys that it knows beside the ones that all algorithms know.
    pub keys: &'static [AlgorithmKey],
    /// Whether it learns from bytes as they are; otherwise it is shown floats.
    pub learns_from_bytes: bool,
}

type Build = dyn Fn(&Config, &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> + Send + Sync;

/// An algorithm that a program adds.
#[derive(Clone)]
struct Own {
    declaration: Declaration,
    build: Arc<Build>,
}

/// The algorithms that a program knows: those of this library, and those that it adds
/// ([`Catalogue::add_algorithm`](crate::catalogue::Catalogue::add_algorithm)).
#[derive(Clone, Default)]
pub struct Algorithms {
    own: Vec<Own>,
}

impl Algorithms {
    /// All names: those of this library, then those that were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        NAMES.iter().copied().chain(self.own.iter().map(|own| own.declaration.name))
    }

    /// Know one more. Whether it may have that name is for the catalogue to say.
    pub(crate) fn add<A: Algorithm + 'static>(
        &mut self,
        declaration: Declaration,
        build: impl Fn(&Config, &EnvironmentSpec) -> Result<A, AlgorithmError> + Send + Sync + 'static,
    ) {
        self.own.push(Own { declaration, build: Arc::new(move |config, environment| Ok(Box::new(build(config, environment)?))) });
    }

    /// Whether the algorithm of that name learns from bytes as they are; the others are shown floats.
    pub fn learns_from_bytes(&self, name: &str) -> bool {
        matches!(name, "dqn" | "appo" | "ppo") || self.own(name).is_some_and(|own| own.declaration.learns_from_bytes)
    }

    /// Check the keys that only the algorithm which `config` names knows, and fill in their defaults.
    ///
    /// # Errors
    /// The name is unknown; a key is unknown, has a value that is not allowed, or is one of other algorithms.
    pub fn resolve(&self, config: &mut Config) -> Result<(), AlgorithmError> {
        let name = &config.algorithm.name;
        let keys = match self.own(name) {
            Some(own) => own.declaration.keys,
            None if NAMES.contains(&name.as_str()) => &[],
            None => {
                let suggestion = nearest(name, self.names()).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
                let known = self.names().collect::<Vec<_>>().join(", ");
                return Err(AlgorithmError::Unknown { name: name.clone(), suggestion, known });
            }
        };
        Ok(config.resolve_own(keys)?)
    }

    /// The algorithm that `config` names, for `environment`.
    ///
    /// # Errors
    /// As [`Self::resolve`]; the algorithm does not fit the environment or the rest of the configuration.
    pub fn build(&self, config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
        let mut config = config.clone();
        self.resolve(&mut config)?;
        let name = &config.algorithm.name;
        let algorithm: Box<dyn Algorithm> = match name.as_str() {
            "dqn" => Box::new(Dqn::new(&config, environment)?),
            "ddpg" => Box::new(Deterministic::new(&config, environment, ddpg::settings(&config))?),
            "td3" => Box::new(Deterministic::new(&config, environment, td3::settings(&config))?),
            "sac" => Box::new(Sac::new(&config, environment)?),
            "appo" => Box::new(PolicyGradient::new(&config, environment, appo::kind(&config))?),
            "ppo" => Box::new(PolicyGradient::new(&config, environment, ppo::kind(&config))?),
            _ => (self.own(name).expect("its keys were resolved").build)(&config, environment)?,
        };
        if algorithm.name() != name {
            return Err(AlgorithmError::Misnamed { name: name.clone(), other: algorithm.name() });
        }
        let normalisation = Normalisation {
            observations: config.algorithm.normalise_observations,
            rewards: config.algorithm.normalise_rewards,
            length: environment.observation.len(),
        };
        Ok(if normalisation.is_needed() { Box::new(Normalised::new(algorithm, normalisation)) } else { algorithm })
    }

    fn own(&self, name: &str) -> Option<&Own> {
        self.own.iter().find(|own| own.declaration.name == name)
    }
}

/// The algorithm of this library that `config` names, for `environment`: [`Algorithms::build`].
///
/// # Errors
/// As there.
pub fn build(config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
    Algorithms::default().build(config, environment)
}
