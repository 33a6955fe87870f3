//! Which windows count: those in which the wanted setting was in force and has settled.

use super::setting::Setting;

/// Windows that are ignored after each change.
pub(super) const SETTLING_WINDOWS: usize = 2;
/// Windows after which a setting that does not come into force, or with which nothing is learned, is given up.
const PATIENCE_WINDOWS: u32 = 30;

/// Waits for a setting to come into force, and then for it to settle: processes start, queues fill, caches are cold.
#[derive(Debug, Clone)]
pub(super) struct Steady {
    wanted: Setting,
    /// Windows that are still left to settle.
    unsettled: usize,
    /// Windows in a row that could not count although settling was no reason.
    idle: u32,
}

/// Whether a window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Counts,
    NotYet,
    /// The setting is given up: no window has counted for this long.
    GivenUp {
        windows: u32,
    },
}

impl Steady {
    pub(super) fn new(wanted: Setting) -> Self {
        Self { wanted, unsettled: SETTLING_WINDOWS, idle: 0 }
    }

    pub(super) fn wanted(&self) -> Setting {
        self.wanted
    }

    pub(super) fn go_to(&mut self, setting: Setting) {
        *self = Self::new(setting);
    }

    pub(super) fn settle_again(&mut self) {
        self.go_to(self.wanted);
    }

    /// Decides whether a window counts that had the setting `in_force`, and in which something was learned or not.
    pub(super) fn admit(&mut self, in_force: Setting, is_learning: bool) -> Admission {
        if in_force == self.wanted && self.unsettled > 0 {
            self.unsettled -= 1;
            return Admission::NotYet;
        }
        if in_force == self.wanted && is_learning {
            self.idle = 0;
            return Admission::Counts;
        }
        self.idle += 1;
        if self.idle < PATIENCE_WINDOWS {
            return Admission::NotYet;
        }
        let windows = std::mem::take(&mut self.idle);
        Admission::GivenUp { windows }
    }
}
