//! Evaluations: the returns of some episodes under frozen parameters, what they say statistically, and how they are told.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics as _;

use crate::readable::{score, short};

/// Why episodes were played, which decides what their mean may be used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationKind {
    /// One of the many evaluations of a run. The highest mean of many is a lucky one, so it only proposes weights.
    #[default]
    Routine,
    /// Fresh episodes with the weights that a routine evaluation proposed. They decide whether the weights are the
    /// best.
    Confirmation,
}

/// Episodes played by the evaluator with one version of the parameters, without exploration unless `evaluator.greedy`
/// is false.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Seconds since the supervisor started, when the evaluation ended.
    pub wall_s: f64,
    /// Environment steps that training had taken when the parameters were published.
    pub env_steps: u64,
    /// Updates that had led to the parameters.
    pub updates: u64,
    /// Version of the parameters.
    pub version: u64,
    /// Why they were played.
    pub kind: EvaluationKind,
    /// Whether they made the parameters the best of the run.
    pub is_best: bool,
    /// Whether they confirm that the parameters reach the goal of the run.
    pub confirms_goal: bool,
    /// Undiscounted return of each episode.
    pub returns: Vec<f64>,
    /// Environment steps of each episode, in the order of `returns`.
    pub lengths: Vec<u64>,
    /// How many of the episodes were cut off after `evaluator.episode_limit_steps`, and count as far as they came.
    pub cut_off: usize,
}

/// Statistics of the returns of an evaluation; `None` if there are too few episodes for a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReturnStatistics {
    /// Number of episodes.
    pub episodes: u64,
    /// Mean return; `None` without episodes.
    pub return_mean: Option<f64>,
    /// Sample standard deviation of the returns (divided by n - 1); `None` below two episodes.
    pub return_std: Option<f64>,
    /// Smallest return.
    pub return_min: Option<f64>,
    /// Largest return.
    pub return_max: Option<f64>,
    /// Lower end of the two-sided 95 % confidence interval of the mean (Student's t); `None` below two episodes.
    pub ci95_low: Option<f64>,
    /// Upper end of that interval.
    pub ci95_high: Option<f64>,
    /// Mean number of environment steps per episode.
    pub length_mean: Option<f64>,
}

impl Evaluation {
    /// Mean, spread and confidence interval of the returns.
    pub fn statistics(&self) -> ReturnStatistics {
        ReturnStatistics::of(&self.returns, &self.lengths)
    }
}

impl ReturnStatistics {
    /// The statistics of episodes with these returns and lengths.
    ///
    /// The interval is mean ± t(0.975, n - 1) · std / √n. It takes the episodes as independent draws and, being
    /// Student's, holds for the small n of evaluations, as far as the returns are roughly normal.
    pub fn of(returns: &[f64], lengths: &[u64]) -> Self {
        let count = returns.len();
        let mean = (count > 0).then(|| Self::mean_of(returns));
        let std = (count > 1).then(|| returns.iter().std_dev());
        let half_width = std.and_then(|std| half_width(count, std, 0.025));
        let lengths: Vec<f64> = lengths.iter().map(|&length| length as f64).collect();
        Self {
            episodes: count as u64,
            return_mean: mean,
            return_std: std,
            return_min: returns.iter().copied().reduce(f64::min),
            return_max: returns.iter().copied().reduce(f64::max),
            ci95_low: mean.zip(half_width).map(|(mean, half)| mean - half),
            ci95_high: mean.zip(half_width).map(|(mean, half)| mean + half),
            length_mean: (!lengths.is_empty()).then(|| Self::mean_of(&lengths)),
        }
    }

    /// The statistics of episodes of which only the mean and the lower end of its 95 % interval were kept.
    pub fn of_interval(episodes: u64, mean: f64, ci95_low: Option<f64>) -> Self {
        // The half width is proportional to the deviation.
        let half_width_of_one = (episodes > 1).then(|| half_width(episodes as usize, 1.0, 0.025)).flatten();
        let std = ci95_low.zip(half_width_of_one).map(|(low, of_one)| (mean - low) / of_one);
        let ci95_high = ci95_low.map(|low| 2.0 * mean - low);
        Self { episodes, return_mean: Some(mean), return_std: std, ci95_low, ci95_high, ..Self::default() }
    }

    /// What the mean return of other episodes is at least, with a chance of `error` that it is less. With an `error` of
    /// 0.025 this is the lower end of the 95 % interval. `None` below two episodes.
    pub fn lower_bound(&self, error: f64) -> Option<f64> {
        Some(self.return_mean? - half_width(self.episodes as usize, self.return_std?, error)?)
    }

    fn mean_of(values: &[f64]) -> f64 {
        values.iter().mean()
    }
}

/// Half the width of a Student's t interval that leaves out a chance of `error` on either side.
fn half_width(count: usize, std: f64, error: f64) -> Option<f64> {
    // Beyond so many, Student's and the normal distribution agree to four digits, and with some millions statrs comes to no end.
    let freedom = (count - 1).min(100_000) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - error);
    Some(t * std / (count as f64).sqrt())
}

/// Weights and the figures of their evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EvaluatedWeights {
    /// Version of the parameters.
    pub version: u64,
    /// Environment steps that the parameters had seen.
    pub env_steps: u64,
    /// Why the episodes were played.
    pub kind: EvaluationKind,
    /// Figures of the episodes.
    #[serde(flatten)]
    pub statistics: ReturnStatistics,
}

impl From<&Evaluation> for EvaluatedWeights {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { version, env_steps, kind, .. } = *evaluation;
        Self { version, env_steps, kind, statistics: evaluation.statistics() }
    }
}

impl EvaluatedWeights {
    /// The version and the environment steps, which tell the weights from others of their run: versions come again where a run goes on
    /// from an older state.
    pub fn version_and_steps(self) -> (u64, u64) {
        (self.version, self.env_steps)
    }

    /// For instance `486.1 over 100 fresh episodes`.
    pub(super) fn score(&self) -> Option<String> {
        let fresh = if self.kind == EvaluationKind::Confirmation { "fresh " } else { "" };
        Some(format!("{} over {} {fresh}episodes", score(self.statistics.return_mean?), self.statistics.episodes))
    }

    /// Whether the confidence interval of these weights lies below that of the `best`.
    pub(super) fn is_clearly_worse_than(&self, best: &Self) -> bool {
        self.statistics.ci95_high.zip(best.statistics.ci95_low).is_some_and(|(high, low)| high < low)
    }

    /// The score with its confidence interval, and which weights it is about.
    pub(super) fn describe(&self) -> Option<String> {
        let interval = match (self.statistics.ci95_low, self.statistics.ci95_high) {
            (Some(low), Some(high)) => format!(" (95 % interval {} to {})", score(low), score(high)),
            _ => String::new(),
        };
        Some(format!("{}{interval}, version {}, {} steps", self.score()?, self.version, short(self.env_steps as f64)))
    }
}

/// How many evaluations a run had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationCounts {
    /// Evaluations of the newest weights, again and again.
    #[serde(rename = "evaluations")]
    pub routine: u64,
    /// Evaluations of weights that a routine evaluation had proposed.
    pub confirmations: u64,
}

impl EvaluationCounts {
    pub(super) fn count(&mut self, kind: EvaluationKind) {
        match kind {
            EvaluationKind::Routine => self.routine += 1,
            EvaluationKind::Confirmation => self.confirmations += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(returns: &[f64]) -> ReturnStatistics {
        Evaluation { returns: returns.to_vec(), lengths: vec![10; returns.len()], ..Evaluation::default() }.statistics()
    }

    #[test]
    fn the_interval_is_students_t_of_a_textbook_sample() {
        // 1..=5: mean 3, s = sqrt(2.5), t(0.975, 4) = 2.776445, half width = 2.776445 * 1.581139 / 2.236068 = 1.963243.
        let statistics = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(statistics.return_mean, Some(3.0));
        assert!((statistics.return_std.unwrap() - 2.5_f64.sqrt()).abs() < 1e-12);
        assert!((statistics.ci95_low.unwrap() - (3.0 - 1.963243)).abs() < 1e-6, "{statistics:?}");
        assert!((statistics.ci95_high.unwrap() - (3.0 + 1.963243)).abs() < 1e-6, "{statistics:?}");
        assert_eq!((statistics.return_min, statistics.return_max), (Some(1.0), Some(5.0)));
        assert_eq!(statistics.length_mean, Some(10.0));
    }

    #[test]
    fn the_mean_and_the_lower_end_tell_what_all_returns_prove() {
        let whole = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let kept = ReturnStatistics::of_interval(5, 3.0, whole.ci95_low);
        for error in [0.025, 0.001] {
            assert!((kept.lower_bound(error).unwrap() - whole.lower_bound(error).unwrap()).abs() < 1e-9, "{kept:?}");
        }
        assert_eq!(ReturnStatistics::of_interval(1, 7.0, None).lower_bound(0.025), None);
    }

    #[test]
    fn the_interval_of_any_number_of_episodes_is_found() {
        let kept = ReturnStatistics::of_interval(100_000_000, 5.0, Some(4.0));
        assert!((kept.lower_bound(0.025).unwrap() - 4.0).abs() < 1e-6, "{kept:?}");
        // That of the normal distribution.
        let narrow = half_width(1_000_000_000, 1.0, 0.025).unwrap();
        assert!((narrow * 1e9_f64.sqrt() - 1.959_964).abs() < 1e-4, "{narrow}");
    }

    #[test]
    fn one_episode_has_a_mean_but_no_spread() {
        let statistics = of(&[7.0]);
        assert_eq!((statistics.return_mean, statistics.return_std, statistics.ci95_low), (Some(7.0), None, None));
    }

    #[test]
    fn the_lower_bound_is_the_end_of_the_interval_and_falls_with_the_error_granted() {
        let sample = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(sample.lower_bound(0.025), sample.ci95_low);
        // t(0.999, 4) = 7.173182, times sqrt(2.5 / 5).
        assert!((sample.lower_bound(0.001).unwrap() - (3.0 - 7.173182 * 0.5_f64.sqrt())).abs() < 1e-5);
        assert_eq!(of(&[500.0; 2]).lower_bound(1e-9), Some(500.0));
        assert_eq!(of(&[500.0]).lower_bound(0.025), None, "one episode has no interval");
    }

    #[test]
    fn no_episode_says_nothing() {
        let statistics = of(&[]);
        assert_eq!((statistics.episodes, statistics.return_mean, statistics.length_mean), (0, None, None));
    }

    #[test]
    fn equal_returns_have_an_interval_of_no_width() {
        let statistics = of(&[500.0; 20]);
        assert_eq!((statistics.return_std, statistics.ci95_low, statistics.ci95_high), (Some(0.0), Some(500.0), Some(500.0)));
    }
}
