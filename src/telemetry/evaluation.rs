//! One evaluation: the returns of some episodes under frozen parameters, and what they say statistically.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics as _;

/// Why episodes were played, and so what their mean may be used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationKind {
    /// One of the many of a run. The highest mean of many is a lucky one, so it proposes weights and decides nothing.
    #[default]
    Routine,
    /// Fresh episodes with the weights that a routine evaluation proposed. They decide.
    Confirmation,
}

/// Episodes played by the evaluator with one version of the parameters, without exploration.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Undiscounted return of each episode.
    pub returns: Vec<f64>,
    /// Environment steps of each episode, in the order of `returns`.
    pub lengths: Vec<u64>,
}

/// What the returns of an evaluation say; `None` is what too few episodes cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Statistics {
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
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.returns, &self.lengths)
    }

    /// Whether the episodes confirm that the parameters reach `goal`.
    pub fn confirms(&self, goal: f64) -> bool {
        self.kind == EvaluationKind::Confirmation && self.statistics().is_at_least(goal)
    }
}

impl Statistics {
    /// What episodes with these returns and lengths say.
    ///
    /// The interval is mean ± t(0.975, n - 1) · std / √n: it takes the episodes as independent draws, and being Student's it holds for the
    /// small n that evaluations have, as far as the returns are roughly normal.
    pub fn of(returns: &[f64], lengths: &[u64]) -> Self {
        let count = returns.len();
        let mean = (count > 0).then(|| Self::mean_of(returns));
        let std = (count > 1).then(|| returns.iter().std_dev());
        let half_width = std.and_then(|std| {
            let t = StudentsT::new(0.0, 1.0, (count - 1) as f64).ok()?.inverse_cdf(0.975);
            Some(t * std / (count as f64).sqrt())
        });
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

    /// Whether the mean return is at least `value` beyond reasonable doubt: the lower end of its interval is.
    ///
    /// A policy that is exactly as good as `value` has a sample mean above it in every other sample, and reaches it in this sense in one
    /// of forty; a worse one does in fewer.
    pub fn is_at_least(&self, value: f64) -> bool {
        self.ci95_low.is_some_and(|low| low >= value)
    }

    fn mean_of(values: &[f64]) -> f64 {
        values.iter().mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(returns: &[f64]) -> Statistics {
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
    fn one_episode_has_a_mean_but_no_spread() {
        let statistics = of(&[7.0]);
        assert_eq!((statistics.return_mean, statistics.return_std, statistics.ci95_low), (Some(7.0), None, None));
    }

    #[test]
    fn a_value_is_reached_when_the_whole_interval_lies_above_it() {
        let sample = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(sample.is_at_least(1.03) && !sample.is_at_least(1.04), "the lower end is 1.036757");
        assert!(of(&[500.0; 2]).is_at_least(500.0));
        assert!(!of(&[500.0]).is_at_least(0.0), "one episode has no interval");
        assert!(!of(&[f64::NAN, 1.0]).is_at_least(f64::MIN));
    }

    #[test]
    fn only_fresh_episodes_confirm() {
        let routine = Evaluation { returns: vec![500.0; 20], ..Evaluation::default() };
        assert!(!routine.confirms(475.0));
        let confirmation = Evaluation { kind: EvaluationKind::Confirmation, ..routine };
        assert!(confirmation.confirms(475.0) && !confirmation.confirms(501.0));
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
