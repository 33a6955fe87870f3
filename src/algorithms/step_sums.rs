//! What the learners of PPO and APPO tell of the steps that they learn from.

use super::statistics::Moments;
use super::temporal_difference::ACTION_STD;
use crate::metrics::{Metric, Share, Tally};

/// Half the squared error of the values.
pub(super) const VALUE_LOSS: Metric = Metric::mean("value_loss");
/// Share of the variance of the values' targets that the values explain: 1 if each has its target, 0 if one value for
/// all states would be as near.
pub(super) const EXPLAINED_VARIANCE: Metric = Metric::mean("explained_variance");
/// Divergence of the policy from the one that it is compared with.
pub(super) const DIVERGENCE: Metric = Metric::mean("kl");
/// Steps whose ratio was beyond the clip.
pub(super) const CLIPPED: Metric = Metric::mean("clipped_share");

/// Mean and standard deviation of advantages, the deviation a little larger so that it can divide.
pub(super) fn mean_and_deviation(advantages: impl ExactSizeIterator<Item = f32> + Clone) -> (f32, f32) {
    // As f64 the sum of equal numbers is exact: their deviation is no rounding error, by which another would be divided.
    let advantages = advantages.map(f64::from);
    let count = advantages.len() as f64;
    let mean = advantages.clone().sum::<f64>() / count;
    let variance = advantages.map(|advantage| (advantage - mean).powi(2)).sum::<f64>() / count;
    (mean as f32, variance.sqrt() as f32 + 1e-8)
}

/// Sums of what the steps of a block say of some metrics, and of the standard deviation of a policy that has one.
pub(super) struct StepSums<const METRICS: usize> {
    metrics: [Metric; METRICS],
    sums: [f64; METRICS],
    deviations: Option<f64>,
    steps: usize,
}

impl<const METRICS: usize> StepSums<METRICS> {
    /// No steps yet.
    pub(super) fn of(metrics: [Metric; METRICS]) -> Self {
        Self { metrics, sums: [0.0; METRICS], deviations: None, steps: 0 }
    }

    /// Take in a step: its value for each of the metrics, in their order.
    pub(super) fn add(&mut self, values: [f64; METRICS], deviation: Option<f32>) {
        self.steps += 1;
        self.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        if let Some(deviation) = deviation {
            *self.deviations.get_or_insert(0.0) += f64::from(deviation);
        }
    }

    /// Add the steps to `share`.
    pub(super) fn report(self, share: &mut Share) {
        let steps = self.steps as f64;
        share.samples += steps;
        let deviations = self.deviations.map(|sum| (ACTION_STD, sum));
        let sums = self.metrics.into_iter().zip(self.sums).chain(deviations);
        sums.for_each(|(metric, sum)| share.tally.add_all(metric, sum, steps));
    }
}

/// How well values foretell their targets, for [`EXPLAINED_VARIANCE`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Explained {
    targets: Moments,
    errors: Moments,
}

impl Explained {
    /// Take in the target of a value, and the difference of the two.
    pub(super) fn add(&mut self, target: f32, error: f32) {
        self.targets.add(target.into());
        self.errors.add(error.into());
    }

    /// Add the share to `tally`, where learners and updates count by the variance of their targets: the mean is what all
    /// of them explain, divided by all that there is to explain, each around its own mean.
    pub(super) fn report(&self, tally: &mut Tally) {
        let all = self.targets.squares;
        // A count that is no number would be taken for none, and nobody would be told.
        tally.add_all(EXPLAINED_VARIANCE, all - self.errors.squares, if all.is_nan() { 1.0 } else { all });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_advantages_have_no_deviation() {
        for (advantage, count) in [(0.1, 16), (0.7, 16), (1000.1, 16), (-16.2736, 256)] {
            let found = mean_and_deviation(std::iter::repeat_n(advantage, count));
            assert_eq!(found, (advantage, 1e-8), "{count} of them");
        }
    }

    /// What the parts of a batch explain, each with its targets and values.
    fn explained(parts: &[&[(f32, f32)]]) -> Option<f64> {
        let mut tally = Tally::new(&[EXPLAINED_VARIANCE]);
        for part in parts {
            let mut explained = Explained::default();
            part.iter().for_each(|(target, value)| explained.add(*target, value - target));
            explained.report(&mut tally);
        }
        tally.get(EXPLAINED_VARIANCE.name)
    }

    #[test]
    fn values_explain_what_is_left_of_the_variance_of_their_targets_without_their_errors() {
        // Targets of 1, 3 and 8: their squared distances from 4 are 26 in all.
        assert_eq!(explained(&[&[(1.0, 1.0), (3.0, 3.0), (8.0, 8.0)]]), Some(1.0));
        assert_eq!(explained(&[&[(1.0, 6.0), (3.0, 8.0), (8.0, 13.0)]]), Some(1.0), "all too large by as much");
        assert_eq!(explained(&[&[(1.0, 4.0), (3.0, 4.0), (8.0, 4.0)]]), Some(0.0));
        assert!(explained(&[&[(f32::NAN, 1.0)], &[(1.0, 1.0), (3.0, 3.0)]]).is_some_and(f64::is_nan));
        // Errors of 13, 0 and -13.
        assert_eq!(explained(&[&[(1.0, 14.0), (3.0, 3.0), (8.0, -5.0)]]), Some(1.0 - 338.0 / 26.0));
        // Of two targets 2 apart nothing is explained, of the other three all is.
        assert_eq!(explained(&[&[(0.0, 5.0), (2.0, 5.0)], &[(1.0, 1.0), (3.0, 3.0), (8.0, 8.0)]]), Some(26.0 / 28.0));
    }

    #[test]
    fn of_equal_targets_there_is_nothing_to_explain() {
        assert_eq!(explained(&[&[]]), None);
        assert_eq!(explained(&[&[(3.0, 7.0)]]), None);
        assert_eq!(explained(&[&[(0.1, 1.0); 7], &[(0.1, 2.0), (0.1, 3.0)]]), None);
    }
}
