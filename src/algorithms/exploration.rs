//! How much each environment of a run explores.

use crate::config::schedule::linear;
use crate::config::schema::{AlgorithmConfig, Exploration};

/// Epsilon of one environment after `env_steps` of the run: how often it acts at random.
///
/// `environment` counts over all actors: `of` environments in the run. With Ape-X (Horgan et al. 2018, section 4.1)
/// environment `i` of `N` explores at the constant rate `epsilon ^ (1 + alpha * i / (N - 1))`.
pub fn epsilon(config: &AlgorithmConfig, environment: usize, of: usize, env_steps: u64) -> f64 {
    match config.exploration {
        Exploration::Global => linear(config.epsilon_start, config.epsilon_end, env_steps, config.epsilon_anneal_steps),
        Exploration::ApeX => config.epsilon_end.powf(1.0 + config.epsilon_alpha * position(environment, of)),
    }
}

/// Standard deviation of the noise on the actions of one environment, in units of half the action range.
///
/// Environment `i` of `N` gets `exploration_noise_std * exploration_noise_spread ^ (i / (N - 1))`: with a spread other
/// than 1 some environments stay near the policy while others wander, as Ape-X does with its rates.
pub fn noise_std(config: &AlgorithmConfig, environment: usize, of: usize) -> f64 {
    config.exploration_noise_std * config.exploration_noise_spread.powf(position(environment, of))
}

/// Of a policy that explores by itself: with 1 its actions are drawn from it, with 0 the most likely ones are taken.
pub(super) const OF_THE_POLICY: f32 = 1.0;

/// 0 for the first environment, 1 for the last.
fn position(environment: usize, of: usize) -> f64 {
    if of > 1 { environment as f64 / (of - 1) as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ape_x_spreads_the_rates_between_its_two_extremes() {
        let config = AlgorithmConfig { exploration: Exploration::ApeX, epsilon_end: 0.4, epsilon_alpha: 7.0, ..AlgorithmConfig::default() };
        assert!((epsilon(&config, 0, 8, 5) - 0.4).abs() < 1e-12);
        assert!((epsilon(&config, 7, 8, 5) - 0.4f64.powi(8)).abs() < 1e-12);
        assert!(epsilon(&config, 3, 8, 5) > epsilon(&config, 4, 8, 5));
    }

    #[test]
    fn noise_goes_geometrically_from_its_deviation_to_the_spread_of_it() {
        let config = AlgorithmConfig { exploration_noise_std: 0.2, exploration_noise_spread: 0.25, ..AlgorithmConfig::default() };
        let found: Vec<f64> = (0..3).map(|environment| noise_std(&config, environment, 3)).collect();
        for (found, expected) in found.iter().zip([0.2, 0.1, 0.05]) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
        assert!((noise_std(&config, 0, 1) - 0.2).abs() < 1e-12);
    }
}
