//! What holds a call back: the rate limiter, and a repair by somebody else.

use std::time::{Duration, Instant};

use super::patience::{GivenUp, Patience};
use super::{ReplayError, ReplayHandle};
use crate::replay::{RateLimiter, leaderless};
use crate::sync::Ordering;

/// How often a process that waits repairs after others that have died.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before the next attempt at something that another process's repair is in the way of.
const PAUSE: Duration = Duration::from_millis(1);

impl ReplayHandle {
    /// Wait for the rate limiter, unless `look`, which is called now and then, finds a reason not to. Repairs after
    /// other processes meanwhile: a dead one may stand first in line.
    pub(super) fn wait(
        &self,
        patience: &mut Patience<'_>,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        mut look: impl FnMut(&Patience<'_>) -> Option<ReplayError>,
    ) -> Result<(), ReplayError> {
        let mut next_look = None;
        let look = |patience: &Patience<'_>| {
            let now = Instant::now();
            if now < *next_look.get_or_insert(now + LOOK_INTERVAL) {
                return None;
            }
            next_look = Some(now + LOOK_INTERVAL);
            self.memory.repair_after_the_dead();
            look(patience)
        };
        self.wait_patiently(patience, wait, look, || self.rate_limited())
    }

    /// Wait until the rate limiter lets `count` transitions be drawn. Its ratio holds back no guest, whose samples do not
    /// count. Nobody inserts into a replay that was stopped, so there its ratio holds nobody back: what is there can be
    /// drawn as often as the caller likes.
    pub(super) fn wait_to_sample(&self, count: u64, patience: &mut Patience<'_>) -> Result<(), ReplayError> {
        let without_ratio = RateLimiter { samples_per_insert: None, ..self.limiter };
        let limiter = if self.is_guest() { without_ratio } else { self.limiter };
        let waited = self.wait(patience, |idle| limiter.wait_to_sample(self.control(), count, idle), |_| None);
        match waited {
            Err(ReplayError::Stopped) if without_ratio.may_sample(self.inserted(), 0, count) => Ok(()),
            waited => waited,
        }
    }

    /// The error for a call that the rate limiter has held back for too long.
    pub(super) fn rate_limited(&self) -> ReplayError {
        ReplayError::RateLimited { inserted: self.inserted(), sampled: self.sampled(), min_size: self.limiter.min_size }
    }

    /// Wait while another process repairs. To be called before an operation, since an operation cannot be interrupted.
    pub(super) fn wait_at_gate(&self, patience: &mut Patience<'_>) -> Result<(), ReplayError> {
        // A forked copy is repaired first: the process that repaired the original does not repair the copy.
        self.sides();
        let late = || ReplayError::unrepaired(&self.memory.segment);
        self.wait_patiently(patience, |idle| leaderless::wait_until_open(&self.memory.segment, self.schema(), idle), |_| None, late)
    }

    /// Wait a moment for another process that repairs.
    pub(super) fn wait_for_repairer(&self, patience: &mut Patience<'_>) -> Result<(), ReplayError> {
        self.wait_patiently(
            patience,
            |idle| {
                std::thread::sleep(PAUSE);
                idle()
            },
            |_| None,
            || ReplayError::unrepaired(&self.memory.segment),
        )
    }

    fn wait_patiently(
        &self,
        patience: &mut Patience<'_>,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        mut look: impl FnMut(&Patience<'_>) -> Option<ReplayError>,
        late: impl Fn() -> ReplayError,
    ) -> Result<(), ReplayError> {
        let mut reason = None;
        let went_on = wait(&mut || {
            reason = if self.is_closing.load(Ordering::Relaxed) {
                Some(ReplayError::Closed)
            } else {
                match patience.given_up() {
                    Some(GivenUp::Interrupted) => Some(ReplayError::Interrupted),
                    Some(GivenUp::Late) => Some(late()),
                    None => self.memory.sharing.is_lost().or_else(|| look(patience)),
                }
            };
            reason.is_none()
        });
        if went_on {
            return Ok(());
        }
        // Without a reason, the state of the run has ended the wait.
        Err(reason.or_else(|| self.memory.check_open().err()).unwrap_or(ReplayError::Stopped))
    }
}
