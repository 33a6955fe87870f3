//! Metrics: what an algorithm declares, and values while they accumulate.
//!
//! An algorithm names its metrics and says how each accumulates. The rest needs no more code: values accumulate over
//! the learners' parts of an update (`segment::gradients`), then over the updates between two reports to the
//! supervisor (`segment::metrics`), and go to every sink of `telemetry` and to the inspector.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most metrics that one algorithm may declare: each share of a gradient has room for so many.
pub const MOST_METRICS: usize = 16;

/// How the values of a metric become one: over learners, then over updates, then over reports. While the supervisor
/// stands still for a second or more, as on a slow disk, the oldest reports may be lost: a sum or a largest value never
/// makes up for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accumulation {
    /// The sum since the run began, or went on from a checkpoint.
    Sum,
    /// The mean over everything that the updates of a report were made from.
    Mean,
    /// The largest value since the run began, or went on from a checkpoint.
    Max,
    /// The newest value.
    Last,
}

/// A metric as an algorithm declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Key in `metrics.jsonl`; with `train/` before it the tag in TensorBoard.
    pub name: &'static str,
    /// How several of its values become one.
    pub accumulation: Accumulation,
}

impl Metric {
    /// A metric whose values add up.
    pub const fn sum(name: &'static str) -> Self {
        Self { name, accumulation: Accumulation::Sum }
    }

    /// A metric whose value is the mean.
    pub const fn mean(name: &'static str) -> Self {
        Self { name, accumulation: Accumulation::Mean }
    }

    /// A metric whose value is the largest.
    pub const fn max(name: &'static str) -> Self {
        Self { name, accumulation: Accumulation::Max }
    }

    /// A metric whose value is the newest.
    pub const fn last(name: &'static str) -> Self {
        Self { name, accumulation: Accumulation::Last }
    }
}

/// What has accumulated of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amount {
    /// The sum, the largest or the newest of the values.
    pub value: f64,
    /// Number of values that have accumulated; with 0 nothing is known.
    pub count: f64,
}

impl Amount {
    /// Merge in an amount that came later.
    pub fn merge(&mut self, later: Self, accumulation: Accumulation) {
        if later.count == 0.0 {
            return;
        }
        self.value = match accumulation {
            _ if self.count == 0.0 => later.value,
            Accumulation::Sum | Accumulation::Mean => self.value + later.value,
            // Not `f64::max`, which would drop a NaN that readers must see.
            Accumulation::Max if self.value > later.value || self.value.is_nan() => self.value,
            Accumulation::Max | Accumulation::Last => later.value,
        };
        self.count += later.count;
    }

    /// Merge in the newest report of a run. The mean of a report replaces the one before.
    pub fn report(&mut self, newest: Self, accumulation: Accumulation) {
        if accumulation == Accumulation::Mean && newest.count > 0.0 {
            *self = newest;
        } else {
            self.merge(newest, accumulation);
        }
    }

    /// The metric's value; `None` when nothing is known.
    pub fn known(self, accumulation: Accumulation) -> Option<f64> {
        let divisor = if accumulation == Accumulation::Mean { self.count } else { 1.0 };
        (self.count > 0.0).then(|| self.value / divisor)
    }
}

/// What has accumulated of all metrics of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    metrics: &'static [Metric],
    amounts: [Amount; MOST_METRICS],
}

impl Tally {
    /// Nothing yet of `metrics`.
    ///
    /// # Panics
    /// When they are more than [`MOST_METRICS`].
    pub fn new(metrics: &'static [Metric]) -> Self {
        assert!(metrics.len() <= MOST_METRICS, "{} metrics are declared, at most {MOST_METRICS} have room", metrics.len());
        Self { metrics, amounts: [Amount::default(); MOST_METRICS] }
    }

    /// The metrics, in the order of their declaration.
    pub fn metrics(&self) -> &'static [Metric] {
        self.metrics
    }

    /// The amount of each metric, in the order of their declaration.
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts[..self.metrics.len()]
    }

    /// Add one value.
    ///
    /// # Panics
    /// If the algorithm has not declared the metric, as [`Self::add_all`] and [`Self::amount_mut`] do.
    pub fn add(&mut self, metric: Metric, value: f64) {
        self.add_all(metric, value, 1.0);
    }

    /// Add `count` values, which sum to `sum`.
    pub fn add_all(&mut self, metric: Metric, sum: f64, count: f64) {
        self.amount_mut(metric).merge(Amount { value: sum, count }, metric.accumulation);
    }

    /// The amount of a metric, to be changed: for instance scaled, once the shares of all learners are added up.
    pub fn amount_mut(&mut self, metric: Metric) -> &mut Amount {
        let position = self.metrics.iter().position(|declared| *declared == metric);
        &mut self.amounts[position.unwrap_or_else(|| panic!("the algorithm's metrics do not declare {metric:?}"))]
    }

    /// The value of the metric called `name`; `None` when nothing is known of it.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.known().find(|(metric, _)| metric.name == name).map(|(_, value)| value)
    }

    /// Every metric of which something is known, with its value.
    pub fn known(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.metrics.iter().zip(&self.amounts).filter_map(|(&metric, amount)| Some((metric, amount.known(metric.accumulation)?)))
    }

    /// Merge in a tally that came later, or from another learner.
    pub fn merge(&mut self, later: &Self) {
        later.amounts().iter().enumerate().for_each(|(index, &amount)| self.merge_at(index, amount));
    }

    /// Merge in an amount of metric number `index` of the declaration. No effect if there is no such metric.
    pub fn merge_at(&mut self, index: usize, later: Amount) {
        if let Some(metric) = self.metrics.get(index) {
            self.amounts[index].merge(later, metric.accumulation);
        }
    }

    /// As [`Self::merge_at`], with [`Amount::report`].
    pub fn report_at(&mut self, index: usize, newest: Amount) {
        if let Some(metric) = self.metrics.get(index) {
            self.amounts[index].report(newest, metric.accumulation);
        }
    }

    /// Forget all values.
    pub fn clear(&mut self) {
        self.amounts = [Amount::default(); MOST_METRICS];
    }
}

/// For people to read: `loss 0.25, q_mean 11.2`.
impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (metric, value)) in self.known().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(formatter, "{separator}{} {value}", metric.name)?;
        }
        Ok(())
    }
}

/// What a learner found in its part of a batch, besides the gradient. The sum of all shares is what all learners found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Transitions, or other samples, in it.
    pub samples: f64,
    /// Largest importance weight, not yet divided by anything: the largest of all parts is known only once all shares
    /// are added up. 1 if samples have no weights.
    pub largest_weight: f64,
    /// Environment steps of the run when the share was made. The sum of shares has the largest, so that all learners
    /// take the same step.
    pub env_steps: u64,
    /// The metrics.
    pub tally: Tally,
}

impl Share {
    /// Nothing yet.
    pub fn new(metrics: &'static [Metric]) -> Self {
        Self { samples: 0.0, largest_weight: 0.0, env_steps: 0, tally: Tally::new(metrics) }
    }

    /// What was found in so many samples, before anything is added to the tally.
    pub fn of(metrics: &'static [Metric], samples: usize, largest_weight: f32) -> Self {
        Self { samples: samples as f64, largest_weight: f64::from(largest_weight), ..Self::new(metrics) }
    }

    /// Add another part of the same batch.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.largest_weight = self.largest_weight.max(other.largest_weight);
        self.env_steps = self.env_steps.max(other.env_steps);
        self.tally.merge(&other.tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[Metric] = &[Metric::sum("dropped"), Metric::mean("loss"), Metric::max("worst"), Metric::last("newest")];

    fn tally(values: [f64; 4], count: f64) -> Tally {
        let mut tally = Tally::new(METRICS);
        METRICS.iter().zip(values).for_each(|(&metric, value)| tally.add_all(metric, value, count));
        tally
    }

    fn values(tally: &Tally) -> Vec<f64> {
        tally.known().map(|(_, value)| value).collect()
    }

    #[test]
    fn parts_become_one_as_each_metric_declares() {
        let mut total = tally([3.0, 8.0, 7.0, 1.0], 4.0);
        total.merge(&tally([2.0, 2.0, 5.0, 9.0], 1.0));
        assert_eq!(values(&total), [5.0, 2.0, 7.0, 9.0]);
        total.merge(&Tally::new(METRICS));
        assert_eq!(values(&total), [5.0, 2.0, 7.0, 9.0], "nothing changes nothing");
        assert_eq!(total.to_string(), "dropped 5, loss 2, worst 7, newest 9");
    }

    #[test]
    fn over_the_reports_of_a_run_sums_and_maxima_grow_and_means_are_the_newest() {
        let mut run = Tally::new(METRICS);
        for report in [tally([3.0, 8.0, 7.0, 1.0], 4.0), tally([2.0, 2.0, 5.0, 9.0], 1.0), Tally::new(METRICS)] {
            report.amounts().iter().enumerate().for_each(|(index, &amount)| run.report_at(index, amount));
        }
        assert_eq!(values(&run), [5.0, 2.0, 7.0, 9.0]);
        run.report_at(77, Amount { value: 1.0, count: 1.0 });
        assert_eq!(values(&run), [5.0, 2.0, 7.0, 9.0]);
    }

    #[test]
    fn what_is_no_number_is_seen_and_what_was_never_said_is_not_known() {
        let mut run = Tally::new(METRICS);
        assert_eq!((run.known().count(), run.get("loss")), (0, None));
        for value in [3.0, f64::NAN, 4.0] {
            METRICS.iter().for_each(|&metric| run.add(metric, value));
        }
        assert!(["dropped", "loss", "worst"].iter().all(|name| run.get(name).is_some_and(f64::is_nan)), "{run}");
        assert_eq!(run.get("newest"), Some(4.0));
    }

    #[test]
    #[should_panic(expected = "do not declare")]
    fn what_is_not_declared_is_refused() {
        Tally::new(METRICS).add(Metric::last("loss"), 1.0);
    }
}
