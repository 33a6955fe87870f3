//! Fitting a run to the machine: what its ranges are, and a tuner that is told once a second what the run did.

use std::path::Path;

use super::windows::Windows;
use super::{Prepared, SupervisorError};
use crate::adaptation::{Incident, Objective, Probe, Range, Ranges, Rules, Setting, Status, Step, Tuner};
use crate::algorithms::Algorithm;
use crate::config::fitted::Found;
use crate::config::{Config, Key, Loaded, RowKind, SLEEPING_ACTORS_PER_CORE};
use crate::machine::cores;
use crate::machine::memory::share_of_memory_used;
use crate::telemetry::Snapshot;

/// The most actors for each core, if the configuration does not say how many.
const ACTORS_PER_CORE: usize = 2;
/// The most environments of an actor, as a multiple of those that it begins with, if the configuration does not say
/// how many.
const TIMES_THE_ENVIRONMENTS: usize = 4;

/// The settings that are tried in a run of `config` on so many cores; `None` if the run is not fitted.
pub(super) fn ranges(config: &Config, usable_cores: usize) -> Option<Ranges> {
    let table = &config.adaptation;
    let start = config.setting();
    table.enabled.then(|| {
        let within = |key: &str, chosen: usize| Key::most_of(key).min(chosen);
        let actors = table.most_actors.unwrap_or_else(|| {
            let environments = table.most_environments.unwrap_or(start.environments);
            // If the configuration has steps sleep, twice as many as `actor.count = "auto"` begins with.
            let per_core = if config.environment.step_delay_us > 0 { 2 * SLEEPING_ACTORS_PER_CORE } else { ACTORS_PER_CORE };
            let most = config.most_actors_with(environments, per_core * usable_cores);
            within("actor.count", most.max(start.actors))
        });
        let environments = table.most_environments.unwrap_or_else(|| {
            let most = config.most_environments_of(actors).min(TIMES_THE_ENVIRONMENTS * start.environments);
            within("actor.environments", most.max(start.environments))
        });
        Ranges {
            actors: Range { low: table.fewest_actors, high: actors },
            environments: Range { low: table.fewest_environments, high: environments },
            batch_size: Range {
                low: table.smallest_batch.unwrap_or(start.batch_size),
                high: table.largest_batch.unwrap_or(start.batch_size),
            },
        }
    })
}

/// The configuration that memory is planned for: all knobs at the upper ends of `ranges`. These ends are written
/// into `loaded`, since everybody who reads that, such as an attached actor, has to find the same room and the same
/// error band.
pub(super) fn planned(loaded: &mut Loaded, ranges: Option<&Ranges>) -> Result<Config, SupervisorError> {
    let mut planned = loaded.config.clone();
    let Some(ranges) = ranges else { return Ok(planned) };
    planned.actor.count = ranges.actors.high;
    planned.actor.environments = ranges.environments.high;
    planned.learner.batch_size = ranges.batch_size.high;
    // The rules for ranges are about what the run begins with.
    planned.adaptation.enabled = false;
    if let Err(errors) = planned.validate() {
        let ends = planned.setting().flags();
        let problems: Vec<String> = errors.0.iter().map(|error| error.problem.to_string()).collect();
        let keys = match planned.row_kind() {
            RowKind::Transitions => "adaptation.most_actors, adaptation.most_environments and adaptation.largest_batch",
            RowKind::Fragments => "adaptation.most_actors and adaptation.most_environments",
        };
        let message = format!("at the upper ends of its ranges, which {keys} limit, {ends}: {}", problems.join("; "));
        return Err(loaded.error_at("adaptation.enabled", message).into());
    }
    // The run then stays the same if it goes on, or is started again, on a machine with other cores.
    let table = &mut loaded.config.adaptation;
    (table.most_actors, table.most_environments) = (Some(ranges.actors.high), Some(ranges.environments.high));
    Ok(planned)
}

/// Whether actors have to know of how many they are, because each of them explores to another degree.
pub(super) fn is_graded(algorithm: &dyn Algorithm, stop_env_steps: u64) -> bool {
    // Where exploration falls, all may begin or end alike.
    [0, stop_env_steps].into_iter().any(|env_steps| algorithm.exploration(0, 2, env_steps) != algorithm.exploration(1, 2, env_steps))
}

/// A tuner at work.
pub(super) struct Fitting {
    tuner: Tuner,
    windows: Windows,
    wanted: Setting,
    /// How many cores the process may use, and the time of how many.
    cores: (usize, f64),
    incident: Option<Incident>,
    found: Found,
    /// Whether the user has been told that something holds the search back.
    has_said_so: bool,
}

impl Fitting {
    /// The tuner of a run that begins as it was prepared, or with what an earlier life of it had `found`; `None` if
    /// nothing is to be fitted.
    pub(super) fn new(prepared: &Prepared, found: Option<Found>) -> Option<Self> {
        let (config, Some(ranges)) = (&prepared.loaded.config, prepared.ranges) else { return None };
        let limiter = prepared.algorithm().experience().limiter();
        let objective = Objective::of_run(limiter.samples_per_insert, config.adaptation.hold);
        let rules = Rules { freeze_after: config.adaptation.freeze_after, ..Rules::new(ranges, objective) };
        let found = found.unwrap_or(Found { home: config.setting(), counts: [0, 0] });
        let (tuner, wanted) = (Tuner::new(rules, found.home), found.home);
        let (windows, cores) = (Windows::of(config), (cores::usable_now(), cores::time_now()));
        Some(Self { tuner, windows, wanted, cores, incident: None, found, has_said_so: false })
    }

    /// The setting that is to be in force.
    pub(super) fn wanted(&self) -> Setting {
        self.wanted
    }

    /// The best setting known.
    pub(super) fn home(&self) -> Setting {
        self.tuner.home()
    }

    /// Whether the setting in force has yet to prove itself.
    pub(super) fn is_on_trial(&self) -> bool {
        self.tuner.is_on_trial()
    }

    /// Why nothing is tried, if that has not been said yet.
    pub(super) fn held_back(&mut self) -> Option<String> {
        let reason = self.tuner.held_back().map(ToString::to_string);
        let was_said = std::mem::replace(&mut self.has_said_so, reason.is_some());
        reason.filter(|_| !was_said)
    }

    /// Settings that were tried, and those that were better.
    pub(super) fn counts(&self) -> [u64; 2] {
        self.found.counts
    }

    /// Note that what was measured in this window says nothing of the setting. A process that could not be started
    /// is the graver incident, and is not replaced by another.
    pub(super) fn happened(&mut self, incident: Incident) {
        if !matches!(self.incident, Some(Incident::ProcessFailed(_))) {
            self.incident = Some(incident);
        }
    }

    /// Take in a moment of the run, in which `in_force` was its setting. Returns what the tuner decides once a
    /// whole window has passed.
    pub(super) fn look(&mut self, now: &Snapshot, in_force: Setting) -> Option<Step> {
        // A process that cannot be started ends its window at once: it would fail again.
        let is_refuted = self.tuner.is_on_trial() && matches!(self.incident, Some(Incident::ProcessFailed(_)));
        if !self.windows.is_over(now) && !is_refuted {
            return None;
        }
        self.cores = cores::unless_unknown(Path::new("/"), self.cores, || (cores::usable_now(), cores::time_now()));
        let (usable_cores, time) = self.cores;
        let window = self.windows.next(now, in_force, time);
        let step = self.tuner.step(&Status {
            wall_s: now.wall_s,
            progress: part_over(now.env_steps, now.stop_env_steps, now.wall_s, now.stop_wall_s),
            window,
            in_force,
            usable_cores,
            memory_used: share_of_memory_used(),
            incident: self.incident.take(),
        });
        if let Some(probe) = &step.probe {
            self.found.take_in(probe.from, probe.to, probe.verdict);
        }
        if let Some(change) = &step.change {
            self.wanted = change.setting;
        }
        Some(step)
    }

    /// The probe under way, if any, when the run ends at `wall_s`.
    pub(super) fn end(&mut self, wall_s: f64) -> Option<Probe> {
        let probe = self.tuner.unfinished(wall_s);
        if let Some(probe) = &probe {
            self.found.take_in(probe.from, probe.to, probe.verdict);
        }
        probe
    }
}

/// The part of a run that is over, from 0 to 1: by steps or by time, whichever is more.
pub(super) fn part_over(env_steps: u64, stop_env_steps: u64, wall_s: f64, stop_wall_s: Option<f64>) -> f64 {
    let by_steps = env_steps as f64 / stop_env_steps as f64;
    by_steps.max(stop_wall_s.map_or(0.0, |limit_s| wall_s / limit_s)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::registry;
    use crate::config::fitted::tests::config;
    use crate::config::schema::Exploration;
    use crate::environments::spec;

    #[test]
    fn ranges_that_nobody_gave_follow_from_the_cores_and_the_start_and_the_batch_stays() {
        let found = ranges(&config(|_| {}), 4).unwrap();
        let range = |low, high| Range { low, high };
        assert_eq!(found, Ranges { actors: range(1, 8), environments: range(1, 32), batch_size: Range::fixed(64) });
        assert_eq!(ranges(&config(|_| {}), 1).unwrap().actors.high, 3, "what the run begins with is tried");
        let asleep = ranges(&config(|config| config.environment.step_delay_us = 1_000), 4).unwrap();
        assert_eq!(asleep.actors, range(1, 32), "the automatic choice is sixteen, and more may be faster");
        assert_eq!(ranges(&config(|config| config.adaptation.enabled = false), 4), None);
    }

    #[test]
    fn ranges_that_somebody_gave_have_both_of_their_ends() {
        let given = config(|config| {
            let table = &mut config.adaptation;
            (table.fewest_actors, table.most_actors) = (2, Some(5));
            (table.fewest_environments, table.most_environments) = (4, Some(16));
            (table.smallest_batch, table.largest_batch) = (Some(32), Some(256));
        });
        let range = |low, high| Range { low, high };
        let expected = Ranges { actors: range(2, 5), environments: range(4, 16), batch_size: range(32, 256) };
        assert_eq!(ranges(&given, 4), Some(expected));
    }

    #[test]
    fn actors_know_of_how_many_they_are_where_their_algorithm_lets_them_explore_to_different_degrees() {
        let graded = |name: &str, environment: &str, change: fn(&mut Config)| {
            let mut config = Config::for_environment(environment);
            config.algorithm.name = name.into();
            change(&mut config);
            let algorithm = registry::build(&config, &spec(environment).unwrap()).unwrap();
            is_graded(&*algorithm, config.run.stop_env_steps)
        };
        let ape_x = |config: &mut Config| config.algorithm.exploration = Exploration::ApeX;
        assert!(!graded("dqn", "CartPole-v1", |_| {}) && graded("dqn", "CartPole-v1", ape_x));
        let alike = |config: &mut Config| (config.algorithm.exploration, config.algorithm.epsilon_alpha) = (Exploration::ApeX, 0.0);
        assert!(!graded("dqn", "CartPole-v1", alike), "the rungs of the ladder are one");
        let spread = |config: &mut Config| config.algorithm.exploration_noise_spread = 0.25;
        assert!(!graded("td3", "Pendulum-v1", |_| {}) && graded("td3", "Pendulum-v1", spread));
        assert!(!graded("sac", "Pendulum-v1", |_| {}));
    }

    #[test]
    fn the_part_of_a_run_that_is_over_is_that_of_its_steps_or_of_its_time_whichever_is_more() {
        let over = |env_steps, stop_wall_s| part_over(env_steps, 100, 30.0, stop_wall_s);
        assert_eq!([over(1, Some(60.0)), over(90, Some(60.0)), over(1, None)], [0.5, 0.9, 0.01]);
    }

    #[test]
    fn memory_is_planned_for_the_upper_ends_and_the_band_is_theirs() {
        let text = config(|config| config.adaptation.largest_batch = Some(256)).to_toml();
        let mut loaded = Config::parse(&text, "test.toml", &[]).unwrap();
        let ranges = ranges(&loaded.config, 2).unwrap();
        let planned = planned(&mut loaded, Some(&ranges)).unwrap();
        assert_eq!(planned.setting(), Setting { actors: 4, environments: 32, batch_size: 256 });
        assert_eq!(loaded.config.effective_error_band(), planned.effective_error_band());
        assert_eq!(loaded.config.most_transitions_in_flight(), planned.most_transitions_in_flight());
        assert_eq!(loaded.config.with_actors_of(planned.setting()).setting(), Setting { batch_size: 64, ..planned.setting() });
    }

    #[test]
    fn upper_ends_that_nobody_gave_are_those_for_which_the_replay_has_room() {
        // Of 1,000 transitions, for three actors and eight that may attach.
        for (most_environments, found) in [(None, [4, 20]), (Some(26), [3, 26])] {
            let change = |config: &mut Config| (config.replay.capacity, config.adaptation.most_environments) = (1_000, most_environments);
            let mut loaded = Config::parse(&config(change).to_toml(), "test.toml", &[]).unwrap();
            let ranges = ranges(&loaded.config, 2).unwrap();
            assert_eq!([ranges.actors.high, ranges.environments.high], found);
            assert!(planned(&mut loaded, Some(&ranges)).is_ok());
        }
    }

    #[test]
    fn upper_ends_that_contradict_other_keys_are_refused_before_anything_begins() {
        let mut loaded = Config::parse(&config(|_| {}).to_toml(), "test.toml", &[]).unwrap();
        loaded.config.replay.capacity = 1_000;
        let mut ranges = ranges(&loaded.config, 2).unwrap();
        ranges.environments.high = 32;
        let refused = planned(&mut loaded, Some(&ranges)).unwrap_err().to_string();
        assert!(refused.contains("adaptation.enabled") && refused.contains("--set actor.environments=32"), "{refused}");
        assert!(refused.contains("replay.capacity of 1000"), "{refused}");
        assert!(refused.contains("adaptation.most_actors, adaptation.most_environments and adaptation.largest_batch limit"), "{refused}");
    }
}
