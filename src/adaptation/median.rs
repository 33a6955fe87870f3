//! Medians and median absolute deviations, which one window in which the machine stumbled does not move.

use serde::Serialize;

/// The middle of some windows, and how far they lie from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Median.
    pub median: f64,
    /// Median absolute deviation from the median.
    pub deviation: f64,
    /// Number of windows.
    pub windows: usize,
}

impl Summary {
    /// The summary of `values`; `None` without any.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let median = median(values.iter().copied())?;
        let deviation = self::median(values.iter().map(|value| (value - median).abs()))?;
        Some(Self { median, deviation, windows: values.len() })
    }
}

/// The value in the middle, or the mean of the two in the middle; `None` of no values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let lower = if values.len().is_multiple_of(2) { values[middle - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_one_value_or_between_two() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn one_window_that_stands_out_moves_neither_figure() {
        let summary = Summary::of(&[10.0, 11.0, 9.0, 10.0, 1_000.0]).unwrap();
        assert_eq!((summary.median, summary.deviation, summary.windows), (10.0, 1.0, 5));
    }
}
