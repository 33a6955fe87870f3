//! Distributions over actions that a network's outputs describe: probabilities, entropy and divergence, and their
//! gradients with respect to the outputs.

use std::f32::consts::{E, PI};

use rand::RngExt;
use rand_distr::StandardNormal;

use super::action::greedy;
use super::{ActionMut, Random};
use crate::environments::ActionSpace;

/// Logarithms of a standard deviation outside of this range are clamped; their only gradient is
/// then one that leads back.
const LOG_DEVIATION: std::ops::RangeInclusive<f32> = -5.0..=2.0;

/// A kind of distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distribution {
    /// One of several actions; the outputs are their logits.
    Categorical {
        /// Number of actions.
        actions: usize,
    },
    /// Independent normal distributions; the outputs are the means, then the logarithms of the standard deviations.
    Gaussian {
        /// Elements of an action.
        elements: usize,
    },
}

/// Derivatives of a loss, from which [`Described::add_gradient`] computes its gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slopes {
    /// With respect to the logarithm of the action's probability.
    pub(super) log_probability: f32,
    /// With respect to the entropy.
    pub(super) entropy: f32,
    /// With respect to the divergence from the other distribution.
    pub(super) divergence: f32,
}

impl Distribution {
    pub(super) fn of(space: &ActionSpace) -> Self {
        match space {
            ActionSpace::Discrete { n } => Self::Categorical { actions: *n },
            ActionSpace::Box { low, .. } => Self::Gaussian { elements: low.len() },
        }
    }

    /// Outputs that describe one distribution.
    pub(super) fn outputs(self) -> usize {
        match self {
            Self::Categorical { actions } => actions,
            Self::Gaussian { elements } => 2 * elements,
        }
    }

    /// Draw an action; returns the logarithm of its probability, or density.
    pub(super) fn draw(self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> f32 {
        match action {
            ActionMut::Discrete(action) => {
                // Gumbel's trick would need a logarithm per action; a walk over the probabilities
                // needs one exponential each.
                let normaliser = log_sum_exp(outputs);
                let mut target = random.random::<f32>();
                let chosen = outputs.iter().position(|logit| {
                    target -= (logit - normaliser).exp();
                    target < 0.0
                });
                // Rounding may leave a little of the target after the last action.
                let chosen = chosen.unwrap_or(outputs.len() - 1);
                *action = i32::try_from(chosen).unwrap_or(0);
                outputs[chosen] - normaliser
            }
            ActionMut::Continuous(action) => {
                let (means, log_deviations) = outputs.split_at(action.len());
                for ((action, mean), log_deviation) in action.iter_mut().zip(means).zip(log_deviations) {
                    *action = mean + clamp(*log_deviation).exp() * random.sample::<f32, _>(StandardNormal);
                }
                log_density(action, outputs)
            }
        }
    }

    /// Take the most likely action.
    pub(super) fn take_most_likely(self, outputs: &[f32], action: ActionMut<'_>) {
        match action {
            ActionMut::Discrete(action) => *action = i32::try_from(greedy(outputs)).unwrap_or(0),
            ActionMut::Continuous(action) => action.copy_from_slice(&outputs[..action.len()]),
        }
    }

    /// Logarithm of the probability, or density, of an action, given in 32-bit lanes.
    pub(super) fn log_probability(self, outputs: &[f32], action: &[u32]) -> f32 {
        match self {
            Self::Categorical { actions } => outputs[index(action, actions)] - log_sum_exp(outputs),
            Self::Gaussian { .. } => log_density(bytemuck::cast_slice(action), outputs),
        }
    }

    /// The distribution that `outputs` describe; `probabilities` is room for those of several actions.
    pub(super) fn describe<'a>(self, outputs: &'a [f32], probabilities: &'a mut Vec<f32>) -> Described<'a> {
        probabilities.clear();
        let (normaliser, entropy) = match self {
            Self::Categorical { .. } => {
                let normaliser = log_sum_exp(outputs);
                probabilities.extend(outputs.iter().map(|logit| (logit - normaliser).exp()));
                let terms = probabilities.iter().zip(outputs).map(|(probability, logit)| probability * (logit - normaliser));
                (normaliser, -terms.sum::<f32>())
            }
            Self::Gaussian { elements } => {
                (0.0, outputs[elements..].iter().map(|deviation| clamp(*deviation) + 0.5 * (2.0 * PI * E).ln()).sum())
            }
        };
        Described { distribution: self, outputs, normaliser, probabilities, entropy }
    }
}

/// The distribution of one row of outputs. Of several actions, the exponentials, in which a row's time would go, are
/// computed once.
pub(super) struct Described<'a> {
    distribution: Distribution,
    outputs: &'a [f32],
    /// What logits have to lose to be logarithms of probabilities.
    normaliser: f32,
    /// Of each of several actions; empty for normal distributions.
    probabilities: &'a [f32],
    /// In nats.
    pub(super) entropy: f32,
}

impl Described<'_> {
    /// As [`Distribution::log_probability`].
    pub(super) fn log_probability(&self, action: &[u32]) -> f32 {
        match self.distribution {
            Distribution::Categorical { actions } => self.outputs[index(action, actions)] - self.normaliser,
            Distribution::Gaussian { .. } => self.distribution.log_probability(self.outputs, action),
        }
    }

    /// The standard deviation, mean over the elements; `None` where one of several actions is chosen.
    pub(super) fn deviation(&self) -> Option<f32> {
        match self.distribution {
            Distribution::Categorical { .. } => None,
            Distribution::Gaussian { elements } => {
                Some(self.outputs[elements..].iter().map(|deviation| clamp(*deviation).exp()).sum::<f32>() / elements as f32)
            }
        }
    }

    /// The divergence of this distribution from another, `KL(other || this)`, in nats.
    pub(super) fn divergence(&self, other: &Self) -> f32 {
        match self.distribution {
            Distribution::Categorical { actions } => (0..actions)
                .map(|action| {
                    let [log_probability, other_log_probability] =
                        [self, other].map(|described| described.outputs[action] - described.normaliser);
                    other.probabilities[action] * (other_log_probability - log_probability)
                })
                .sum(),
            Distribution::Gaussian { elements } => (0..elements)
                .map(|element| {
                    let [(mean, deviation), (other_mean, other_deviation)] =
                        [self, other].map(|described| normal(described.outputs, element, elements));
                    let spread = (other_deviation * other_deviation + (other_mean - mean).powi(2)) / (2.0 * deviation * deviation);
                    deviation.ln() - other_deviation.ln() + spread - 0.5
                })
                .sum(),
        }
    }

    /// Add the gradient of a loss to `gradient`, given its derivatives with respect to the action's probability, the
    /// entropy, and the divergence from `other`.
    pub(super) fn add_gradient(&self, action: &[u32], other: &Self, slopes: Slopes, gradient: &mut [f32]) {
        match self.distribution {
            Distribution::Categorical { actions } => {
                let taken = index(action, actions);
                for (position, gradient) in gradient.iter_mut().enumerate() {
                    let log_probability = self.outputs[position] - self.normaliser;
                    let probability = self.probabilities[position];
                    let was_taken = if position == taken { 1.0 } else { 0.0 };
                    *gradient += slopes.log_probability * (was_taken - probability)
                        - slopes.entropy * probability * (log_probability + self.entropy)
                        + slopes.divergence * (probability - other.probabilities[position]);
                }
            }
            Distribution::Gaussian { elements } => {
                let action: &[f32] = bytemuck::cast_slice(action);
                let (mean_gradients, deviation_gradients) = gradient.split_at_mut(elements);
                for element in 0..elements {
                    let (mean, deviation) = normal(self.outputs, element, elements);
                    // PPO has no divergence in its loss, and need not compute the exponential of the other's deviation.
                    let has_divergence = slopes.divergence != 0.0;
                    let (other_mean, other_deviation) =
                        if has_divergence { normal(other.outputs, element, elements) } else { (mean, deviation) };
                    let variance = deviation * deviation;
                    let distance = action[element] - mean;
                    mean_gradients[element] +=
                        slopes.log_probability * distance / variance + slopes.divergence * (mean - other_mean) / variance;
                    let spread = (other_deviation * other_deviation + (mean - other_mean).powi(2)) / variance;
                    let deviation_gradient = slopes.log_probability * (distance * distance / variance - 1.0)
                        + slopes.entropy
                        + slopes.divergence * (1.0 - spread);
                    if is_followed(self.outputs[elements + element], deviation_gradient) {
                        deviation_gradients[element] += deviation_gradient;
                    }
                }
            }
        }
    }
}

fn index(action: &[u32], actions: usize) -> usize {
    usize::try_from(action[0]).unwrap_or(0).min(actions - 1)
}

fn clamp(log_deviation: f32) -> f32 {
    log_deviation.clamp(*LOG_DEVIATION.start(), *LOG_DEVIATION.end())
}

/// Whether a step against `slope` keeps the logarithm of a deviation within its limits, or leads it back there.
fn is_followed(log_deviation: f32, slope: f32) -> bool {
    LOG_DEVIATION.contains(&log_deviation) || (slope < 0.0) == (log_deviation < *LOG_DEVIATION.start())
}

/// Mean and standard deviation of one element.
fn normal(outputs: &[f32], element: usize, elements: usize) -> (f32, f32) {
    (outputs[element], clamp(outputs[elements + element]).exp())
}

fn log_sum_exp(values: &[f32]) -> f32 {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f32>().ln()
}

fn log_density(action: &[f32], outputs: &[f32]) -> f32 {
    (0..action.len())
        .map(|element| {
            let (mean, deviation) = normal(outputs, element, action.len());
            -0.5 * ((action[element] - mean) / deviation).powi(2) - deviation.ln() - 0.5 * (2.0 * PI).ln()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::algorithms::standardised::assert_standardised;

    const CATEGORICAL: (Distribution, [f32; 4], [f32; 4], [u32; 1]) =
        (Distribution::Categorical { actions: 4 }, [0.3, -1.2, 2.0, 0.4], [0.1, 0.2, 0.9, -0.7], [2]);

    fn gaussian() -> (Distribution, [f32; 4], [f32; 4], [u32; 2]) {
        (Distribution::Gaussian { elements: 2 }, [0.3, -0.2, -0.5, 0.4], [0.1, 0.2, -0.1, 0.3], [0.7f32.to_bits(), (-1.1f32).to_bits()])
    }

    fn assert_slopes(distribution: Distribution, outputs: &[f32], other: &[f32], action: &[u32]) {
        let (mut room, mut other_room) = (Vec::new(), Vec::new());
        let (described, other) = (distribution.describe(outputs, &mut room), distribution.describe(other, &mut other_room));
        let value = |outputs: &[f32], which: usize| {
            let mut room = Vec::new();
            let described = distribution.describe(outputs, &mut room);
            match which {
                0 => described.log_probability(action),
                1 => described.entropy,
                _ => described.divergence(&other),
            }
        };
        assert_eq!(value(outputs, 0), distribution.log_probability(outputs, action));
        for which in 0..3 {
            let one = |index| if which == index { 1.0 } else { 0.0 };
            let slopes = Slopes { log_probability: one(0), entropy: one(1), divergence: one(2) };
            let mut gradient = vec![0.0; outputs.len()];
            described.add_gradient(action, &other, slopes, &mut gradient);
            for position in 0..outputs.len() {
                let moved = |by: f32| {
                    let mut outputs = outputs.to_vec();
                    outputs[position] += by;
                    f64::from(value(&outputs, which))
                };
                let numeric = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                assert!(
                    (f64::from(gradient[position]) - numeric).abs() < 2e-3,
                    "{distribution:?} {which} at {position}: {gradient:?} {numeric}"
                );
            }
        }
        assert!(described.divergence(&described).abs() < 1e-6 && described.divergence(&other) > 0.0);
    }

    #[test]
    fn gradients_are_the_slopes_of_what_they_are_of() {
        let (distribution, outputs, other, action) = CATEGORICAL;
        assert_slopes(distribution, &outputs, &other, &action);
        let (distribution, outputs, other, action) = gaussian();
        assert_slopes(distribution, &outputs, &other, &action);
    }

    #[test]
    fn the_deviation_is_the_mean_of_those_of_the_elements_within_their_limits() {
        let (distribution, outputs, ..) = CATEGORICAL;
        let mut room = Vec::new();
        assert_eq!(distribution.describe(&outputs, &mut room).deviation(), None);
        let outputs = [0.3, -0.2, 0.1, -6.0, -0.5, 3.0];
        let found = Distribution::Gaussian { elements: 3 }.describe(&outputs, &mut room).deviation().unwrap();
        let expected = [-5.0f32, -0.5, 2.0].map(f32::exp).iter().sum::<f32>() / 3.0;
        assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    }

    #[test]
    fn a_deviation_beyond_its_limits_follows_the_slopes_that_lead_back() {
        for (log_deviation, slope, follows) in
            [(-6.0, -1.0, true), (-6.0, 1.0, false), (3.0, 1.0, true), (3.0, -1.0, false), (0.0, 1.0, true), (0.0, -1.0, true)]
        {
            // A step goes against the slope.
            let slopes = Slopes { log_probability: 0.0, entropy: slope, divergence: 0.0 };
            let (outputs, mut room, mut gradient) = ([0.0, log_deviation], Vec::new(), [0.0; 2]);
            let described = Distribution::Gaussian { elements: 1 }.describe(&outputs, &mut room);
            described.add_gradient(&[0], &described, slopes, &mut gradient);
            assert_eq!(gradient[1], if follows { slope } else { 0.0 }, "{log_deviation} with a slope of {slope}");
        }
    }

    #[test]
    fn what_is_drawn_has_the_probability_that_is_said() {
        let (distribution, outputs, ..) = CATEGORICAL;
        let mut random = Random::seed_from_u64(1);
        let mut counts = [0.0f32; 4];
        for _ in 0..20_000 {
            let mut action = 0;
            let said = distribution.draw(&outputs, &mut random, ActionMut::Discrete(&mut action));
            assert_eq!(said, distribution.log_probability(&outputs, &[action.cast_unsigned()]));
            counts[usize::try_from(action).unwrap()] += 1.0 / 20_000.0;
        }
        for (index, count) in (0..).zip(counts) {
            assert!((count - distribution.log_probability(&outputs, &[index]).exp()).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn elements_are_drawn_independently_each_with_its_mean_and_deviation_and_the_density_that_is_said() {
        // The first and the last logarithm of a deviation are beyond the limits.
        let outputs = [0.3f32, -0.2, 0.1, -6.0, -0.5, 3.0];
        let log_deviations = [-5.0f64, -0.5, 2.0];
        let distribution = Distribution::Gaussian { elements: 3 };
        let mut random = Random::seed_from_u64(2);
        let mut action = [0.0f32; 3];
        assert_standardised(|| {
            let said = distribution.draw(&outputs, &mut random, ActionMut::Continuous(&mut action));
            assert_eq!(said, distribution.log_probability(&outputs, &action.map(f32::to_bits)));
            let noise: [f64; 3] =
                std::array::from_fn(|element| f64::from(action[element] - outputs[element]) / log_deviations[element].exp());
            let log_densities = noise
                .iter()
                .zip(log_deviations)
                .map(|(noise, log_deviation)| -0.5 * noise * noise - log_deviation - 0.5 * (2.0 * std::f64::consts::PI).ln());
            let expected: f64 = log_densities.sum();
            assert!((f64::from(said) - expected).abs() < 1e-4, "{said}, not {expected}: {action:?}");
            noise
        });
    }
}
