//! How much of the time probes may take.

use super::window::LONGEST_WINDOW_OF_BATCHES_S;

/// Share of the time since the first search that probes may take.
const SHARE: f64 = 0.1;

/// Counts the time that probes took. The first search may take any time, since nothing is known before it; from then
/// on, time for probes is saved up. Time in which the whole run stood still is neither saved nor spent.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    now_s: Option<f64>,
    /// Seconds since the first search, once that has ended.
    since_first_search_s: Option<f64>,
    /// Seconds that probes took of these.
    probed_s: f64,
    /// Seconds that the newest window took.
    window_s: f64,
}

impl Budget {
    /// Counts the window that ended at `wall_s`, which was part of a probe or not.
    pub(super) fn pass(&mut self, wall_s: f64, is_probing: bool) {
        // No window is longer unless somebody stopped the run in it.
        let passed_s = self.now_s.map_or(0.0, |before_s| wall_s - before_s).clamp(0.0, LONGEST_WINDOW_OF_BATCHES_S);
        if let Some(since_s) = &mut self.since_first_search_s {
            *since_s += passed_s;
            self.probed_s += if is_probing { passed_s } else { 0.0 };
        }
        self.now_s = Some(wall_s);
        self.window_s = passed_s;
    }

    /// Takes note that a search has ended. Only the first end counts.
    pub(super) fn end_first_search(&mut self) {
        self.since_first_search_s.get_or_insert(0.0);
    }

    /// Whether a probe of this many windows, each as long as the newest, keeps within the share.
    pub(super) fn allows(&self, windows: f64) -> bool {
        self.since_first_search_s.is_none_or(|since_s| self.probed_s + windows * self.window_s <= SHARE * since_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_free_until_the_first_search_has_ended_and_are_saved_up_for_afterwards() {
        let mut budget = Budget::default();
        (0..50).for_each(|second| budget.pass(f64::from(second), true));
        assert!(budget.allows(1_000.0));
        budget.end_first_search();
        assert!(!budget.allows(1.0));
        (50..150).for_each(|second| budget.pass(f64::from(second), false));
        assert!(budget.allows(10.0) && !budget.allows(11.0));
        (150..155).for_each(|second| budget.pass(f64::from(second), true));
        assert!(budget.allows(5.0) && !budget.allows(6.0));
        // A run that makes few updates has long windows.
        budget.pass(164.0, false);
        assert!(!budget.allows(1.0));
    }

    #[test]
    fn time_in_which_the_run_stood_still_is_neither_spent_on_probes_nor_saved_for_them() {
        let stopped = |is_probing| {
            let mut budget = Budget::default();
            budget.pass(0.0, false);
            budget.end_first_search();
            budget.pass(3_600.0, is_probing);
            (1..=600).for_each(|second| budget.pass(3_600.0 + f64::from(second), false));
            budget
        };
        assert!(stopped(true).allows(5.0), "of eleven minutes, one was spent");
        assert!(!stopped(false).allows(67.0), "a tenth of the hour is not saved");
    }
}
