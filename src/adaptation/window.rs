//! A window of a run: how much it has to hold, what happened in it, and what of that lasts.

/// Length of a window: so many seconds, and longer where fewer updates are made in it,
/// since one more or less would then count for too much.
const WINDOW_S: f64 = 1.0;
const LEAST_UPDATES: u64 = 20;
const LONGEST_WINDOW_S: f64 = 10.0;
/// The same where each batch is learned from in several updates, which come together or not at all.
const LEAST_BATCHES: u64 = 10;
const LONGEST_WINDOW_OF_BATCHES_S: f64 = 60.0;

/// How much a window has to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastWindow {
    updates: u64,
    /// A window is over after so long whatever it holds.
    longest_s: f64,
}

impl LeastWindow {
    /// Of a run that makes so many updates from each batch.
    pub fn of(updates_of_batch: usize) -> Self {
        match updates_of_batch {
            0 | 1 => Self { updates: LEAST_UPDATES, longest_s: LONGEST_WINDOW_S },
            updates => Self { updates: LEAST_UPDATES.max(LEAST_BATCHES * updates as u64), longest_s: LONGEST_WINDOW_OF_BATCHES_S },
        }
    }

    /// Whether a window of `elapsed_s` with so many updates is over.
    pub fn is_held(&self, elapsed_s: f64, updates: u64) -> bool {
        elapsed_s >= WINDOW_S && (updates >= self.updates || elapsed_s >= self.longest_s)
    }
}

/// The rates of one window, and who waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Environment steps of all actors per second.
    pub env_steps_per_s: f64,
    /// Update frame rate: transitions that learners trained on per second.
    pub learned_per_s: f64,
    /// Share of the usable cores on which the run's processes computed.
    pub cores_used: f64,
    /// Share of their time that learners waited for data.
    pub learners_wait: f64,
    /// Share of their time that actors waited for the rate limiter.
    pub actors_wait: f64,
}

impl Window {
    /// What lasts of it where a rate limiter holds the samples per insert. Either side may be ahead of the other by the error band of the
    /// rate limiter, and live on that or make it up for longer than a trial takes: what it does beyond the other says nothing of the setting,
    /// and the time for that is what it will wait.
    #[must_use]
    pub fn lasting(self, inserted_per_s: f64, samples_per_insert: f64) -> Self {
        // Steps come evenly and rows with each flush; rows of others come without steps.
        let allowed_per_s = samples_per_insert * inserted_per_s.max(self.env_steps_per_s);
        let lasts = |needed_per_s: f64, done_per_s: f64| (needed_per_s / done_per_s).min(1.0);
        let (of_actors, of_learners) = (lasts(self.learned_per_s, allowed_per_s), lasts(allowed_per_s, self.learned_per_s));
        Self {
            env_steps_per_s: self.env_steps_per_s * of_actors,
            learned_per_s: self.learned_per_s.min(allowed_per_s),
            learners_wait: 1.0 - (1.0 - self.learners_wait) * of_learners,
            actors_wait: 1.0 - (1.0 - self.actors_wait) * of_actors,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window([env_steps_per_s, updates_per_s]: [f64; 2], [learners_wait, actors_wait]: [f64; 2]) -> Window {
        // Each transition is drawn 128 times.
        Window { env_steps_per_s, learned_per_s: 128.0 * updates_per_s, cores_used: 0.5, learners_wait, actors_wait }
    }

    #[test]
    fn what_one_side_does_beyond_the_other_does_not_count_and_is_time_to_wait() {
        // Learners that live on what there is, actors that fill it, some of the time, and both in balance.
        let cases = [
            (window([195.0, 300.0], [0.0, 0.0]), window([195.0, 195.0], [0.35, 0.0])),
            (window([400.0, 300.0], [0.0, 0.0]), window([300.0, 300.0], [0.0, 0.25])),
            (window([400.0, 300.0], [0.0, 0.5]), window([300.0, 300.0], [0.0, 0.625])),
            (window([250.0, 250.0], [0.0, 0.0]), window([250.0, 250.0], [0.0, 0.0])),
        ];
        for (measured, lasting) in cases {
            assert_eq!(measured.lasting(measured.env_steps_per_s, 128.0), lasting);
        }
    }

    #[test]
    fn what_others_insert_lasts_too_and_where_nothing_is_done_nobody_is_ahead() {
        assert_eq!(window([0.0, 300.0], [0.0, 0.0]).lasting(400.0, 128.0).learned_per_s, 128.0 * 300.0);
        let idle = window([0.0, 0.0], [1.0, 0.0]);
        assert_eq!(idle.lasting(0.0, 128.0), idle);
    }

    #[test]
    fn a_window_is_a_second_and_twenty_updates_and_longer_where_updates_come_in_bursts() {
        let is_held = |updates_of_batch: usize, elapsed_s, updates| LeastWindow::of(updates_of_batch).is_held(elapsed_s, updates);
        assert!(is_held(1, 1.0, 20) && !is_held(1, 0.9, 1_000) && !is_held(1, 9.9, 19) && is_held(1, 10.0, 0));
        assert!(is_held(64, 1.0, 640) && !is_held(64, 59.9, 639) && is_held(64, 60.0, 0));
    }
}
