//! What else changes when the batch does: the step size of the optimizer, and how often transitions are drawn.

use serde::Serialize;

/// How the learning rate follows the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSizeRule {
    /// It stays as configured.
    None,
    /// It grows with the root of the batch, as the gradient's noise falls: the usual rule for Adam.
    Sqrt,
    /// It grows with the batch, as if the updates of several small batches were made at once: the usual rule for plain gradient descent.
    Linear,
}

impl StepSizeRule {
    /// What to multiply the configured learning rate by when `batch_size` is in force instead of the `configured` one.
    pub fn learning_rate_factor(self, configured: usize, batch_size: usize) -> f64 {
        let ratio = batch_size as f64 / configured.max(1) as f64;
        match self {
            Self::None => 1.0,
            Self::Sqrt => ratio.sqrt(),
            Self::Linear => ratio,
        }
    }
}

/// What stays when the batch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Each transition is drawn as often as before, so a larger batch makes fewer updates.
    SamplesPerInsert,
    /// There are as many updates per environment step as before, so a larger batch draws each transition more often.
    UpdatesPerStep,
}

impl Hold {
    /// The samples per insert with `batch_size`, when they are `configured_ratio` with the `configured` one.
    pub fn samples_per_insert(self, configured_ratio: f64, configured: usize, batch_size: usize) -> f64 {
        match self {
            Self::SamplesPerInsert => configured_ratio,
            Self::UpdatesPerStep => configured_ratio * batch_size as f64 / configured.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_follows_the_batch_by_its_rule() {
        let factors = |batch_size| {
            [StepSizeRule::None, StepSizeRule::Sqrt, StepSizeRule::Linear].map(|rule| rule.learning_rate_factor(64, batch_size))
        };
        assert_eq!(factors(64), [1.0, 1.0, 1.0]);
        assert_eq!(factors(256), [1.0, 2.0, 4.0]);
        assert_eq!(factors(16), [1.0, 0.5, 0.25]);
    }

    #[test]
    fn what_is_held_stays() {
        let updates_per_step = |ratio: f64, batch_size: usize| ratio / batch_size as f64;
        assert_eq!(Hold::SamplesPerInsert.samples_per_insert(8.0, 64, 256), 8.0);
        let ratio = Hold::UpdatesPerStep.samples_per_insert(8.0, 64, 256);
        assert_eq!(updates_per_step(ratio, 256), updates_per_step(8.0, 64));
    }
}
