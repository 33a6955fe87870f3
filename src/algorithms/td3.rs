//! Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018): two critics of which targets take the smaller value,
//! noise on the target policy's actions, and a policy (with all target networks) that is updated less often than the critics.
//!
//! Choices, beside what the configuration offers:
//! - critics and policy are updated from the same batch and the same parameters, so that learners exchange one gradient per
//!   update;
//! - importance weights multiply the critics' loss and not the policy's; priorities are the mean of both critics' absolute
//!   errors.
//!
//! docs/td3.md has the measured scores.

use super::actor_critic::ActorCritic;
use super::deterministic::{DeterministicLearning, DeterministicPolicy, Settings};
use super::{Algorithm, AlgorithmError, Learning, Policy, Sizes, exploration};
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::networks::NetworkSpec;
use crate::replay::Schema;

const NAME: &str = "td3";

/// TD3 in one environment.
pub(super) struct Td3 {
    shared: ActorCritic,
}

impl Td3 {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        Ok(Self { shared: ActorCritic::new(NAME, config, environment, 1, 2)? })
    }
}

impl Algorithm for Td3 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schema(&self) -> Schema {
        self.shared.schema()
    }

    fn network(&self) -> &NetworkSpec {
        &self.shared.policy
    }

    fn sizes(&self) -> Sizes {
        self.shared.sizes(true, 0, 0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a deviation needs no more than an f32")]
    fn exploration(&self, environment: usize, of: usize, _env_steps: u64) -> f32 {
        exploration::noise_std(&self.shared.config.algorithm, environment, of) as f32
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        Ok(Box::new(DeterministicPolicy::new(self.shared.acting_network()?)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "settings are given in f64 and used in f32")]
    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let config = &self.shared.config.algorithm;
        let settings = Settings {
            target_noise: Some((config.target_noise_std as f32, config.target_noise_clip as f32)),
            policy_delay_updates: config.policy_delay_updates,
            target_interval_updates: config.target_interval_updates.unwrap_or(config.policy_delay_updates),
        };
        Ok(self.shared.suited(DeterministicLearning::new(&self.shared, settings, seed)?))
    }
}
