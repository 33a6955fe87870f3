//! Windows of a run that fits itself: what happened between two moments.

use crate::adaptation::{AllowedSamples, Hold, LeastWindow, NarrowBand, Setting, Window};
use crate::config::{Config, RowKind};
use crate::telemetry::Snapshot;

/// How much a window of a run of `config` has to hold.
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
    flush_interval_s: f64,
    band: NarrowBand,
}

impl Ratio {
    /// The ratio of a run of transitions; `None` if no limiter holds its sides together, or if it has fragments,
    /// each of which is taken once.
    fn of(config: &Config) -> Option<Self> {
        let samples_per_insert = config.replay.samples_per_insert.filter(|_| config.row_kind() == RowKind::Transitions)?;
        Some(Self {
            samples_per_insert,
            hold: config.adaptation.hold,
            configured_batch: config.learner.batch_size,
            flush_transitions: config.actor.flush_transitions,
            flush_interval_s: config.actor.flush_interval_ms as f64 / 1_000.0,
            band: NarrowBand::default(),
        })
    }

    /// What is expected to last of a window between two `moments`, in which `in_force` was the setting.
    fn lasting(&mut self, window: Window, moments: [&Snapshot; 2], in_force: Setting) -> Window {
        let [last, now] = moments;
        let elapsed_s = now.wall_s - last.wall_s;
        let samples_per_insert = self.hold.samples_per_insert(self.samples_per_insert, self.configured_batch, in_force.batch_size);
        let allowed = AllowedSamples {
            per_s: samples_per_insert * now.inserted.saturating_sub(last.inserted) as f64 / elapsed_s,
            at_once: (samples_per_insert * self.inserted_at_once(moments, in_force)).max(in_force.batch_size as f64),
        };
        let lasting = self.band.lasting(window, elapsed_s, allowed);
        match self.hold {
            // Steps come as many together as are inserted at once: how many there will be, the updates tell better.
            Hold::UpdatesPerStep if samples_per_insert > 0.0 => {
                Window { env_steps_per_s: lasting.learned_per_s / samples_per_insert, ..lasting }
            }
            _ => lasting,
        }
    }

    /// How many transitions an actor inserts at once: those of a flush or, if it is slow, what it makes before time
    /// has it flush.
    fn inserted_at_once(&self, [last, now]: [&Snapshot; 2], in_force: Setting) -> f64 {
        let worked_s = |moment: &Snapshot| moment.actor_time.total_s() - moment.actor_time.limiter_wait_s;
        let steps_per_s_of_one = now.env_steps.saturating_sub(last.env_steps) as f64 / (worked_s(now) - worked_s(last));
        let in_time = self.flush_interval_s * steps_per_s_of_one;
        let least = if in_time > 0.0 { in_time.min(self.flush_transitions as f64) } else { self.flush_transitions as f64 };
        let environments = in_force.environments.max(1) as f64;
        (least / environments).ceil() * environments
    }
}

/// Windows one after the other.
pub(super) struct Windows {
    least: LeastWindow,
    ratio: Option<Ratio>,
    /// The moment at which the present window began.
    last: Option<Snapshot>,
}

impl Windows {
    /// The windows of a run of `config`.
    pub(super) fn of(config: &Config) -> Self {
        Self { least: least(config), ratio: Ratio::of(config), last: None }
    }

    /// Whether the present window is over `now`. Updates do not end it while every actor is in the middle of a
    /// step: if a step takes longer than a window, most windows would hold no step, and say that nothing was done.
    pub(super) fn is_over(&mut self, now: &Snapshot) -> bool {
        let last = self.last.get_or_insert_with(|| now.clone());
        let elapsed_s = now.wall_s - last.wall_s;
        // Every flush adds to `limiter_wait_s`, a few nanoseconds even if it did not wait: only a large share of the
        // window means that somebody waits.
        let somebody_waits = now.actor_time.limiter_wait_s - last.actor_time.limiter_wait_s > 0.5 * elapsed_s;
        let has_acted = now.env_steps > last.env_steps || somebody_waits;
        let updates = if has_acted { now.updates.saturating_sub(last.updates) } else { 0 };
        self.least.is_held(elapsed_s, updates)
    }

    /// The window that ends `now`, in which `in_force` was the setting and the run had the time of `cores`. The next one
    /// begins.
    pub(super) fn next(&mut self, now: &Snapshot, in_force: Setting, cores: f64) -> Window {
        let last = self.last.replace(now.clone()).unwrap_or_else(|| now.clone());
        let elapsed_s = now.wall_s - last.wall_s;
        let measured = window(&last, now, elapsed_s, cores);
        self.ratio.as_mut().map_or(measured, |ratio| ratio.lasting(measured, [&last, now], in_force))
    }
}

/// What happened from `last` to `now`, with the time of so many `cores`.
fn window(last: &Snapshot, now: &Snapshot, elapsed_s: f64, cores: f64) -> Window {
    let rate = |last: u64, now: u64| now.saturating_sub(last) as f64 / elapsed_s;
    let share = |last: f64, now: f64, of: f64| ((now - last) / (elapsed_s * of)).clamp(0.0, 1.0);
    Window {
        env_steps_per_s: rate(last.env_steps, now.env_steps),
        learned_per_s: rate(last.learned, now.learned),
        cores_used: share(last.effort.processor_s.of_run(), now.effort.processor_s.of_run(), cores),
        learners_wait: share(last.learner_time.limiter_wait_s, now.learner_time.limiter_wait_s, now.learners.max(1) as f64),
        actors_wait: share(last.actor_time.limiter_wait_s, now.actor_time.limiter_wait_s, now.actors.max(1) as f64),
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
        now.effort.processor_s.learners = 3.0;
        now.actor_time.limiter_wait_s = 1.0;
        now.learner_time.limiter_wait_s = 0.5;
        let expected =
            Window { env_steps_per_s: 1_000.0, learned_per_s: 3_200.0, cores_used: 0.75, learners_wait: 0.25, actors_wait: 0.25 };
        assert_eq!(window(&last, &now, 2.0, 2.0), expected);
        // A control group may leave a run a part of a core.
        now.effort.processor_s.learners = 0.75;
        assert_eq!([1.5, 0.5].map(|cores| window(&last, &now, 2.0, cores).cores_used), [0.25, 0.75]);
    }

    #[test]
    fn an_actor_inserts_a_flush_at_once_or_what_it_makes_until_time_has_it_flush_and_whole_steps_of_its_environments() {
        let ratio = Ratio::of(&config(|config| (config.actor.flush_transitions, config.actor.flush_interval_ms) = (64, 50))).unwrap();
        let at_once = |env_steps, environments| {
            let last = Snapshot { wall_s: 1.0, ..Snapshot::default() };
            let mut now = Snapshot { wall_s: 3.0, env_steps, ..last.clone() };
            // Two seconds, of which one was spent waiting.
            (now.actor_time.environment_s, now.actor_time.limiter_wait_s) = (1.0, 1.0);
            ratio.inserted_at_once([&last, &now], Setting { actors: 1, environments, batch_size: 32 })
        };
        assert_eq!([1, 8, 48, 100].map(|environments| at_once(10_000, environments)), [64.0, 64.0, 96.0, 100.0]);
        assert_eq!([at_once(45, 1), at_once(200, 1), at_once(200, 8)], [3.0, 10.0, 16.0]);
        assert_eq!(at_once(0, 1), 64.0, "it waited all the time");
    }

    #[test]
    fn where_updates_are_held_in_step_with_steps_a_window_without_a_flush_has_steps_too() {
        let held = config(|config| {
            (config.adaptation.hold, config.actor.flush_transitions) = (Hold::UpdatesPerStep, 64);
            (config.learner.batch_size, config.replay.samples_per_insert) = (32, Some(32.0));
        });
        let mut windows = Windows::of(&held);
        let mut now = Snapshot { learners: 1, actors: 1, ..Snapshot::default() };
        assert!(!windows.is_over(&now));
        for second in 1..=20_u64 {
            let flushed = second * 20 / 64 * 64;
            now = Snapshot {
                wall_s: second as f64,
                updates: 20 * second,
                learned: 640 * second,
                inserted: flushed,
                env_steps: flushed,
                ..now
            };
            let found = windows.next(&now, Setting { actors: 1, environments: 1, batch_size: 32 }, 2.0);
            assert_eq!((found.env_steps_per_s, found.learned_per_s, found.learners_wait), (20.0, 640.0, 0.0), "second {second}");
        }
    }

    /// A run at a look, five of which are a second: an actor's step of its eight environments takes twelve, the
    /// flush after it is seen at the next, and the learner does not wait for it. Another actor stands at the
    /// limiter all the time, if anybody waits.
    fn with_slow_steps(look: u64, somebody_waits: bool) -> Snapshot {
        let steps = look / 12;
        let mut now = Snapshot { wall_s: 0.2 * look as f64, env_steps: 8 * steps, inserted: 8 * steps, ..Snapshot::default() };
        (now.updates, now.learned) = (20 * look, 64 * 20 * look);
        (now.actors, now.learners) = (2, 1);
        now.actor_time.environment_s = 2.4 * steps as f64;
        let flushes = look.saturating_sub(1) / 12;
        now.actor_time.limiter_wait_s = if somebody_waits { now.wall_s } else { 1e-6 * flushes as f64 };
        now
    }

    #[test]
    fn a_window_has_a_step_also_where_that_takes_longer_unless_somebody_waits_meanwhile() {
        for samples_per_insert in [None, Some(32.0)] {
            let run = config(|config| config.replay.samples_per_insert = samples_per_insert);
            for (somebody_waits, length_s) in [(false, 2.0..2.6), (true, 1.0..1.3)] {
                let (mut windows, mut began_s) = (Windows::of(&run), with_slow_steps(1, somebody_waits).wall_s);
                for now in (1..=600).map(|look| with_slow_steps(look, somebody_waits)) {
                    if !windows.is_over(&now) {
                        continue;
                    }
                    let found = windows.next(&now, Setting { actors: 2, environments: 8, batch_size: 64 }, 2.0);
                    let took_s = now.wall_s - began_s;
                    assert!(length_s.contains(&took_s), "{samples_per_insert:?}, somebody waits: {somebody_waits}: {took_s} s");
                    let is_done = found.env_steps_per_s > 0.0 && found.learned_per_s > 0.0;
                    assert!(is_done || somebody_waits, "{samples_per_insert:?}, at {} s: {found:?}", now.wall_s);
                    began_s = now.wall_s;
                }
                assert!(began_s > 115.0, "{samples_per_insert:?}: the last window began at {began_s} s");
            }
        }
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
