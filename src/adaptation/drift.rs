//! Whether the machine has changed, so that the objective at home drifts away from what it was when home was new.

use std::collections::VecDeque;

use super::median::median;

/// Windows over which the objective has to differ.
const WINDOWS: usize = 30;
/// Parts of these windows, each of which has to differ on its own, so that a short interruption is no drift.
const PARTS: usize = 3;
/// The least difference that is a drift, as a share of what the objective was.
const DRIFT: f64 = 0.2;

/// Watches the objective at home. A single window scatters by a tenth and more, so medians are compared.
#[derive(Debug, Clone, Default)]
pub(super) struct DriftWatch {
    /// The first windows, until they are enough for a reference.
    first: Vec<f64>,
    reference: Option<f64>,
    latest: VecDeque<f64>,
}

impl DriftWatch {
    /// Adds the `objective` of a window at home, and returns whether it has drifted: all parts of the latest windows
    /// differ from the first windows in the same direction.
    pub(super) fn add(&mut self, objective: f64) -> bool {
        let Some(reference) = self.reference else {
            self.first.push(objective);
            if self.first.len() == WINDOWS {
                self.reference = median(self.first.drain(..)).filter(|&reference| reference > 0.0);
            }
            return false;
        };
        self.latest.push_back(objective);
        if self.latest.len() > WINDOWS {
            self.latest.pop_front();
        }
        if self.latest.len() < WINDOWS {
            return false;
        }
        let parts = self.latest.make_contiguous().chunks(WINDOWS / PARTS);
        let drifts: Vec<f64> = parts.filter_map(|part| median(part.iter().copied())).map(|median| median / reference - 1.0).collect();
        drifts.iter().all(|&drift| drift >= DRIFT) || drifts.iter().all(|&drift| drift <= -DRIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_steady_start() -> DriftWatch {
        let mut watch = DriftWatch::default();
        assert!(!(0..100).any(|_| watch.add(100.0)));
        watch
    }

    #[test]
    fn a_drift_that_lasts_is_seen_in_either_direction_and_a_small_one_is_none() {
        for (objective, is_drift) in [(75.0, true), (125.0, true), (85.0, false), (115.0, false)] {
            let mut watch = after_a_steady_start();
            assert_eq!((0..WINDOWS).any(|_| watch.add(objective)), is_drift, "{objective}");
        }
    }

    #[test]
    fn an_interruption_of_fifteen_windows_is_no_drift() {
        let mut watch = after_a_steady_start();
        assert!(!(0..15).any(|_| watch.add(10.0)) && !(0..100).any(|_| watch.add(100.0)));
    }
}
