//! The rate limiter (Reverb: min size, samples per insert with an error band).
//!
//! Two counts in the control region, transitions inserted and transitions counted as sampled, tell how far the ratio
//! has drifted. The side that is ahead waits. Without a ratio both sides run free.

use std::time::Duration;

use super::turn::Turn;
use crate::segment::Segment;
use crate::segment::control::Control;
use crate::segment::processes::ProcessSlot;
use crate::sync::Ordering;

/// Longest sleep between two looks, against lost wake-ups.
pub(super) const PAUSE: Duration = Duration::from_millis(2);

/// When inserting and sampling may go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimiter {
    /// Transitions stored before the first sample.
    pub min_size: u64,
    /// Samples per insert to hold; `None` lets both sides run free.
    pub samples_per_insert: Option<f64>,
    /// Whether each row is taken once. The surplus is then the number of rows in the tree, which nobody has taken,
    /// and not a difference of counts: a death may leave the counts off by a few for ever, and a process that waits
    /// for them could wait for ever.
    pub takes_once: bool,
    /// How far, in samples, the count of samples may be from `samples_per_insert` times the inserts after the minimum
    /// before the side that is ahead waits.
    pub error_band: f64,
}

impl RateLimiter {
    /// Samples that the inserts call for beyond those drawn; `None` if both sides run free. Inserting waits while the
    /// surplus is above the error band: see [`Turn`]. How much a process is about to insert does not count, or the
    /// process with less would always go first; so an insertion can leave the band by as much as it inserts.
    pub fn surplus(&self, inserted: u64, sampled: u64) -> Option<f64> {
        self.samples_per_insert.map(|ratio| self.surplus_at(ratio, inserted, sampled))
    }

    /// Whether `count` more transitions may be sampled: as many as stay within the error band, and any number at once
    /// if inserts call for samples, so that a batch may be larger than the band.
    pub fn may_sample(&self, inserted: u64, sampled: u64, count: u64) -> bool {
        if inserted < self.min_size.max(1) {
            return false;
        }
        let Some(ratio) = self.samples_per_insert else { return true };
        let surplus = |sampled| self.surplus_at(ratio, inserted, sampled);
        surplus(sampled + count) >= -self.error_band || surplus(sampled) >= 0.0
    }

    /// Samples that inserting `count` transitions calls for.
    // Exact: counts stay far below 2^52.
    pub(super) fn samples_for(&self, count: u64) -> f64 {
        self.samples_per_insert.unwrap_or(0.0) * count as f64
    }

    // Exact: counts stay far below 2^52.
    fn surplus_at(&self, ratio: f64, inserted: u64, sampled: u64) -> f64 {
        (inserted as f64 - self.min_size as f64) * ratio - sampled as f64
    }

    /// A turn to insert for the process in slot `process`, which has yet to wait for it.
    pub fn turn<'a>(&self, segment: &'a Segment, process: ProcessSlot<'a>) -> Turn<'a> {
        Turn::new(*self, segment, process)
    }

    /// Wait until `count` transitions may be sampled. `false` if the run ends first, or if `idle`, which is called
    /// before every sleep, returns `false`.
    pub fn wait_to_sample(&self, control: Control<'_>, count: u64, idle: impl FnMut() -> bool) -> bool {
        let ready = || self.may_sample(control.inserted().load(Ordering::Relaxed), control.counted_samples(), count);
        wait(control, ready, idle)
    }
}

/// Wait until there is what a sampler is `ready` for. `false` if the run ends first, or if `idle`, which is called before
/// every sleep, returns `false`.
pub(super) fn wait(control: Control<'_>, ready: impl Fn() -> bool, mut idle: impl FnMut() -> bool) -> bool {
    let ended = || control.run_state().is_over();
    while !ready() {
        if ended() || !idle() {
            return false;
        }
        control.wait_for_progress(PAUSE, || ready() || ended());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITER: RateLimiter = RateLimiter { min_size: 100, samples_per_insert: Some(8.0), takes_once: false, error_band: 640.0 };

    #[test]
    fn nothing_is_sampled_before_the_minimum_and_inserts_up_to_it_call_for_no_samples() {
        assert!(!LIMITER.may_sample(99, 0, 1));
        assert!(LIMITER.may_sample(100, 0, 64));
        assert_eq!([0, 100, 101].map(|inserted| LIMITER.surplus(inserted, 0)), [-800.0, 0.0, 8.0].map(Some));
    }

    #[test]
    fn batches_stay_within_the_band_unless_one_alone_is_larger() {
        assert!(LIMITER.may_sample(100, 576, 64) && !LIMITER.may_sample(100, 577, 64));
        assert!(LIMITER.may_sample(100, 0, 10_000) && !LIMITER.may_sample(100, 1, 10_000));
    }

    #[test]
    fn without_a_ratio_both_sides_run_free() {
        let free = RateLimiter { samples_per_insert: None, ..LIMITER };
        assert!(free.surplus(u64::MAX / 2, 0).is_none() && free.may_sample(100, u64::MAX / 2, 1));
    }
}
