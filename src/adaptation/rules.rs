//! The rules that a tuner keeps to.

use super::objective::Objective;
use super::ranges::Ranges;

/// The rules that a tuner keeps to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The range of each knob.
    pub ranges: Ranges,
    /// The figure that is made as large as possible.
    pub objective: Objective,
    /// Share of all steps of the run after which nothing is tried any more: late learning should not depend on it.
    pub freeze_after: f64,
}

impl Rules {
    /// The usual rules, with these ranges and this objective.
    pub fn new(ranges: Ranges, objective: Objective) -> Self {
        Self { ranges, objective, freeze_after: 0.2 }
    }
}
