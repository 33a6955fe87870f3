//! What holds a call back: the rate limiter, and a repair by somebody else.

use std::time::{Duration, Instant};

use super::patience::{GivenUp, Patience};
use super::{Standalone, StandaloneError};
use crate::replay::leaderless;
use crate::sync::Ordering;

/// How often a process that waits looks after the others.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before the next attempt at what somebody else who repairs is in the way of.
const PAUSE: Duration = Duration::from_millis(1);

impl Standalone {
    /// Wait for the rate limiter, unless `look`, which is asked now and then, finds why not to. Looks after the others
    /// meanwhile: a dead one may stand first in line.
    pub(super) fn wait(
        &self,
        patience: &mut Patience<'_>,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        mut look: impl FnMut(&Patience<'_>) -> Option<StandaloneError>,
    ) -> Result<(), StandaloneError> {
        let mut next_look = None;
        let look = |patience: &Patience<'_>| {
            let now = Instant::now();
            if now < *next_look.get_or_insert(now + LOOK_INTERVAL) {
                return None;
            }
            next_look = Some(now + LOOK_INTERVAL);
            self.company.repair_after_the_dead(&self.segment, &self.schema);
            look(patience)
        };
        self.wait_patiently(patience, wait, look, || self.rate_limited())
    }

    /// What is said to whom the rate limiter held back for too long.
    pub(super) fn rate_limited(&self) -> StandaloneError {
        StandaloneError::RateLimited { inserted: self.inserted(), sampled: self.sampled(), min_size: self.limiter.min_size }
    }

    /// Wait while somebody repairs. Before an operation, since nobody can be interrupted in it.
    pub(super) fn wait_at_gate(&self, patience: &mut Patience<'_>) -> Result<(), StandaloneError> {
        // A copy of a replay is repaired before anybody waits for whoever repaired the original.
        self.sides();
        let late = || StandaloneError::unrepaired(&self.segment);
        self.wait_patiently(patience, |idle| leaderless::wait_until_open(&self.segment, &self.schema, idle), |_| None, late)
    }

    /// Wait a moment for somebody else who repairs.
    pub(super) fn wait_for_repairer(&self, patience: &mut Patience<'_>) -> Result<(), StandaloneError> {
        self.wait_patiently(
            patience,
            |idle| {
                std::thread::sleep(PAUSE);
                idle()
            },
            |_| None,
            || StandaloneError::unrepaired(&self.segment),
        )
    }

    fn wait_patiently(
        &self,
        patience: &mut Patience<'_>,
        wait: impl FnOnce(&mut dyn FnMut() -> bool) -> bool,
        mut look: impl FnMut(&Patience<'_>) -> Option<StandaloneError>,
        late: impl Fn() -> StandaloneError,
    ) -> Result<(), StandaloneError> {
        let mut reason = None;
        let went_on = wait(&mut || {
            reason = if self.is_closing.load(Ordering::Relaxed) {
                Some(StandaloneError::Closed)
            } else {
                match patience.given_up() {
                    Some(GivenUp::Interrupted) => Some(StandaloneError::Interrupted),
                    Some(GivenUp::Late) => Some(late()),
                    None => self.company.is_lost().or_else(|| look(patience)),
                }
            };
            reason.is_none()
        });
        if went_on {
            return Ok(());
        }
        // Else the state of the run ended it.
        Err(reason.or_else(|| self.company.check_open(&self.segment).err()).unwrap_or(StandaloneError::Stopped))
    }
}
