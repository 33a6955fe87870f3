//! What APPO and PPO, which learn a policy and a value from fragments, have in common:
//! everything but the learner's side.

use super::distribution::Distribution;
use super::policy_and_value::PolicyAndValue;
use super::trained::WithTarget;
use super::trained_policy::TrainedPolicy;
use super::{Algorithm, AlgorithmError, Learning, Policy, Sizes, exploration};
use crate::config::Config;
use crate::config::schedule::linear;
use crate::config::schema::AlgorithmConfig;
use crate::environments::EnvironmentSpec;
use crate::experience::fragment::FragmentShape;
use crate::experience::{Experience, Fragments, Reuse};
use crate::metrics::Metric;
use crate::networks::NetworkSpec;

/// What tells one of these algorithms from another.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) metrics: &'static [Metric],
    pub(super) reuse: Reuse,
    pub(super) with_target: WithTarget,
    /// Values of a learner's state beside those of its networks.
    pub(super) further_state_values: usize,
    pub(super) learning: fn(&AlgorithmConfig, &FragmentShape, Distribution, TrainedPolicy) -> Box<dyn Learning>,
}

/// APPO or PPO in one environment.
pub(super) struct PolicyGradient {
    kind: Kind,
    settings: AlgorithmConfig,
    fragments: Fragments,
    network: PolicyAndValue,
}

impl PolicyGradient {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec, kind: Kind) -> Result<Self, AlgorithmError> {
        let fragments = Fragments::new(config, environment, kind.reuse);
        Ok(Self { kind, settings: config.algorithm.clone(), fragments, network: PolicyAndValue::new(config, environment)? })
    }
}

impl Algorithm for PolicyGradient {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn experience(&self) -> &dyn Experience {
        &self.fragments
    }

    fn network(&self) -> &NetworkSpec {
        self.network.network()
    }

    fn sizes(&self) -> Sizes {
        let state = self.network.state_values(self.kind.with_target) + self.kind.further_state_values;
        Sizes { published: self.network().parameter_count(), learned: self.network.learned_parameters(), state }
    }

    fn metrics(&self) -> &'static [Metric] {
        self.kind.metrics
    }

    fn exploration(&self, _environment: usize, _of: usize, _env_steps: u64) -> f32 {
        exploration::OF_THE_POLICY
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        self.network.policy()
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let policy = self.network.trained(seed, self.kind.with_target)?;
        Ok((self.kind.learning)(&self.settings, self.fragments.shape(), self.network.distribution(), policy))
    }
}

/// Weight of the policy's entropy after `env_steps`.
pub(super) fn entropy_coefficient(settings: &AlgorithmConfig, env_steps: u64) -> f32 {
    linear(settings.entropy_start, settings.entropy_end, env_steps, settings.entropy_anneal_steps) as f32
}
