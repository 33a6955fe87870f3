//! Learning curves of several seeds, and their mean with its interval.

use std::path::Path;

use serde::Deserialize;

use crate::telemetry::{EvaluationKind, ReturnStatistics, jsonl};

/// The fewest seeds whose mean gets an interval. The interval of two would reach over six times their distance to
/// either side.
pub(super) const FEWEST_SEEDS: usize = 3;

/// Points of the mean curve.
const POINTS: usize = 200;

/// One evaluation of one seed.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Point {
    /// Environment steps that the weights had seen.
    pub(super) env_steps: f64,
    /// Mean return.
    pub(super) return_mean: f64,
    /// Why the episodes were played.
    pub(super) kind: EvaluationKind,
}

/// The mean of all seeds at some number of environment steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanPoint {
    /// Environment steps.
    pub(super) env_steps: f64,
    /// Mean over the seeds.
    pub(super) mean: f64,
    /// Ends of the 95 % confidence interval of the mean; absent with fewer seeds than [`FEWEST_SEEDS`].
    pub(super) interval: Option<(f64, f64)>,
}

/// The evaluations that a run wrote, in the order of their steps.
pub(super) fn read(path: &Path) -> Vec<Point> {
    let mut points: Vec<Point> = jsonl::read(path).collect();
    points.sort_by(|left, right| left.env_steps.total_cmp(&right.env_steps));
    points
}

/// The routine evaluations among `points`, all of the same number of episodes. Curves are made of these.
pub(super) fn routine(points: &[Point]) -> Vec<Point> {
    points.iter().filter(|point| point.kind == EvaluationKind::Routine).copied().collect()
}

/// The mean of `values` and, from [`FEWEST_SEEDS`] of them on, its 95 % confidence interval (Student's t).
pub(super) fn mean_of(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    let statistics = ReturnStatistics::of(values, &[]);
    let interval = statistics.ci95_low.zip(statistics.ci95_high).filter(|_| values.len() >= FEWEST_SEEDS);
    Some((statistics.return_mean?, interval))
}

/// The mean of `curves`, interpolated, over the steps that all of them cover: beyond those, it would be a mean of fewer
/// seeds.
pub(super) fn mean(curves: &[Vec<Point>]) -> Vec<MeanPoint> {
    let ends = |curve: &Vec<Point>| Some((curve.first()?.env_steps, curve.last()?.env_steps));
    let covered: Option<Vec<(f64, f64)>> = curves.iter().map(ends).collect();
    let Some(covered) = covered.filter(|covered| !covered.is_empty()) else { return Vec::new() };
    let first = covered.iter().map(|(first, _)| *first).fold(f64::NEG_INFINITY, f64::max);
    let last = covered.iter().map(|(_, last)| *last).fold(f64::INFINITY, f64::min);
    if first > last {
        return Vec::new();
    }
    let step = (last - first) / (POINTS - 1) as f64;
    let at = |env_steps: f64| {
        let values: Vec<f64> = curves.iter().map(|curve| interpolated(curve, env_steps)).collect();
        mean_of(&values).map(|(mean, interval)| MeanPoint { env_steps, mean, interval })
    };
    (0..POINTS).filter_map(|index| at((first + step * index as f64).min(last))).collect()
}

/// The value of `curve`, which covers `env_steps`, on the straight line between its neighbours.
fn interpolated(curve: &[Point], env_steps: f64) -> f64 {
    let after = curve.partition_point(|point| point.env_steps < env_steps).min(curve.len() - 1);
    let (right, left) = (curve[after], curve[after.saturating_sub(1)]);
    let width = right.env_steps - left.env_steps;
    if width <= 0.0 {
        return right.return_mean;
    }
    left.return_mean + (env_steps - left.env_steps) / width * (right.return_mean - left.return_mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<Point> {
        points.iter().map(|&(env_steps, return_mean)| Point { env_steps, return_mean, kind: EvaluationKind::Routine }).collect()
    }

    #[test]
    fn the_mean_covers_the_steps_that_all_seeds_have_and_interpolates_between_them() {
        let mean = mean(&[curve(&[(0.0, 0.0), (100.0, 90.0)]), curve(&[(50.0, 0.0), (200.0, 0.0)]), curve(&[(0.0, 45.0), (100.0, 45.0)])]);
        assert_eq!((mean[0].env_steps, mean[0].mean), (50.0, 30.0));
        let last = mean.last().unwrap();
        assert_eq!((last.env_steps, last.mean), (100.0, 45.0));
        // Of 90, 0 and 45 the standard deviation is 45, and the half width t(0.975, 2) * 45 / sqrt(3), with t =
        // 4.302653.
        let (low, high) = last.interval.unwrap();
        assert!((high - low - 2.0 * 4.302_653 * 45.0 / 3f64.sqrt()).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn what_confirmed_weights_is_no_part_of_a_curve() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluations.jsonl");
        let line = |kind: &str, env_steps| format!("{{\"kind\": \"{kind}\", \"env_steps\": {env_steps}, \"return_mean\": 1.0}}\n");
        std::fs::write(&path, [line("routine", 10), line("confirmation", 10), line("routine", 20)].concat()).unwrap();
        let points = read(&path);
        assert_eq!(points.len(), 3);
        assert_eq!(routine(&points), [points[0], points[2]]);
    }

    #[test]
    fn seeds_without_common_steps_have_no_mean_and_fewer_than_three_no_interval() {
        assert!(mean(&[curve(&[(0.0, 1.0), (1.0, 1.0)]), curve(&[(2.0, 1.0)])]).is_empty());
        assert!(mean(&[curve(&[(0.0, 1.0)]), Vec::new()]).is_empty() && mean(&[]).is_empty());
        let one = curve(&[(0.0, 1.0), (1.0, 3.0)]);
        assert_eq!(mean(std::slice::from_ref(&one))[0].interval, None);
        assert_eq!(mean(&[one.clone(), one.clone()])[0].interval, None);
        assert!(mean(&[one.clone(), one.clone(), one])[0].interval.is_some());
    }
}
