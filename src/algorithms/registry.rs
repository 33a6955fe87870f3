//! Algorithms by name: those of this library, and those that a program adds.

use std::sync::Arc;

use super::action::check_bounds;
use super::deterministic::Deterministic;
use super::dqn::Dqn;
use super::normalised::Normalised;
use super::policy_gradient::PolicyGradient;
use super::sac::Sac;
use super::{Algorithm, AlgorithmError, Normalisation, appo, ddpg, ppo, td3};
use crate::config::{AlgorithmKey, Config};
use crate::environments::EnvironmentSpec;
use crate::suggestion::nearest;

/// What is known of an algorithm before it is built.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Name in a configuration: small letters, digits and `_`.
    pub name: &'static str,
    /// Keys that it knows beside those that all algorithms know.
    pub keys: &'static [AlgorithmKey],
    /// Whether it learns from bytes as they are; otherwise it is shown floats.
    pub learns_from_bytes: bool,
}

type Build = dyn Fn(&Config, &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> + Send + Sync;

/// An algorithm that can be built.
#[derive(Clone)]
struct Known {
    declaration: Declaration,
    build: Arc<Build>,
}

/// The algorithms that a program knows: those of this library, and those that it adds
/// ([`Catalogue::add_algorithm`](crate::catalogue::Catalogue::add_algorithm)).
#[derive(Clone)]
pub struct Algorithms {
    known: Vec<Known>,
}

/// The algorithms of this library.
impl Default for Algorithms {
    fn default() -> Self {
        let mut algorithms = Self { known: Vec::new() };
        // `config` declares the keys of the library's own algorithms.
        let declared = |name, learns_from_bytes| Declaration { name, keys: &[], learns_from_bytes };
        algorithms.add(declared("dqn", true), Dqn::new);
        algorithms.add(declared("ddpg", false), |config, environment| Deterministic::new(config, environment, ddpg::variant(config)));
        algorithms.add(declared("td3", false), |config, environment| Deterministic::new(config, environment, td3::variant(config)));
        algorithms.add(declared("sac", false), Sac::new);
        algorithms.add(declared("appo", true), |config, environment| PolicyGradient::new(config, environment, appo::kind(config)));
        algorithms.add(declared("ppo", true), |config, environment| PolicyGradient::new(config, environment, ppo::kind(config)));
        algorithms
    }
}

impl Algorithms {
    /// All names: those of this library, then those that were added.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().map(|known| known.declaration.name)
    }

    /// Add an algorithm. The catalogue has checked that it may have that name.
    pub(crate) fn add<A: Algorithm + 'static>(
        &mut self,
        declaration: Declaration,
        build: impl Fn(&Config, &EnvironmentSpec) -> Result<A, AlgorithmError> + Send + Sync + 'static,
    ) {
        self.known.push(Known { declaration, build: Arc::new(move |config, environment| Ok(Box::new(build(config, environment)?))) });
    }

    /// Whether the algorithm of that name learns from bytes as they are; the others are shown floats.
    pub fn learns_from_bytes(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|known| known.declaration.learns_from_bytes)
    }

    /// Check the keys that only the algorithm which `config` names knows, and fill in their defaults.
    ///
    /// # Errors
    /// The name is unknown; a key is unknown, has a value that is not allowed, or is one of other algorithms.
    pub fn resolve(&self, config: &mut Config) -> Result<(), AlgorithmError> {
        let keys = self.find(&config.algorithm.name)?.declaration.keys;
        Ok(config.resolve_own(keys)?)
    }

    /// The algorithm that `config` names, for `environment`.
    ///
    /// # Errors
    /// [`Self::resolve`] fails, or the algorithm does not fit the environment or the rest of the configuration.
    pub fn build(&self, config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
        let mut config = config.clone();
        self.resolve(&mut config)?;
        let name = &config.algorithm.name;
        let algorithm = (self.find(name)?.build)(&config, environment)?;
        if algorithm.name() != name {
            return Err(AlgorithmError::Misnamed { name: name.clone(), other: algorithm.name() });
        }
        check_bounds(algorithm.name(), environment)?;
        // Before its parameters are counted, which only a network that is possible lets anybody do.
        algorithm.network().validate()?;
        let (published, parameters) = (algorithm.sizes().published, algorithm.network().parameter_count());
        if published != parameters {
            return Err(AlgorithmError::Published { algorithm: algorithm.name(), published, parameters });
        }
        let normalisation = Normalisation {
            observations: config.algorithm.normalise_observations,
            rewards: config.algorithm.normalise_rewards,
            length: environment.observation.len(),
        };
        Ok(if normalisation.is_needed() { Box::new(Normalised::new(algorithm, normalisation)) } else { algorithm })
    }

    fn find(&self, name: &str) -> Result<&Known, AlgorithmError> {
        self.known.iter().find(|known| known.declaration.name == name).ok_or_else(|| {
            let suggestion = nearest(name, self.names()).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
            let known = self.names().collect::<Vec<_>>().join(", ");
            AlgorithmError::Unknown { name: name.to_owned(), suggestion, known }
        })
    }
}

/// The algorithm of this library that `config` names, for `environment`: [`Algorithms::build`].
///
/// # Errors
/// As [`Algorithms::build`].
pub fn build(config: &Config, environment: &EnvironmentSpec) -> Result<Box<dyn Algorithm>, AlgorithmError> {
    Algorithms::default().build(config, environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{Learning, Policy, Sizes};
    use crate::environments::{ActionSpace, spec};
    use crate::experience::Experience;
    use crate::metrics::Metric;
    use crate::networks::{Head, InputSpec, NetworkSpec};
    use crate::values::ValueType;

    /// SAC of a pendulum under another name, for whatever environment.
    struct Mine {
        sac: Box<dyn Algorithm>,
        network: NetworkSpec,
        /// Values that it publishes beside the parameters of its network.
        further: usize,
    }

    impl Mine {
        fn new(further: usize) -> Result<Self, AlgorithmError> {
            let mut config = Config::for_environment("Pendulum-v1");
            config.algorithm.name = "sac".into();
            let sac = build(&config, &pendulum())?;
            Ok(Self { network: sac.network().clone(), sac, further })
        }
    }

    impl Algorithm for Mine {
        fn name(&self) -> &'static str {
            "mine"
        }

        fn experience(&self) -> &dyn Experience {
            self.sac.experience()
        }

        fn metrics(&self) -> &'static [Metric] {
            self.sac.metrics()
        }

        fn network(&self) -> &NetworkSpec {
            &self.network
        }

        fn sizes(&self) -> Sizes {
            let sizes = self.sac.sizes();
            Sizes { published: sizes.published + self.further, ..sizes }
        }

        fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32 {
            self.sac.exploration(environment, of, env_steps)
        }

        fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
            self.sac.policy()
        }

        fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
            self.sac.learning(seed)
        }
    }

    fn pendulum() -> EnvironmentSpec {
        spec("Pendulum-v1").expect("it is native")
    }

    fn build_mine(further: usize, environment: &EnvironmentSpec) -> Result<(), AlgorithmError> {
        build_as_mine(move || Mine::new(further), environment)
    }

    /// Build the algorithm that `make` makes, under its name.
    fn build_as_mine(
        make: impl Fn() -> Result<Mine, AlgorithmError> + Send + Sync + 'static,
        environment: &EnvironmentSpec,
    ) -> Result<(), AlgorithmError> {
        let mut algorithms = Algorithms::default();
        algorithms.add(Declaration { name: "mine", keys: &[], learns_from_bytes: false }, move |_, _| make());
        let mut config = Config::for_environment(&environment.id);
        config.algorithm.name = "mine".into();
        config.algorithm.normalise_observations = true;
        algorithms.build(&config, environment).map(drop)
    }

    #[test]
    fn what_no_weights_file_would_hold_is_not_published() {
        build_mine(0, &pendulum()).expect("how observations are scaled is published behind the parameters, and has its place");
        let refusal = build_mine(2, &pendulum()).unwrap_err();
        assert!(refusal.to_string().starts_with("mine publishes ") && refusal.key() == "algorithm.name", "{refusal}");
    }

    #[test]
    fn a_network_whose_kernel_is_larger_than_its_image_is_refused_by_the_convolutions_whoever_made_it() {
        let image = InputSpec { element: ValueType::U8, shape: vec![1, 4, 4] };
        let network = NetworkSpec::of_input(image, &[[8, 5, 1]], &[], Head::Linear { outputs: 2 });
        let refusal = build_as_mine(move || Ok(Mine { network: network.clone(), ..Mine::new(0)? }), &pendulum()).unwrap_err();
        assert_eq!(refusal.key(), "network.convolutions", "{refusal}");
    }

    #[test]
    fn an_algorithm_that_was_added_needs_bounds_too() {
        let action = ActionSpace::Box { low: vec![-1.0, f32::NEG_INFINITY], high: vec![1.0, 1.0] };
        let refusal = build_mine(0, &EnvironmentSpec { action, ..pendulum() }).unwrap_err().to_string();
        assert!(refusal.contains("does not bound element 1") && refusal.contains("mine needs finite bounds"), "{refusal}");
    }
}
