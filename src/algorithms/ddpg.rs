//! Deep deterministic policy gradient (Lillicrap et al. 2016): one critic, and a policy that climbs it.
//!
//! Choices, beside what the configuration offers:
//! - exploration is uncorrelated Gaussian noise, each environment with a deviation of its own, instead of an
//!   Ornstein-Uhlenbeck process: the simpler one does as well (Fujimoto et al. 2018, section 6.1);
//! - critic and policy are updated from the same batch and the same parameters, so that learners exchange
//!   one gradient per update;
//! - importance weights multiply the critic's loss and not the policy's.
//!
//! docs/ddpg.md has the measured scores.

use super::deterministic::Variant;
use crate::config::Config;

/// DDPG, as `config` describes it.
pub(super) fn variant(config: &Config) -> Variant {
    Variant {
        name: "ddpg",
        critics: 1,
        target_noise: None,
        policy_delay_updates: 1,
        target_networks: config.algorithm.target_networks("ddpg"),
    }
}
