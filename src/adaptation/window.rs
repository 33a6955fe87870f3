//! A window of a run: how much it has to hold, what happened in it, and which part of that lasts.

/// Seconds of the shortest window.
const WINDOW_S: f64 = 1.0;
/// Updates that a window waits for: with fewer, one more or less would count for too much.
const LEAST_UPDATES: u64 = 20;
/// Seconds of the longest window.
const LONGEST_WINDOW_S: f64 = 10.0;
/// Batches that a window waits for if each is learned from in several updates, which come together or not at all.
const LEAST_BATCHES: u64 = 10;
/// Seconds of the longest window if each batch is learned from in several updates.
pub(super) const LONGEST_WINDOW_OF_BATCHES_S: f64 = 60.0;

/// How much a window has to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastWindow {
    updates: u64,
    /// Seconds after which a window is over whatever it holds.
    longest_s: f64,
}

impl LeastWindow {
    /// The least window of a run that makes `updates_of_batch` updates from each batch.
    pub fn of(updates_of_batch: usize) -> Self {
        match updates_of_batch {
            0 | 1 => Self { updates: LEAST_UPDATES, longest_s: LONGEST_WINDOW_S },
            updates => Self { updates: LEAST_UPDATES.max(LEAST_BATCHES * updates as u64), longest_s: LONGEST_WINDOW_OF_BATCHES_S },
        }
    }

    /// Whether a window of `elapsed_s` with this many `updates` is over.
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

/// Finds the part of each window that lasts, if a rate limiter holds the samples per insert.
///
/// Either side may be ahead of the other by the error band of the rate limiter. It can live on such a lead, or make
/// it up, for longer than a probe takes. Work that only changes the lead says nothing about the setting: the side
/// will have to wait for as long as that work takes. So this simulates a rate limiter with a narrow band, and work
/// that it would not let pass does not last.
#[derive(Debug, Clone, Copy, Default)]
pub struct NarrowBand {
    /// Samples by which actors are ahead of learners; negative if learners are ahead of actors.
    ahead: f64,
}

/// The samples that the rate limiter allows for what was inserted in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllowedSamples {
    /// Samples allowed per second.
    pub per_s: f64,
    /// Samples by which a side gets ahead because it works in portions: those that an actor's flush allows, or a batch.
    pub at_once: f64,
}

impl NarrowBand {
    /// The part that lasts of the next window, which took `elapsed_s`.
    pub fn lasting(&mut self, window: Window, elapsed_s: f64, allowed: AllowedSamples) -> Window {
        let band = allowed.at_once;
        let given = allowed.per_s * elapsed_s;
        let taken = window.learned_per_s * elapsed_s;
        let ahead = self.ahead.clamp(-band, band) + given - taken;
        self.ahead = if ahead.is_finite() { ahead.clamp(-band, band) } else { 0.0 };
        let lasts = |done: f64, beyond: f64| if beyond > 0.0 { (1.0 - beyond / done).max(0.0) } else { 1.0 };
        let of_actors = lasts(given, ahead - band);
        let of_learners = lasts(taken, -ahead - band);
        Window {
            env_steps_per_s: window.env_steps_per_s * of_actors,
            learned_per_s: window.learned_per_s * of_learners,
            learners_wait: 1.0 - (1.0 - window.learners_wait) * of_learners,
            actors_wait: 1.0 - (1.0 - window.actors_wait) * of_actors,
            ..window
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

    /// What lasts of the first window, which takes a second, where neither side does anything at once.
    fn lasting(window: Window, inserted_per_s: f64) -> Window {
        NarrowBand::default().lasting(window, 1.0, AllowedSamples { per_s: 128.0 * inserted_per_s, at_once: 0.0 })
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
        for (measured, expected) in cases {
            let found = lasting(measured, measured.env_steps_per_s);
            let rates = |window: Window| [window.env_steps_per_s, window.learned_per_s / 128.0, window.learners_wait, window.actors_wait];
            let is_close = rates(found).into_iter().zip(rates(expected)).all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(is_close, "{measured:?}: {found:?} instead of {expected:?}");
        }
    }

    #[test]
    fn what_others_insert_lasts_too_and_where_nothing_is_done_nobody_is_ahead() {
        assert_eq!(lasting(window([0.0, 300.0], [0.0, 0.0]), 400.0).learned_per_s, 128.0 * 300.0);
        let idle = window([0.0, 0.0], [1.0, 0.0]);
        assert_eq!(lasting(idle, 0.0), idle);
    }

    #[test]
    fn a_learner_that_is_never_without_data_does_not_wait_for_actors_that_wait_for_it_and_then_insert_many_at_once() {
        // Twenty updates a second, for each of which a transition is inserted, but sixty-four together.
        let (mut band, mut before) = (NarrowBand::default(), 0);
        for second in 1..=100_u64 {
            let flushed = second * 20 / 64 * 64;
            let measured = window([(flushed - before) as f64, 20.0], [0.0, 0.75]);
            let allowed = AllowedSamples { per_s: 128.0 * measured.env_steps_per_s, at_once: 128.0 * 64.0 };
            assert_eq!(band.lasting(measured, 1.0, allowed), measured, "second {second}");
            before = flushed;
        }
        // One that makes forty updates a second of as many transitions lives on what was there, of which a flush is
        // all that counts.
        let lasts: f64 = (0..100)
            .map(|_| {
                let allowed = AllowedSamples { per_s: 128.0 * 20.0, at_once: 128.0 * 64.0 };
                band.lasting(window([20.0, 40.0], [0.0, 0.0]), 1.0, allowed).learned_per_s / 128.0
            })
            .sum();
        assert!((2_000.0..=2_128.0).contains(&lasts), "{lasts}");
    }

    #[test]
    fn a_window_is_a_second_and_twenty_updates_and_longer_where_updates_come_in_bursts() {
        let is_held = |updates_of_batch: usize, elapsed_s, updates| LeastWindow::of(updates_of_batch).is_held(elapsed_s, updates);
        assert!(is_held(1, 1.0, 20) && !is_held(1, 0.9, 1_000) && !is_held(1, 9.9, 19) && is_held(1, 10.0, 0));
        assert!(is_held(64, 1.0, 640) && !is_held(64, 59.9, 639) && is_held(64, 60.0, 0));
    }
}
