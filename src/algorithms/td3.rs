//! Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018): two critics of which targets take the
//! smaller value, noise on the target policy's actions, and a policy (with all target networks) that is updated less
//! often than the critics.
//!
//! Choices, beside what the configuration offers:
//! - critics and policy are updated from the same batch and the same parameters, so that learners exchange
//!   one gradient per update;
//! - importance weights multiply the critics' loss and not the policy's; priorities are the mean of both critics'
//!   absolute errors.
//!
//! docs/td3.md has the measured scores.

use super::deterministic::Variant;
use crate::config::Config;

/// TD3, as `config` describes it.
pub(super) fn variant(config: &Config) -> Variant {
    let config = &config.algorithm;
    Variant {
        name: "td3",
        critics: 2,
        target_noise: Some((config.target_noise_std as f32, config.target_noise_clip as f32)),
        policy_delay_updates: config.policy_delay_updates,
        target_networks: config.target_networks("td3"),
    }
}
