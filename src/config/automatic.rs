//! Numbers that are chosen before the run begins: for the machine or the algorithm, if a key is `"auto"`; for PPO, if its
//! batch is not configured; and for DDPG, TD3 and SAC, if their updates per step are not. The resolved configuration has
//! the chosen numbers.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

use super::by_algorithm::RowKind;
use super::key::Key;
use super::rules::{RULES, Rule};
use super::schema::{AlgorithmConfig, Config, LearnerConfig};
use crate::segment::membership::MOST_HALVINGS;

/// The value of a key whose number is chosen here.
pub(super) const AUTO: &str = "auto";

const ACTORS: &str = "actor.count";
const BATCH_SIZE: &str = "learner.batch_size";
/// The keys that may be `"auto"`.
pub(super) const KEYS: [&str; 2] = [ACTORS, BATCH_SIZE];
/// The key whose number follows the batch of DDPG, TD3 and SAC unless it is configured.
pub(super) const SAMPLES_PER_INSERT: &str = "replay.samples_per_insert";
/// The keys of a batch of PPO and of its parts.
pub(super) const BATCH_KEYS: [&str; 2] = [BATCH_SIZE, "algorithm.minibatches"];

/// Transitions of a batch that each of several learners should have. With fewer, they hardly do more updates than one:
/// exchanging gradients takes the time that they save. Measured: docs/performance.md.
pub const LEAST_TRANSITIONS_PER_LEARNER: usize = 128;
/// Actors for every core if their environments mostly sleep. Many more would be no slower, but each is a process with
/// memory of its own.
pub const SLEEPING_ACTORS_PER_CORE: usize = 4;

/// Chooses numbers for the keys with these `paths`, which are among [`KEYS`] and [`SAMPLES_PER_INSERT`].
pub(super) fn choose(config: &mut Config, paths: &BTreeSet<&str>) {
    // Counts the cores that this process may use, and heeds how much time on them its control group grants.
    let cores = available_parallelism().map_or(1, usize::from);
    choose_on(config, paths, cores);
}

fn choose_on(config: &mut Config, paths: &BTreeSet<&str>, cores: usize) {
    let learners = config.learner.count;
    if paths.contains(BATCH_SIZE) {
        // What the algorithms' authors and our presets use, since that is known to learn.
        let (usual, indivisible) = match config.row_kind() {
            RowKind::Fragments => (256, config.fragments.length_steps),
            RowKind::Transitions if config.learns_values_alone() => (64, 1),
            RowKind::Transitions => (256, 1),
        };
        let chosen = first_batch_size(usual, indivisible, learners, largest_first_batch(config));
        config.learner.batch_size = batch_within_range(config, chosen);
    }
    if paths.contains(SAMPLES_PER_INSERT) {
        config.replay.samples_per_insert = Some(config.usual_samples_per_insert());
    }
    if paths.contains(ACTORS) {
        let environments_sleep = config.environment.step_delay_us > 0;
        let chosen = first_actors(cores, config.learner.processes(), environments_sleep);
        let with_room = config.most_actors_with(config.most_environments(), chosen.min(Key::most_of(ACTORS)));
        config.actor.count = actors_within_range(config, with_room);
    }
}

/// Actors to begin with: one for every core that no learner has, since two processes on a core only take turns.
///
/// An environment of which nothing is known is taken to compute. If it sleeps after all, learners wait, which the tuner
/// sees after a few windows. The opposite mistake is harder to see: too many actors would slow learners down and look
/// busy.
fn first_actors(usable_cores: usize, learners: usize, environments_sleep: bool) -> usize {
    if environments_sleep {
        return usable_cores.max(1) * SLEEPING_ACTORS_PER_CORE;
    }
    usable_cores.saturating_sub(learners).max(1)
}

/// The batch to begin with, in transitions: the `usual` one, and more only if several learners would have too little
/// each. Each of them gets the same number of pieces of `indivisible` transitions. It is at most `most`; if that has not
/// a piece for each, it is the usual one, which a rule between keys refuses.
///
/// The tuner makes the batch larger if that is faster. Its range has to keep it in sizes with which the algorithm
/// learns.
fn first_batch_size(usual: usize, indivisible: usize, learners: usize, most: usize) -> usize {
    let for_all = if learners > 1 { usual.max(LEAST_TRANSITIONS_PER_LEARNER * learners) } else { usual };
    let unit = (indivisible * learners).max(1);
    if unit > most { usual } else { for_all.next_multiple_of(unit).min(most / unit * unit) }
}

/// The largest batch that can be drawn from the first `replay.min_size` transitions and that fits into the error
/// band.
pub(super) fn largest_first_batch(config: &Config) -> usize {
    let most = Key::most_of(BATCH_SIZE);
    if config.row_kind() == RowKind::Fragments {
        return most;
    }
    let replay = &config.replay;
    let band = replay.samples_per_insert.and(replay.error_band).map_or(most, |band| band as usize);
    most.min(replay.min_size).min(band)
}

/// `chosen`, or the number nearest to it in the range of a run that fits itself to the machine.
fn actors_within_range(config: &Config, chosen: usize) -> usize {
    let table = &config.adaptation;
    if table.enabled { chosen.max(table.fewest_actors).min(table.most_actors.unwrap_or(usize::MAX)) } else { chosen }
}

/// `chosen`; but with `adaptation.enabled` and an end of the batch's range configured, the largest batch not above
/// `chosen` that is in the range, that `learner.count` divides, and that is `adaptation.largest_batch` halved some
/// times (without that key, `adaptation.smallest_batch` doubled some times). If all such batches are larger, it is the
/// smallest of them, provided that `chosen` is below `adaptation.smallest_batch` or is that batch halved some times.
/// Else it is `chosen`, and a rule between keys says what is wrong.
fn batch_within_range(config: &Config, chosen: usize) -> usize {
    let table = &config.adaptation;
    let falling: Vec<usize> = match (table.smallest_batch, table.largest_batch) {
        (_, Some(largest)) if table.enabled => {
            (0..MOST_HALVINGS).filter_map(|times| largest.is_multiple_of(1 << times).then_some(largest >> times)).collect()
        }
        (Some(smallest), None) if table.enabled => (0..=MOST_HALVINGS).rev().map(|times| smallest << times).collect(),
        _ => return chosen,
    };
    let is_fit = |&batch_size: &usize| batch_size >= table.smallest_batch.unwrap_or(1) && batch_size.is_multiple_of(config.learner.count);
    let fit: Vec<usize> = falling.into_iter().filter(is_fit).collect();
    let is_too_small = table.smallest_batch.is_some_and(|smallest| chosen < smallest);
    let is_doubled = |batch_size: usize| batch_size.is_multiple_of(chosen) && (batch_size / chosen).is_power_of_two();
    let larger = || fit.last().filter(|&&batch_size| is_too_small || is_doubled(batch_size));
    fit.iter().find(|&&batch_size| batch_size <= chosen).or_else(larger).copied().unwrap_or(chosen)
}

/// For a run that has numbers neither for the size of a batch nor for its parts: lets each batch of PPO take all
/// fragments that are completed at once, since fragments that it leaves are old when the next batch learns from them.
/// If these have fewer steps than the default, it takes those of the fewest such rounds that have as many. Parts are
/// about as large as by default, so that each step has about as many updates, and of a number that
/// `learner.publish_interval_updates` allows. Changes nothing if that broke the limit of a batch or a rule about it.
pub(super) fn let_ppo_learn_from_new_fragments(config: &mut Config) {
    let at_once = config.actor.count.max(1) * config.actor.environments * config.fragments.length_steps;
    let least = LearnerConfig::default().batch_size;
    let part = least / AlgorithmConfig::default().minibatches;
    let mut following = config.clone();
    following.learner.batch_size = least.next_multiple_of(at_once);
    following.algorithm.minibatches = following.minibatches_near(following.learner.batch_size / part);
    let breaks = |rule: &Rule| {
        let is_about_batch = BATCH_KEYS.iter().any(|key| rule.keys.contains(key));
        is_about_batch && rule.concerns(&following.algorithm.name) && (rule.violation)(&following).is_some()
    };
    if config.learns_in_parts() && following.learner.batch_size <= Key::most_of(BATCH_SIZE) && !RULES.iter().any(breaks) {
        *config = following;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(algorithm: &str, cores: usize, change: impl FnOnce(&mut Config)) -> [usize; 2] {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = algorithm.into();
        change(&mut config);
        choose_on(&mut config, &BTreeSet::from(KEYS), cores);
        [config.actor.count, config.learner.batch_size]
    }

    #[test]
    fn actors_have_the_cores_that_learners_leave_and_at_least_one_process() {
        // The searches on paper have a copy of this choice and of DQN's batch: `Start::Auto` in tests/adaptation/shapes.rs.
        let count = |cores, learners| first_actors(cores, learners, false);
        assert_eq!([count(1, 1), count(2, 1), count(8, 1), count(32, 2), count(2, 4)], [1, 1, 7, 30, 1]);
        assert_eq!(first_actors(2, 1, true), 8);
    }

    #[test]
    fn a_batch_is_the_usual_one_unless_learners_would_have_too_little_each() {
        assert_eq!([1, 4].map(|learners| first_batch_size(64, 1, learners, 65_536)), [64, 512]);
        assert_eq!(first_batch_size(256, 1, 1, 65_536), 256);
        let fragments = |learners, most| first_batch_size(256, 100, learners, most);
        assert_eq!([1, 3].map(|learners| fragments(learners, 65_536)), [300, 600]);
        assert_eq!(fragments(3, 500), 300, "no more than a batch may have");
        assert_eq!([3, 8].map(|learners| first_batch_size(64, 1, learners, 250)), [249, 248], "and the same for each learner");
    }

    #[test]
    fn actors_have_the_cores_that_learners_leave_and_batches_suit_the_algorithm() {
        assert_eq!(chosen("dqn", 8, |_| {}), [7, 64]);
        assert_eq!(chosen("sac", 8, |config| config.learner.count = 2), [6, 256]);
        assert_eq!(chosen("ppo", 1, |config| config.fragments.length_steps = 100), [1, 300]);
        assert_eq!(chosen("td3", 2, |config| config.environment.step_delay_us = 1_000)[0], 8, "actors that sleep share a core");
        let ppo =
            |environments| chosen("ppo", 64, |config| (config.fragments.length_steps, config.actor.environments) = (32, environments));
        assert_eq!((ppo(2), ppo(16)), ([4, 256], [1, 256]), "no more environments than a batch of PPO has fragments");
        let appo = |environments| chosen("appo", 64, |config| (config.learner.batch_size, config.actor.environments) = (800, environments));
        assert!(appo(100)[0] < 63 && appo(4)[0] == 63, "nor so many of APPO that fragments would be dropped as too old");
        let narrow = |capacity| chosen("appo", 16, |config| config.fragments.capacity = Some(capacity))[0];
        assert!(narrow(128) < narrow(10_000), "nor so many that their fragments have no room");
        let td3 = |capacity| chosen("td3", 2_000, |config| config.replay.capacity = capacity)[0];
        assert_eq!(td3(10_000_000), 1_024, "no more than a run may have");
        assert!((2..1_024).contains(&td3(10_000)), "nor more than insert at once what the replay has room for");
    }

    #[test]
    fn what_is_chosen_lies_in_the_ranges_of_a_run_that_fits_itself() {
        let fitted = |fewest_actors, most_actors, smallest_batch, largest_batch| {
            let mut config = Config::for_environment("CartPole-v1");
            config.adaptation.enabled = true;
            (config.adaptation.fewest_actors, config.adaptation.most_actors) = (fewest_actors, most_actors);
            (config.adaptation.smallest_batch, config.adaptation.largest_batch) = (smallest_batch, largest_batch);
            choose_on(&mut config, &BTreeSet::from(KEYS), 8);
            config.validate().unwrap();
            [config.actor.count, config.learner.batch_size]
        };
        assert_eq!(fitted(1, Some(4), None, Some(32)), [4, 32]);
        assert_eq!(fitted(9, None, Some(128), Some(512)), [9, 128]);
        let at_rest = chosen("dqn", 8, |config| config.adaptation.most_actors = Some(4));
        assert_eq!(at_rest[0], 7, "ranges mean nothing to a run that does not");
    }

    #[test]
    fn the_batch_that_is_chosen_is_doubled_and_halved_to_the_ends_of_its_range() {
        let fitted = |algorithm: &str, learners, smallest_batch, largest_batch| {
            let mut config = Config::for_environment("CartPole-v1");
            config.algorithm.name = algorithm.into();
            (config.adaptation.enabled, config.learner.count, config.replay.min_size) = (true, learners, 65_536);
            (config.adaptation.smallest_batch, config.adaptation.largest_batch) = (smallest_batch, largest_batch);
            choose_on(&mut config, &BTreeSet::from(KEYS), 8);
            config.validate().ok().map(|()| config.learner.batch_size)
        };
        assert_eq!(fitted("dqn", 1, None, Some(96)), Some(48));
        assert_eq!(fitted("dqn", 1, Some(48), None), Some(48));
        assert_eq!(fitted("dqn", 1, Some(48), Some(96)), Some(48));
        assert_eq!(fitted("dqn", 1, Some(96), Some(192)), Some(96), "what is usual is too small");
        assert_eq!(fitted("sac", 1, None, Some(384)), Some(192));
        assert_eq!(fitted("sac", 1, Some(24), None), Some(192));
        assert_eq!(fitted("dqn", 3, None, Some(768)), Some(384));
        assert_eq!(fitted("dqn", 1, None, Some(16_384)), Some(128), "seven doublings of what is usual are too few");
        assert_eq!(fitted("sac", 1, None, Some(65_536)), Some(512));
        assert_eq!(fitted("dqn", 3, None, Some(512)), None, "three learners cannot share it");
        assert_eq!(fitted("dqn", 1, None, Some(999)), None, "nor is this a batch that is usual, doubled");
    }

    #[test]
    fn a_batch_is_no_larger_than_the_first_that_may_be_drawn_or_the_error_band() {
        let batch = |change: fn(&mut Config)| {
            chosen("dqn", 16, |config| {
                config.learner.count = 8;
                change(config);
            })[1]
        };
        assert_eq!(batch(|config| config.replay.min_size = 2_000), 1_024);
        assert_eq!(batch(|config| config.replay.min_size = 1_001), 1_000, "every learner draws the same share");
        assert_eq!(batch(|config| (config.replay.min_size, config.replay.error_band) = (2_000, Some(900.0))), 896);
        let free = batch(|config| {
            config.replay.min_size = 2_000;
            (config.replay.samples_per_insert, config.replay.error_band) = (None, Some(900.0));
        });
        assert_eq!(free, 1_024, "a band means nothing to a run that is not held in step");
    }

    #[test]
    fn what_is_chosen_is_what_its_key_says() {
        let [dqn, td3, sac] = ["dqn", "td3", "sac"].map(|algorithm| chosen(algorithm, 8, |_| {})[1]);
        assert_eq!(td3, sac);
        let of_each = LEAST_TRANSITIONS_PER_LEARNER;
        let batch = format!("`\"auto\"` takes {dqn} for DQN and {sac} for the others, or {of_each} for each of several learners");
        for (key, said) in [(ACTORS, "`\"auto\"` takes the cores that learners leave, at least one"), (BATCH_SIZE, batch.as_str())] {
            let doc = Key::find(key).unwrap().doc;
            assert!(doc.contains(said), "{key}: {doc}");
        }
    }

    #[test]
    fn what_is_loaded_has_numbers_and_they_keep_every_rule() {
        for algorithm in ["dqn", "ddpg", "td3", "sac", "appo", "ppo"] {
            let text = format!("[environment]\nid = \"CartPole-v1\"\n[algorithm]\nname = \"{algorithm}\"\n[actor]\ncount = \"auto\"\n");
            let loaded = Config::parse(&text, "preset.toml", &["learner.batch_size=auto".into()]).unwrap();
            assert!(loaded.config.actor.count >= 1);
            assert_eq!(Config::parse(&loaded.config.to_toml(), "again.toml", &[]).unwrap().config, loaded.config);
        }
    }

    #[test]
    fn a_batch_that_cannot_have_a_fragment_of_each_learner_is_refused_and_none_beyond_the_largest_is_chosen() {
        for algorithm in ["appo", "ppo"] {
            let text = format!("environment.id = \"CartPole-v1\"\nalgorithm.name = \"{algorithm}\"\nfragments.length_steps = 4096\n");
            let batch_size = |learners: usize| {
                let overrides = [format!("learner.count={learners}"), "learner.batch_size=auto".to_owned()];
                Config::parse(&text, "preset.toml", &overrides).map(|loaded| loaded.config.learner.batch_size)
            };
            assert_eq!(batch_size(16).unwrap(), 65_536);
            let refused = batch_size(17).unwrap_err();
            assert!(refused.to_string().contains("lower fragments.length_steps or learner.count"), "{refused}");
        }
    }

    #[test]
    fn a_number_that_the_machine_does_not_decide_is_not_left_to_it() {
        let refused = Config::parse("[environment]\nid = \"CartPole-v1\"\n", "preset.toml", &["learner.count=auto".into()]).unwrap_err();
        assert!(refused.to_string().contains("an integer from 1 to 32"), "{refused}");
        let unknown = Config::parse("[environment]\nid = \"CartPole-v1\"\n", "preset.toml", &["actor.count=automatic".into()]).unwrap_err();
        assert!(unknown.to_string().contains("or \"auto\""), "{unknown}");
    }
}
