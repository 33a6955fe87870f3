//! Windows of a run that fits itself: what they have to hold, and what of them lasts.

use crate::adaptation::{Hold, Setting, Window};
use crate::config::{Config, Rows};
use crate::telemetry::Snapshot;

/// Length of a window: so many seconds, and longer where fewer updates are made in it,
/// since one more or less would then count for too much.
const WINDOW_S: f64 = 1.0;
const LEAST_UPDATES: u64 = 20;
const LONGEST_WINDOW_S: f64 = 10.0;
/// The same where each batch is learned from in several updates, which come together or not at all.
const LEAST_BATCHES: u64 = 10;
const LONGEST_WINDOW_OF_BATCHES_S: f64 = 60.0;

/// How much a window has to hold.
struct Least {
    updates: u64,
    /// A window is over after so long whatever it holds.
    longest_s: f64,
}

impl Least {
    fn of(config: &Config) -> Self {
        let parts = if config.learns_in_parts() { config.algorithm.minibatches } else { 1 };
        match config.uses_of_fragments().map_or(1, |(_, uses)| uses) * parts {
            1 => Self { updates: LEAST_UPDATES, longest_s: LONGEST_WINDOW_S },
            updates => Self { updates: LEAST_UPDATES.max(LEAST_BATCHES * updates as u64), longest_s: LONGEST_WINDOW_OF_BATCHES_S },
        }
    }
}

/// How often a rate limiter has each transition drawn.
struct Ratio {
    samples_per_insert: f64,
    hold: Hold,
    configured_batch: usize,
}

impl Ratio {
    /// That of a run of transitions; `None` where nothing holds its sides together, and of fragments, each of which is taken once.
    fn of(config: &Config) -> Option<Self> {
        let samples_per_insert = config.replay.samples_per_insert.filter(|_| config.rows() == Rows::Transitions)?;
        Some(Self { samples_per_insert, hold: config.adaptation.hold, configured_batch: config.learner.batch_size })
    }

    /// With `batch_size` in force.
    fn with(&self, batch_size: usize) -> f64 {
        self.hold.samples_per_insert(self.samples_per_insert, self.configured_batch, batch_size)
    }
}

/// One window after the other.
pub(super) struct Windows {
    least: Least,
    ratio: Option<Ratio>,
    /// Where the present one began.
    last: Option<Snapshot>,
}

impl Windows {
    /// Of a run of `config`.
    pub(super) fn of(config: &Config) -> Self {
        Self { least: Least::of(config), ratio: Ratio::of(config), last: None }
    }

    /// Whether the present one is over `now`.
    pub(super) fn is_over(&mut self, now: &Snapshot) -> bool {
        let last = self.last.get_or_insert_with(|| now.clone());
        let elapsed_s = now.wall_s - last.wall_s;
        let holds_enough = now.updates.saturating_sub(last.updates) >= self.least.updates || elapsed_s >= self.least.longest_s;
        elapsed_s >= WINDOW_S && holds_enough
    }

    /// The one that ends `now`, in which `in_force` was the setting; the next one begins.
    pub(super) fn next(&mut self, now: &Snapshot, in_force: Setting, usable_cores: usize) -> Window {
        let last = self.last.replace(now.clone()).unwrap_or_else(|| now.clone());
        let elapsed_s = now.wall_s - last.wall_s;
        let measured = window(&last, now, elapsed_s, usable_cores);
        let inserted_per_s = now.inserted.saturating_sub(last.inserted) as f64 / elapsed_s;
        self.ratio.as_ref().map_or(measured, |ratio| lasting(measured, inserted_per_s, ratio.with(in_force.batch_size)))
    }
}

/// What happened from `last` to `now`.
fn window(last: &Snapshot, now: &Snapshot, elapsed_s: f64, usable_cores: usize) -> Window {
    let rate = |last: u64, now: u64| now.saturating_sub(last) as f64 / elapsed_s;
    let share = |last: f64, now: f64, processes: f64| ((now - last) / (elapsed_s * processes.max(1.0))).clamp(0.0, 1.0);
    Window {
        env_steps_per_s: rate(last.env_steps, now.env_steps),
        learned_per_s: rate(last.learned, now.learned),
        cores_used: share(last.effort.processor_s, now.effort.processor_s, usable_cores as f64),
        learners_wait: share(last.learner_time.limiter_wait_s, now.learner_time.limiter_wait_s, now.learners as f64),
        actors_wait: share(last.actor_time.limiter_wait_s, now.actor_time.limiter_wait_s, now.actors as f64),
    }
}

/// What lasts of a window. Either side may be ahead of the other by the error band of the rate limiter, and live on that or make it up for
/// longer than a trial takes: what it does beyond the other says nothing of the setting.
fn lasting(window: Window, inserted_per_s: f64, samples_per_insert: f64) -> Window {
    // Steps come evenly and rows with each flush; rows of others come without steps.
    let allowed_per_s = samples_per_insert * inserted_per_s.max(window.env_steps_per_s);
    Window {
        env_steps_per_s: window.env_steps_per_s * (window.learned_per_s / allowed_per_s).min(1.0),
        learned_per_s: window.learned_per_s.min(allowed_per_s),
        ..window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fitted::tests::config;

    #[test]
    fn rates_and_shares_are_those_of_the_window_alone() {
        let mut last = Snapshot { wall_s: 10.0, env_steps: 1_000, learned: 5_000, ..Snapshot::default() };
        (last.actors, last.learners) = (2, 1);
        let mut now = Snapshot { wall_s: 12.0, env_steps: 3_000, learned: 11_400, ..last.clone() };
        now.effort.processor_s = 3.0;
        now.actor_time.limiter_wait_s = 1.0;
        now.learner_time.limiter_wait_s = 0.5;
        let found = window(&last, &now, 2.0, 2);
        let expected =
            Window { env_steps_per_s: 1_000.0, learned_per_s: 3_200.0, cores_used: 0.75, learners_wait: 0.25, actors_wait: 0.25 };
        assert_eq!(found, expected);
    }
    #[test]
    fn what_one_side_does_beyond_the_other_does_not_count() {
        let window = |env_steps_per_s, learned_per_s| Window {
            env_steps_per_s,
            learned_per_s,
            cores_used: 0.5,
            learners_wait: 0.0,
            actors_wait: 0.0,
        };
        // Learners that live on what there is, actors that fill it, and both in balance; each transition is drawn 128 times.
        let cases = [([195.0, 300.0], [195.0, 195.0]), ([400.0, 300.0], [300.0, 300.0]), ([250.0, 250.0], [250.0, 250.0])];
        for ([steps, updates], [lasting_steps, lasting_updates]) in cases {
            let found = lasting(window(steps, updates * 128.0), steps, 128.0);
            assert_eq!(found, window(lasting_steps, lasting_updates * 128.0));
        }
        let of_guests = lasting(window(0.0, 300.0), 400.0, 1.0);
        assert_eq!(of_guests.learned_per_s, 300.0);
    }

    #[test]
    fn a_window_holds_whole_batches_where_each_is_learned_from_in_several_updates() {
        let least = |config: &Config| (Least::of(config).updates, Least::of(config).longest_s);
        assert_eq!(least(&config(|_| {})), (20, 10.0));
        let ppo = config(|config| {
            config.algorithm.name = "ppo".into();
            (config.algorithm.epochs, config.algorithm.minibatches) = (4, 16);
        });
        assert_eq!(least(&ppo), (640, 60.0));
    }
}
