//! What a plan says of a configuration that can run and is hardly meant so: more processes than pay, fragments that
//! wait, targets that hardly follow, keys of priorities that nobody draws by, noise that differs between environments
//! where there is one, a run that ends before it learns, or that is to go on and writes nothing to go on from.

mod checkpoints;
mod fragments;
mod processes;
mod updates;

pub(super) use checkpoints::{few_checkpoints_fit, killed_as_one};
pub(super) use fragments::{fragments_beyond_the_limit, fragments_that_wait};
pub(super) use updates::next_update;

use self::checkpoints::no_checkpoint;
use self::processes::{actors_in_turns, learners_in_turns, small_shares};
use self::updates::{no_update, slow_target, unused_updates};
use crate::config::{Config, Loaded};
use crate::readable::grouped;

/// Remarks on what `config` asks for, on this many cores; none where it is well chosen.
pub(super) fn remarks(config: &Config, cores: usize) -> Vec<String> {
    let environments = config.actor.count.max(1) * config.actor.environments;
    let of_all_runs = [
        fragments_that_wait(config, environments, "actor.environments or actor.count"),
        slow_target(config),
        no_update(config).or_else(|| unused_updates(config)),
        no_checkpoint(config),
        spread_over_one_environment(config),
    ];
    let of_processes = if config.is_synchronous() {
        [None, None, None]
    } else {
        [learners_in_turns(config, cores), small_shares(config), actors_in_turns(config, cores)]
    };
    of_all_runs.into_iter().chain(of_processes).flatten().collect()
}

/// The spread leaves the noise of the first environment as it is. Where that is the only one, only actors that somebody
/// attaches have others.
fn spread_over_one_environment(config: &Config) -> Option<String> {
    let is_alone = config.most_actors() * config.most_environments() == 1;
    (config.algorithm.exploration_noise_spread != 1.0 && is_alone).then(|| {
        "algorithm.exploration_noise_spread has no effect in the only environment; set actor.environments or actor.count to more than 1"
            .to_owned()
    })
}

/// An environment of which no time limit is known may have an episode that never ends, and whoever evaluates in it waits.
pub(super) fn no_time_limit(config: &Config) -> String {
    format!(
        "no time limit of the environment is known: an evaluation plays an episode that does not end by itself for the {} steps of \
         evaluator.episode_limit_steps; set that, or return gymnasium.wrappers.TimeLimit(environment, STEPS) from a function",
        grouped(u64::from(config.evaluator.episode_limit_steps))
    )
}

/// A file that sets a key of priorities may take an algorithm to draw by them that does not do so by default.
pub(super) fn priorities_at_rest(loaded: &Loaded) -> Option<String> {
    let by_priority = "replay.prioritized=true";
    let (key, _) = loaded.idle_keys().find(|&(_, remedy)| remedy == by_priority)?;
    (!loaded.is_set("replay.prioritized")).then(|| {
        let algorithm = &loaded.config.algorithm.name;
        format!("{key} has no effect: {algorithm} draws transitions uniformly by default; leave it out, or set {by_priority}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn about(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::for_environment("CartPole-v1");
        config.learner.batch_size = 256;
        change(&mut config);
        remarks(&config, 2).join("\n")
    }

    #[test]
    fn what_pays_is_not_remarked_on() {
        assert_eq!(about(|_| {}), "");
        assert_eq!(about(|config| config.learner.count = 2), "");
        assert_eq!(about(|config| config.actor.count = 2), "");
        let one_process = about(|config| {
            (config.actor.count, config.learner.count) = (0, 2);
            config.checkpoint.synchronous_interval_steps = Some(10_000);
        });
        assert_eq!(one_process, "", "whatever the keys say of learners");
    }

    #[test]
    fn a_spread_of_noise_is_named_where_there_is_one_environment_and_will_be_no_other() {
        let with_spread = |change: fn(&mut Config)| {
            about(|config| {
                (config.algorithm.name, config.algorithm.exploration_noise_spread) = ("td3".into(), 4.0);
                config.actor.environments = 1;
                change(config);
            })
        };
        let alone = "algorithm.exploration_noise_spread has no effect in the only environment; \
                     set actor.environments or actor.count to more than 1";
        assert_eq!(with_spread(|_| {}), alone);
        for changed in [
            with_spread(|config| config.algorithm.exploration_noise_spread = 1.0),
            with_spread(|config| config.actor.environments = 2),
            with_spread(|config| config.actor.count = 2),
            with_spread(|config| (config.adaptation.enabled, config.adaptation.most_environments) = (true, Some(4))),
        ] {
            assert_eq!(changed, "");
        }
    }

    #[test]
    fn keys_of_priorities_in_a_file_are_named_where_the_algorithm_draws_uniformly_and_nobody_says_so() {
        let told = |name: &str, more: &str| {
            let text = format!("environment.id = \"Pendulum-v1\"\nalgorithm.name = \"{name}\"\nreplay.alpha = 0.7\n{more}");
            priorities_at_rest(&Config::parse(&text, "task.toml", &[]).unwrap())
        };
        for name in ["ddpg", "td3", "sac"] {
            let at_rest = told(name, "").unwrap();
            assert!(at_rest.starts_with(&format!("replay.alpha has no effect: {name} draws")), "{at_rest}");
            assert_eq!([told(name, "replay.prioritized = false"), told(name, "replay.prioritized = true")], [None, None]);
        }
        assert_eq!([told("dqn", ""), told("mine", "")], [None, None]);
    }
}
