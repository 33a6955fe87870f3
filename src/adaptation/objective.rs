//! What the tuner makes as large as it can.

use serde::Serialize;

use super::batch_change::Hold;
use super::window::Window;

/// What counts as faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Transitions learned from per second. The rate limiter makes the environment steps follow.
    #[serde(rename = "trained_per_second")]
    LearnedPerSecond,
    /// The geometric mean of environment steps per second and update frame rate. Neither may be bought with the other.
    BothRates,
}

impl Objective {
    /// The objective of a run with this `samples_per_insert`, `None` if no rate limiter holds one.
    ///
    /// If the updates per step stay while the batch grows, every doubling trains more transitions, and yet the run
    /// becomes slower: then both rates count.
    pub fn of_run(samples_per_insert: Option<f64>, hold: Hold) -> Self {
        match (samples_per_insert, hold) {
            (Some(_), Hold::SamplesPerInsert) => Self::LearnedPerSecond,
            _ => Self::BothRates,
        }
    }

    /// The value of the objective in a window.
    pub fn value(self, window: &Window) -> f64 {
        match self {
            Self::LearnedPerSecond => window.learned_per_s,
            Self::BothRates => (window.env_steps_per_s * window.learned_per_s).sqrt(),
        }
    }

    /// The rates that a change must not cost.
    pub(super) fn guarded(self) -> &'static [GuardedRate] {
        match self {
            Self::LearnedPerSecond => &[],
            Self::BothRates => &[
                GuardedRate { name: "environment steps per second", of: |window| window.env_steps_per_s },
                GuardedRate { name: "update frame rate", of: |window| window.learned_per_s },
            ],
        }
    }
}

/// A rate that a change must not cost.
pub(super) struct GuardedRate {
    pub(super) name: &'static str,
    pub(super) of: fn(&Window) -> f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limited_run_counts_what_is_trained_and_a_free_one_both_rates() {
        let window = Window { env_steps_per_s: 100.0, learned_per_s: 400.0, cores_used: 0.5, learners_wait: 0.0, actors_wait: 0.0 };
        let value = |ratio, hold| Objective::of_run(ratio, hold).value(&window);
        assert_eq!(value(Some(8.0), Hold::SamplesPerInsert), 400.0);
        assert_eq!(value(None, Hold::SamplesPerInsert), 200.0);
        assert_eq!(value(Some(8.0), Hold::UpdatesPerStep), 200.0);
    }
}
