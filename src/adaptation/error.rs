//! What can be wrong with the rules that a tuner is given.

use thiserror::Error;

/// Why no tuner can be made.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AdaptationError {
    /// The ends of a range are the wrong way round.
    #[error("the range of `{key}` is from {low} to {high}, and its low end must be at most its high end; exchange the two")]
    Reversed {
        /// The key that the range is of.
        key: &'static str,
        /// Its low end.
        low: usize,
        /// Its high end.
        high: usize,
    },
    /// A range includes zero.
    #[error("the range of `{key}` begins at 0, and the least that can be fitted to a machine is 1; begin it at 1")]
    FromZero {
        /// The key that the range is of.
        key: &'static str,
    },
    /// The first setting is outside of a range.
    #[error("`{key}` begins at {value}, outside of its range from {low} to {high}; set it within, or widen the range")]
    StartOutside {
        /// The key.
        key: &'static str,
        /// Its value.
        value: usize,
        /// The low end of its range.
        low: usize,
        /// The high end of its range.
        high: usize,
    },
    /// The share of a run in which settings may be tried is no share.
    #[error("settings may be tried until {share} of all steps, which must be from 0 to 1; 0.2 is usual, 0 tries none")]
    FreezeAfter {
        /// The share.
        share: f64,
    },
    /// Windows to settle are more than a probe has time for.
    #[error("{windows} windows to settle after each change are more than the {limit} that a probe has time for; 2 is usual")]
    Settling {
        /// The windows.
        windows: u32,
        /// Most that are accepted.
        limit: u32,
    },
}
