//! Schedules over the environment steps of a run.

/// From `start` to `end`, linearly over `steps`, then constant.
// Steps stay far below 2^52.
pub fn linear(start: f64, end: f64, step: u64, steps: u64) -> f64 {
    if step >= steps { end } else { start + (end - start) * step as f64 / steps as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_schedule_ends_where_it_should() {
        assert_eq!(linear(1.0, 0.1, 0, 100), 1.0);
        assert!((linear(1.0, 0.1, 50, 100) - 0.55).abs() < 1e-12);
        assert_eq!(linear(1.0, 0.1, 1_000, 100), 0.1);
        assert_eq!(linear(1.0, 0.1, 0, 0), 0.1);
    }
}
