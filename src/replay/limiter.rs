//! The rate limiter (Reverb: min size, samples per insert with an error band).
//!
//! Two words of the control region, transitions inserted and sampled, tell how far the ratio has drifted. The side that
//! is ahead waits. Either side alone can be free-running by leaving the ratio out.

use std::time::Duration;

use crate::segment::control::{Control, RunState};
use crate::sync::Ordering;

/// Longest sleep between two looks, against lost wake-ups.
const PATIENCE: Duration = Duration::from_millis(2);

/// When inserting and sampling may go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimiter {
    /// Transitions stored before the first sample.
    pub min_size: u64,
    /// Samples per insert to hold; `None` lets both sides run free.
    pub samples_per_insert: Option<f64>,
    /// How far the sample count may be from `samples_per_insert` times the inserts after the minimum, in samples.
    pub error_band: f64,
}

impl RateLimiter {
    /// Whether `count` more transitions may be inserted.
    pub fn may_insert(&self, inserted: u64, sampled: u64, count: u64) -> bool {
        let Some(ratio) = self.samples_per_insert else { return true };
        let after = inserted + count;
        after <= self.min_size || self.surplus(ratio, after, sampled) <= self.error_band
    }

    /// Whether `count` more transitions may be sampled.
    pub fn may_sample(&self, inserted: u64, sampled: u64, count: u64) -> bool {
        if inserted < self.min_size.max(1) {
            return false;
        }
        self.samples_per_insert.is_none_or(|ratio| self.surplus(ratio, inserted, sampled + count) >= -self.error_band)
    }

    /// Samples that the inserts call for beyond those drawn.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    fn surplus(&self, ratio: f64, inserted: u64, sampled: u64) -> f64 {
        (inserted as f64 - self.min_size as f64) * ratio - sampled as f64
    }

    /// Wait until `count` transitions may be inserted. `false` when the run ends first. `idle` is called before
    /// every sleep and may end the waiting too, by returning `false`.
    pub fn wait_to_insert(&self, control: Control<'_>, count: u64, idle: impl FnMut() -> bool) -> bool {
        wait(control, || self.may_insert(inserted(control), sampled(control), count), idle)
    }

    /// Wait until `count` transitions may be sampled. `false` when the run ends first, or `idle` says so.
    pub fn wait_to_sample(&self, control: Control<'_>, count: u64, idle: impl FnMut() -> bool) -> bool {
        wait(control, || self.may_sample(inserted(control), sampled(control), count), idle)
    }
}

fn inserted(control: Control<'_>) -> u64 {
    control.inserted().load(Ordering::Relaxed)
}

fn sampled(control: Control<'_>) -> u64 {
    control.sampled().load(Ordering::Relaxed)
}

fn wait(control: Control<'_>, ready: impl Fn() -> bool, mut idle: impl FnMut() -> bool) -> bool {
    let ended = || matches!(control.run_state(), RunState::Stopping | RunState::Poisoned);
    while !ready() {
        if ended() || !idle() {
            return false;
        }
        control.wait_for_progress(PATIENCE, || ready() || ended());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITER: RateLimiter = RateLimiter { min_size: 100, samples_per_insert: Some(8.0), error_band: 640.0 };

    #[test]
    fn nothing_is_sampled_before_the_minimum_and_inserts_up_to_it_are_free() {
        assert!(!LIMITER.may_sample(99, 0, 1));
        assert!(LIMITER.may_sample(100, 0, 64));
        assert!(LIMITER.may_insert(0, 0, 100));
        assert!(!LIMITER.may_insert(0, 0, 1_000));
    }

    #[test]
    fn the_ratio_stays_within_its_band_whoever_is_faster() {
        for favour_actor in [true, false] {
            let (mut inserted, mut sampled) = (0u64, 0u64);
            for _ in 0..10_000 {
                let mut insert = || {
                    let may = LIMITER.may_insert(inserted, sampled, 16);
                    inserted += if may { 16 } else { 0 };
                    may
                };
                if favour_actor {
                    while insert() {}
                } else {
                    insert();
                }
                let mut sample = || {
                    let may = LIMITER.may_sample(inserted, sampled, 64);
                    sampled += if may { 64 } else { 0 };
                    may
                };
                if favour_actor {
                    sample();
                } else {
                    while sample() {}
                }
            }
            let wanted = (inserted - LIMITER.min_size) as f64 * 8.0;
            assert!((wanted - sampled as f64).abs() <= LIMITER.error_band, "{inserted} inserted, {sampled} sampled");
            assert!(inserted > 10_000, "the two sides blocked each other at {inserted} inserts");
        }
    }

    #[test]
    fn without_a_ratio_both_sides_run_free() {
        let free = RateLimiter { samples_per_insert: None, ..LIMITER };
        assert!(free.may_insert(u64::MAX / 2, 0, 1) && free.may_sample(100, u64::MAX / 2, 1));
    }
}
