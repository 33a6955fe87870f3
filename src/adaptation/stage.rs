//! The stages of a search. The next one begins when nothing is left to try in the one before.
//!
//! 1. *Far*: strides whose gain is large enough to be seen at once. One more actor is tried before twice as many,
//!    which may be beyond the cores.
//! 2. *Far pairs*: two far turns at once that were rejected one by one, but may help together.
//! 3. *Near*: near strides.
//! 4. *Near pairs*: two near turns at once.
//!
//! Two turns may help together if each frees one side. When actors and learners are as fast as each other, the rate
//! limiter makes another actor useless without a batch with which learners are faster, and that batch useless without
//! the actor. Two turns may also help together if their gains, each too small to be measured, do not add up to a
//! loss.

use super::ranges::Stride;
use super::setting::Knob;
use super::waiting::Side;

/// What was seen of a setting that was rejected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Its gain as a share of home, which was not enough.
    pub(super) gain: f64,
    /// The side that had less to do with this setting, and waited.
    pub(super) freed: Option<Side>,
}

impl Seen {
    /// Whether two turns that were rejected one by one may help at once.
    pub(super) fn is_promising_with(self, other: Self) -> bool {
        let frees_both_sides = matches!((self.freed, other.freed), (Some(one), Some(other)) if one != other);
        frees_both_sides || self.gain + other.gain >= 0.0
    }
}

/// A stage of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Far,
    FarPairs,
    Near,
    NearPairs,
}

impl Stage {
    pub(super) fn strides(self, knob: Knob) -> &'static [Stride] {
        match (self, knob) {
            (Self::Far | Self::FarPairs, Knob::Actors) => &[Stride::Near, Stride::Far],
            (Self::Far | Self::FarPairs, _) => &[Stride::Far],
            (Self::Near | Self::NearPairs, _) => &[Stride::Near],
        }
    }

    pub(super) fn is_pairs(self) -> bool {
        matches!(self, Self::FarPairs | Self::NearPairs)
    }

    /// The stage in which a new home is explored.
    pub(super) fn at_new_home(self) -> Self {
        match self {
            Self::Far | Self::FarPairs => Self::Far,
            Self::Near | Self::NearPairs => Self::Near,
        }
    }

    pub(super) fn next(self) -> Option<Self> {
        match self {
            Self::Far => Some(Self::FarPairs),
            Self::FarPairs => Some(Self::Near),
            Self::Near => Some(Self::NearPairs),
            Self::NearPairs => None,
        }
    }
}
