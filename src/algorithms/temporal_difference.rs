//! What all algorithms share that learn from temporal-difference errors: targets, losses and metrics.

use crate::config::schema::Loss;
use crate::experience::transition::{DISCOUNT, FLAGS, REWARD, is_terminated};
use crate::metrics::{Metric, Share};
use crate::replay::Batch;

/// Mean weighted loss.
pub const LOSS: Metric = Metric::mean("loss");
/// Mean value of the actions that were taken.
pub const Q_MEAN: Metric = Metric::mean("q_mean");
/// Norm of the gradient before clipping; with critics, the largest of the critics' norms.
pub const GRADIENT_NORM: Metric = Metric::last("gradient_norm");
/// Mean loss of the policy, over the updates that change it.
pub(super) const POLICY_LOSS: Metric = Metric::mean("policy_loss");
/// Entropy of the policy.
pub(super) const ENTROPY: Metric = Metric::mean("entropy");
/// Standard deviation of a policy whose actions are continuous, mean over their elements.
pub(super) const ACTION_STD: Metric = Metric::mean("action_std");

impl Loss {
    /// The loss of a temporal-difference error, and its derivative.
    pub fn at(self, error: f32) -> (f32, f32) {
        match self {
            Self::Mse => (0.5 * error * error, error),
            Self::Huber if error.abs() <= 1.0 => (0.5 * error * error, error),
            Self::Huber => (error.abs() - 0.5, error.signum()),
        }
    }
}

/// Write the target of each row into `targets`: reward + discount * bootstrap value, or the reward
/// alone if the problem ended.
pub fn bootstrap(batch: &Batch, bootstrap_values: &[f32], targets: &mut Vec<f32>) {
    let [rewards, discounts] = [REWARD, DISCOUNT].map(|field| batch.column(field).as_f32());
    let flags = batch.column(FLAGS).as_i32();
    targets.clear();
    targets.extend(
        bootstrap_values
            .iter()
            .enumerate()
            .map(|(row, value)| if is_terminated(flags[row]) { rewards[row] } else { rewards[row] + discounts[row] * value }),
    );
}

/// Turn the summed gradient of weighted losses into that of their mean, with weights of at most 1: it is divided by the
/// number of samples and by the largest weight. So is [`LOSS`], of which the tally has the mean already, by that weight:
/// call this once per update, for all gradients of weighted losses together.
///
/// # Panics
/// If the algorithm's metrics lack [`LOSS`].
pub fn take_weighted_mean(gradient: &mut [f32], total: &mut Share) {
    let factor = weighted_mean_factor(total);
    gradient.iter_mut().for_each(|value| *value *= factor);
}

/// What [`take_weighted_mean`] multiplies a gradient by. [`LOSS`] is divided here: call this once per update.
pub(super) fn weighted_mean_factor(total: &mut Share) -> f32 {
    total.tally.amount_mut(LOSS).value /= total.largest_weight;
    (1.0 / (total.samples * total.largest_weight)) as f32
}

/// Turn a summed gradient of unweighted losses, such as that of a policy, into that of the mean loss.
pub fn take_mean(gradient: &mut [f32], total: &Share) {
    let factor = mean_factor(total);
    gradient.iter_mut().for_each(|value| *value *= factor);
}

/// What [`take_mean`] multiplies a gradient by.
pub(super) fn mean_factor(total: &Share) -> f32 {
    (1.0 / total.samples) as f32
}

/// The norm `reported`, or `other` if that is not finite, so that the caller sees it.
pub(super) fn finite_or(other: f32, reported: f32) -> f32 {
    if other.is_finite() { reported } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::registry;
    use crate::config::Config;
    use crate::environments::spec;

    /// Every bit of the state after some updates, each with the gradients of 48 samples, as a sum or as the mean.
    fn state_after(config: &Config, with_mean: bool) -> Vec<u32> {
        let algorithm = registry::build(config, &spec(&config.environment.id).unwrap()).unwrap();
        let (sizes, mut learning) = (algorithm.sizes(), algorithm.learning(1).unwrap());
        for update in 0..4 {
            let mut gradient: Vec<f32> = (0..sizes.learned).map(|index| ((index + update) as f32).sin()).collect();
            let mut total = Share::of(algorithm.metrics(), 48, 1.0);
            if with_mean {
                take_mean(&mut gradient, &total);
                total.samples = 1.0;
            }
            assert!(learning.apply(&mut gradient, &mut total, 1e-3).is_finite());
        }
        let mut state = vec![0.0; sizes.state];
        learning.save(&mut state);
        state.into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn an_update_with_a_sum_is_bit_for_bit_the_one_with_what_take_mean_makes_of_it() {
        let discrete = ["dqn", "ppo", "appo"].map(|name| (name, "CartPole-v1"));
        let continuous = ["ddpg", "td3", "sac", "ppo"].map(|name| (name, "Pendulum-v1"));
        for (name, environment) in discrete.into_iter().chain(continuous) {
            for limit in [None, Some(0.05)] {
                let mut config = Config::for_environment(environment);
                config.algorithm.name = name.into();
                config.network.hidden = vec![16, 16];
                config.learner.max_gradient_norm = limit;
                assert!(state_after(&config, false) == state_after(&config, true), "{name} on {environment}, clipped to {limit:?}");
            }
        }
    }
}
