//! Numbers that are chosen before the run begins: for the machine, where `"auto"` says so, and for PPO where nobody wrote a configuration.
//! What is written down of the run has the numbers.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

use super::by_algorithm::Rows;
use super::key::Key;
use super::rules::{RULES, Rule};
use super::schema::Config;
use crate::adaptation::initial::{self, BatchKind};

/// How such a number is spelled.
pub(super) const AUTO: &str = "auto";

const ACTORS: &str = "actor.count";
const BATCH_SIZE: &str = "learner.batch_size";
/// The keys that may be left to the machine.
pub(super) const KEYS: [&str; 2] = [ACTORS, BATCH_SIZE];

/// Choose the values of the keys with these paths.
pub(super) fn choose(config: &mut Config, paths: &BTreeSet<&str>) {
    // Of the cores that this process may use, and of the time that its control group has on them.
    let cores = available_parallelism().map_or(1, usize::from);
    choose_on(config, paths, cores);
}

fn choose_on(config: &mut Config, paths: &BTreeSet<&str>, cores: usize) {
    let learners = config.learner.count;
    if paths.contains(BATCH_SIZE) {
        let learning = match config.rows() {
            Rows::Fragments => BatchKind::Fragments { length_steps: config.fragments.length_steps },
            Rows::Transitions if config.learns_values_alone() => BatchKind::Values,
            Rows::Transitions => BatchKind::ActorCritic,
        };
        config.learner.batch_size = initial::batch_size(learning, learners, Key::most_of(BATCH_SIZE));
    }
    if paths.contains(ACTORS) {
        let environments_sleep = config.environment.step_delay_us > 0;
        let chosen = initial::actors(cores, config.learner.processes(), environments_sleep);
        config.actor.count = config.most_actors_with(config.most_environments(), chosen.min(Key::most_of(ACTORS)));
    }
}

/// Where nobody wrote a configuration: have each batch of PPO take all fragments that are completed at once, since those that it leaves are
/// old when the next one learns from them. Its parts stay as large, so that as many updates are made of each step. Where a rule of the keys
/// would be broken, all stays as it is.
pub(super) fn let_ppo_learn_from_new_fragments(config: &mut Config) {
    let at_once = config.actor.count.max(1) * config.actor.environments * config.fragments.length_steps;
    let part = config.learner.batch_size / config.algorithm.minibatches;
    let mut larger = config.clone();
    (larger.learner.batch_size, larger.algorithm.minibatches) = (at_once, at_once / part);
    let is_within_limits = at_once <= Key::most_of(BATCH_SIZE) && larger.algorithm.minibatches <= Key::most_of("algorithm.minibatches");
    let breaks = |rule: &Rule| rule.concerns(&larger.algorithm.name) && (rule.violation)(&larger).is_some();
    if config.learns_in_parts()
        && at_once > config.learner.batch_size
        && at_once.is_multiple_of(part)
        && is_within_limits
        && !RULES.iter().any(breaks)
    {
        *config = larger;
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
    fn what_is_loaded_has_numbers_and_they_keep_every_rule() {
        for algorithm in ["dqn", "ddpg", "td3", "sac", "appo", "ppo"] {
            let text = format!("[environment]\nid = \"CartPole-v1\"\n[algorithm]\nname = \"{algorithm}\"\n[actor]\ncount = \"auto\"\n");
            let loaded = Config::parse(&text, "preset.toml", &["learner.batch_size=auto".into()]).unwrap();
            assert!(loaded.config.actor.count >= 1);
            assert_eq!(Config::parse(&loaded.config.to_toml(), "again.toml", &[]).unwrap().config, loaded.config);
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
