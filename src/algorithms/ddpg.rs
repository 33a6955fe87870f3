//! Deep deterministic policy gradient (Lillicrap et al. 2016): one critic, and a policy that climbs it.
//!
//! Choices, beside what the configuration offers:
//! - exploration is uncorrelated Gaussian noise, each environment with a deviation of its own, instead of an Ornstein-Uhlenbeck
//!   process: the simpler one does as well (Fujimoto et al. 2018, section 5.1 of the appendix);
//! - critic and policy are updated from the same batch and the same parameters, so that learners exchange one gradient per
//!   update;
//! - importance weights multiply the critic's loss and not the policy's.
//!
//! docs/ddpg.md has the measured scores.

use super::actor_critic::ActorCritic;
use super::deterministic::{DeterministicLearning, DeterministicPolicy, Settings};
use super::{Algorithm, AlgorithmError, Learning, Policy, Sizes, exploration};
use crate::config::Config;
use crate::environments::EnvironmentSpec;
use crate::networks::NetworkSpec;
use crate::replay::Schema;

const NAME: &str = "ddpg";

/// DDPG in one environment.
pub(super) struct Ddpg {
    shared: ActorCritic,
}

impl Ddpg {
    pub(super) fn new(config: &Config, environment: &EnvironmentSpec) -> Result<Self, AlgorithmError> {
        Ok(Self { shared: ActorCritic::new(NAME, config, environment, 1, 1)? })
    }
}

impl Algorithm for Ddpg {
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

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        let settings = Settings {
            target_noise: None,
            policy_delay_updates: 1,
            target_interval_updates: self.shared.config.algorithm.target_interval_updates.unwrap_or(1),
        };
        Ok(self.shared.suited(DeterministicLearning::new(&self.shared, settings, seed)?))
    }
}
