//! The rules that a tuner keeps to.

use super::error::AdaptationError;
use super::objective::Objective;
use super::ranges::Ranges;
use super::trial::LEG_WINDOWS;

/// The most windows to settle for which a round has time.
const MOST_SETTLING_WINDOWS: u32 = 60;

/// The rules that a tuner keeps to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The range of each knob.
    pub ranges: Ranges,
    /// The figure that is made as large as possible.
    pub objective: Objective,
    /// Windows that are ignored after each change.
    pub settling_windows: u32,
    /// Share of all steps of the run after which nothing is tried any more: late learning should not depend on it.
    pub freeze_after: f64,
}

impl Rules {
    /// The usual rules, with these ranges and this objective.
    pub fn new(ranges: Ranges, objective: Objective) -> Self {
        Self { ranges, objective, settling_windows: 2, freeze_after: 0.2 }
    }

    /// Checks that the rules can be kept. The ranges have a check of their own, [`Ranges::check`].
    pub(super) fn check(&self) -> Result<(), AdaptationError> {
        if !(0.0..=1.0).contains(&self.freeze_after) {
            return Err(AdaptationError::FreezeAfter { share: self.freeze_after });
        }
        if self.settling_windows > MOST_SETTLING_WINDOWS {
            return Err(AdaptationError::Settling { windows: self.settling_windows, limit: MOST_SETTLING_WINDOWS });
        }
        Ok(())
    }

    /// Windows that a round takes at the candidate and at home again, settling included, if nothing delays it.
    pub(super) fn round_windows(&self) -> f64 {
        2.0 * (f64::from(self.settling_windows) + LEG_WINDOWS as f64)
    }
}
