//! Windows of a run that fits itself, from one moment of it to another.

use crate::adaptation::{Hold, Inserted, LeastWindow, NarrowBand, Setting, Window};
use crate::config::{Config, Rows};
use crate::telemetry::Snapshot;

/// How much a window of `config` has to hold.
fn least(config: &Config) -> LeastWindow {
    let parts = if config.learns_in_parts() { config.algorithm.minibatches } else { 1 };
    LeastWindow::of(config.uses_of_fragments().map_or(1, |(_, uses)| uses) * parts)
}

/// How often a rate limiter has each transition drawn.
struct Ratio {
    samples_per_insert: f64,
    hold: Hold,
    configured_batch: usize,
    flush_transitions: usize,
    band: NarrowBand,
}

impl Ratio {
    /// That of a run of transitions; `None` where nothing holds its sides together, and of fragments, each of which is taken once.
    fn of(config: &Config) -> Option<Self> {
        let samples_per_insert = config.replay.samples_per_insert.filter(|_| config.rows() == Rows::Transitions)?;
        Some(Self {
            samples_per_insert,
            hold: config.adaptation.hold,
            configured_batch: config.learner.batch_size,
            flush_transitions: config.actor.flush_transitions,
            band: NarrowBand::default(),
        })
    }

    /// What lasts of a window with so many inserts, in which `in_force` was the setting.
    fn lasting(&mut self, window: Window, elapsed_s: f64, inserted_per_s: f64, in_force: Setting) -> Window {
        let samples_per_insert = self.hold.samples_per_insert(self.samples_per_insert, self.configured_batch, in_force.batch_size);
        let at_once = self.flush_transitions.max(in_force.environments);
        self.band.lasting(window, elapsed_s, Inserted { per_s: inserted_per_s, at_once, samples_per_insert })
    }
}

/// One window after the other.
pub(super) struct Windows {
    least: LeastWindow,
    ratio: Option<Ratio>,
    /// Where the present one began.
    last: Option<Snapshot>,
}

impl Windows {
    /// Of a run of `config`.
    pub(super) fn of(config: &Config) -> Self {
        Self { least: least(config), ratio: Ratio::of(config), last: None }
    }

    /// Whether the present one is over `now`.
    pub(super) fn is_over(&mut self, now: &Snapshot) -> bool {
        let last = self.last.get_or_insert_with(|| now.clone());
        self.least.is_held(now.wall_s - last.wall_s, now.updates.saturating_sub(last.updates))
    }

    /// The one that ends `now`, in which `in_force` was the setting; the next one begins.
    pub(super) fn next(&mut self, now: &Snapshot, in_force: Setting, usable_cores: usize) -> Window {
        let last = self.last.replace(now.clone()).unwrap_or_else(|| now.clone());
        let elapsed_s = now.wall_s - last.wall_s;
        let measured = window(&last, now, elapsed_s, usable_cores);
        let inserted_per_s = now.inserted.saturating_sub(last.inserted) as f64 / elapsed_s;
        self.ratio.as_mut().map_or(measured, |ratio| ratio.lasting(measured, elapsed_s, inserted_per_s, in_force))
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
    fn a_window_holds_whole_batches_where_each_is_learned_from_in_several_updates() {
        assert_eq!(least(&config(|_| {})), LeastWindow::of(1));
        let ppo = config(|config| {
            config.algorithm.name = "ppo".into();
            (config.algorithm.epochs, config.algorithm.minibatches) = (4, 16);
        });
        assert_eq!(least(&ppo), LeastWindow::of(64));
    }
}
