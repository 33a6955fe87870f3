//! How much of the time probes may take.

/// Share of the time since the first search that probes may take.
const SHARE: f64 = 0.1;

/// Counts the time that probes took. The first search may take any time, since nothing is known before it; from then
/// on, time for probes is saved up.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    now_s: Option<f64>,
    first_search_ended_s: Option<f64>,
    /// Seconds that probes took after the first search.
    probed_s: f64,
    /// Seconds that the newest window took.
    window_s: f64,
}

impl Budget {
    /// Counts the window that ended at `wall_s`, which was part of a probe or not.
    pub(super) fn pass(&mut self, wall_s: f64, is_probing: bool) {
        let passed_s = self.now_s.map_or(0.0, |before_s| wall_s - before_s).max(0.0);
        if is_probing && self.first_search_ended_s.is_some() {
            self.probed_s += passed_s;
        }
        self.now_s = Some(wall_s);
        self.window_s = passed_s;
    }

    /// Takes note that a search has ended. Only the first end counts.
    pub(super) fn end_first_search(&mut self) {
        self.first_search_ended_s = self.first_search_ended_s.or(self.now_s);
    }

    /// Whether a probe of this many windows, each as long as the newest, keeps within the share.
    pub(super) fn allows(&self, windows: f64) -> bool {
        let (Some(ended_s), Some(now_s)) = (self.first_search_ended_s, self.now_s) else { return true };
        self.probed_s + windows * self.window_s <= SHARE * (now_s - ended_s)
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
}
