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
    let scale = 1.0 / (total.samples * total.largest_weight);
    gradient.iter_mut().for_each(|value| *value *= scale as f32);
    total.tally.amount_mut(LOSS).value /= total.largest_weight;
}

/// Turn a summed gradient of unweighted losses, such as that of a policy, into that of the mean loss.
pub fn take_mean(gradient: &mut [f32], total: &Share) {
    gradient.iter_mut().for_each(|value| *value *= (1.0 / total.samples) as f32);
}

/// The norm `reported`, or `other` if that is not finite, so that the caller sees it.
pub(super) fn finite_or(other: f32, reported: f32) -> f32 {
    if other.is_finite() { reported } else { other }
}
