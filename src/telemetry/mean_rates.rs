//! Rates over a window instead of between two snapshots, which come five times a second: people could not read those
//! rates, and a file would sample noise.

use std::collections::VecDeque;

use super::Snapshot;

/// Remembers snapshots for a while and replaces a snapshot's rates by means over that time.
#[derive(Debug)]
pub(super) struct MeanRates {
    window_s: f64,
    moments: VecDeque<Snapshot>,
}

impl MeanRates {
    /// Means over `window_s` seconds; with 0, over the time since the previous call.
    pub(super) fn over(window_s: f64) -> Self {
        Self { window_s, moments: VecDeque::new() }
    }

    /// The snapshot, with all rates as means over the window; the first call leaves them as they are.
    pub(super) fn steady(&mut self, snapshot: &Snapshot) -> Snapshot {
        // The oldest moment kept is the newest one that lies outside the window, so that the mean spans all of it.
        while self.moments.get(1).is_some_and(|moment| snapshot.wall_s - moment.wall_s >= self.window_s) {
            self.moments.pop_front();
        }
        self.moments.push_back(snapshot.clone());
        snapshot.clone().with_rates_since(&self.moments[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{ByKind, Effort};

    /// A moment of a run whose learners have used half a core all the time.
    fn at(wall_s: f64, env_steps: u64) -> Snapshot {
        let processor_s = ByKind { learners: wall_s / 2.0, ..ByKind::default() };
        let effort = Effort { processor_s, ..Effort::default() };
        Snapshot { wall_s, env_steps, updates: env_steps / 4, env_steps_per_s: -1.0, effort, ..Snapshot::default() }
    }

    #[test]
    fn a_rate_is_the_mean_over_the_window() {
        let mut rates = MeanRates::over(2.0);
        assert_eq!(rates.steady(&at(0.0, 0)).env_steps_per_s, -1.0);
        assert_eq!(rates.steady(&at(1.0, 100)).env_steps_per_s, 100.0);
        assert_eq!(rates.steady(&at(2.0, 400)).env_steps_per_s, 200.0);
        let late = rates.steady(&at(3.0, 1100));
        assert_eq!((late.env_steps_per_s, late.updates_per_s), (500.0, 125.0));
        assert_eq!((late.cores_used, late.cores_by_kind), (0.5, ByKind { learners: 0.5, ..ByKind::default() }));
    }

    #[test]
    fn without_a_window_a_rate_is_the_one_since_the_previous_call() {
        let mut rates = MeanRates::over(0.0);
        rates.steady(&at(0.0, 0));
        rates.steady(&at(1.0, 100));
        assert_eq!(rates.steady(&at(2.0, 400)).env_steps_per_s, 300.0);
    }
}
