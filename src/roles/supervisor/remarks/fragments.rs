//! Remarks on fragments: those that wait for later batches, and those that a time limit cuts short.

use crate::config::{Config, RowKind, multiple_near};
use crate::readable::{counted, grouped};

/// Batches with a smaller share of their steps differ from what a configuration says.
const LEAST_SHARE_OF_A_BATCH: f64 = 0.8;

/// Fragments wait for later batches if there are more environments than a batch has fragments. `keys` name the keys
/// that decide how many environments there are.
pub(in crate::roles::supervisor) fn fragments_that_wait(config: &Config, environments: usize, keys: &str) -> Option<String> {
    if config.row_kind() != RowKind::Fragments || environments <= config.fragments_per_batch() {
        return None;
    }
    let fragments = config.fragments_per_batch();
    let batches = environments.div_ceil(fragments) - 1;
    let told = format!(
        "{environments} environments complete more than the {} of a batch, so that some are learned from {} later",
        counted(fragments, "fragment"),
        if batches == 1 { "a batch".to_owned() } else { format!("up to {batches} batches") },
    );
    let mut larger = config.clone();
    let batch_size = environments.next_multiple_of(config.learner.count) * config.fragments.length_steps;
    larger.learner.batch_size = batch_size;
    let mut remedy = format!("raise learner.batch_size to {batch_size}");
    if config.learns_in_parts() {
        // Parts keep about their size, so that each step has about as many updates as before.
        let parts = config.minibatches_near(config.algorithm.minibatches * batch_size / config.learner.batch_size);
        larger.algorithm.minibatches = parts;
        remedy += &format!(" and algorithm.minibatches to {parts}");
    }
    if let Some(least) = raise_capacity(&mut larger) {
        remedy += &format!(" and fragments.capacity to {least}");
    }
    // What would be refused, such as a batch beyond the largest, is not advised.
    let remedy = if larger.validate().is_ok() { format!("{remedy}, or lower {keys}") } else { format!("lower {keys}") };
    if !config.learns_from_old_policies() {
        return Some(format!("{told}; {remedy}"));
    }
    let behind = batches * config.fragments.uses;
    let most = config.fragments.max_policy_lag_updates;
    (behind as u64 > most)
        .then(|| format!("{told}, {behind} updates, and are dropped where fragments.max_policy_lag_updates is {most}; {remedy}"))
}

/// Raise `fragments.capacity` of `changed` to the least that it may be, which is returned, if it is set to less.
fn raise_capacity(changed: &mut Config) -> Option<usize> {
    let least = changed.least_fragments();
    let capacity = changed.fragments.capacity.as_mut().filter(|capacity| **capacity < least)?;
    *capacity = least;
    Some(least)
}

/// Fragments end with episodes at the time limit of the environment, so that batches of few steps may be what fragments
/// of a length that does not fit it come to. `batch_follows` says that the batch follows from the length of fragments.
pub(in crate::roles::supervisor) fn fragments_beyond_the_limit(
    config: &Config,
    time_limit_steps: Option<u32>,
    batch_follows: bool,
) -> Option<String> {
    let limit = time_limit_steps? as usize;
    let length = config.fragments.length_steps;
    if config.row_kind() != RowKind::Fragments || limit == 0 {
        return None;
    }
    let of_an_episode = limit.div_ceil(length);
    let share = limit as f64 / (of_an_episode * length) as f64;
    (share < LEAST_SHARE_OF_A_BATCH).then(|| {
        let batch_size = config.learner.batch_size;
        let steps = (share * batch_size as f64).round() as u64;
        let fitting = limit.div_ceil(of_an_episode);
        let mut shorter = config.clone();
        shorter.fragments.length_steps = fitting;
        let mut remedy = format!("; use fragments.length_steps={fitting}");
        let near = multiple_near(config, fitting * config.learner.count);
        if near != batch_size && !batch_follows {
            shorter.learner.batch_size = near;
            remedy += &format!(" and learner.batch_size={near}");
        }
        if let Some(least) = raise_capacity(&mut shorter) {
            remedy += &format!(" and fragments.capacity={least}");
        }
        // What would be refused is not advised. A batch that follows is not known here.
        if !batch_follows && shorter.validate().is_err() {
            remedy.clear();
        }
        format!(
            "fragments.length_steps {} does not divide the time limit of {} steps, at which a fragment ends: where episodes come to it, \
             a batch has about {} of the {} steps of learner.batch_size, and there are more updates{remedy}",
            grouped(length as u64),
            grouped(limit as u64),
            grouped(steps),
            grouped(batch_size as u64),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::remarks;
    use super::super::tests::about;
    use super::*;

    #[test]
    fn environments_that_complete_more_than_a_batch_of_ppo_are_named() {
        let ppo = |environments| {
            about(|config| {
                config.algorithm.name = "ppo".into();
                (config.fragments.length_steps, config.learner.batch_size) = (32, 256);
                (config.actor.count, config.actor.environments) = (2, environments);
            })
        };
        assert_eq!(ppo(4), "");
        let late = ppo(8);
        assert!(
            late.contains("16 environments")
                && late.contains("8 fragments")
                && late.contains("batch_size to 512 and algorithm.minibatches to 8, "),
            "{late}"
        );
        assert!(late.contains("from a batch later") && ppo(64).contains("up to 15 batches later"), "{}", ppo(64));
    }

    #[test]
    fn a_batch_that_takes_the_fragments_of_all_environments_is_one_that_all_learners_can_share() {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = "ppo".into();
        (config.fragments.length_steps, config.actor.environments) = (32, 8);
        (config.learner.count, config.learner.batch_size) = (3, 96);
        let late = remarks(&config, 4).join("\n");
        assert!(late.contains("raise learner.batch_size to 288 and algorithm.minibatches to 12, or lower"), "{late}");
        config.learner.batch_size = 288;
        config.validate().unwrap();
        assert!(!remarks(&config, 4).join("\n").contains("environments complete"));
    }

    #[test]
    fn a_batch_that_is_advised_for_fragments_that_wait_keeps_every_rule() {
        let advised = |algorithm: &str, change: fn(&mut Config)| {
            let mut config = Config::for_environment("CartPole-v1");
            config.algorithm.name = algorithm.into();
            change(&mut config);
            config.validate().unwrap();
            let told = remarks(&config, 64).join("\n");
            let (raise, _) = told.split_once("; raise ").and_then(|(_, remedy)| remedy.split_once(", or lower")).expect(&told);
            let overrides: Vec<String> = raise.split(" and ").map(|change| change.replace(" to ", "=")).collect();
            Config::parse(&config.to_toml(), "advised", &overrides).unwrap();
            raise.to_owned()
        };
        let by_epochs = advised("ppo", |config| (config.algorithm.epochs, config.actor.environments) = (5, 5));
        assert_eq!(by_epochs, "learner.batch_size to 160 and algorithm.minibatches to 12");
        let by_interval = advised("ppo", |config| (config.learner.publish_interval_updates, config.actor.environments) = (16, 5));
        assert_eq!(by_interval, by_epochs);
        let by_capacity = advised("appo", |config| {
            (config.fragments.capacity, config.fragments.uses, config.actor.environments) = (Some(450), 16, 48);
        });
        assert_eq!(by_capacity, "learner.batch_size to 1536 and fragments.capacity to 480");
    }

    #[test]
    fn environments_whose_fragments_appo_would_drop_are_named() {
        let appo = |actors| {
            about(|config| {
                config.algorithm.name = "appo".into();
                (config.fragments.length_steps, config.learner.batch_size, config.fragments.uses) = (32, 256, 16);
                (config.actor.count, config.actor.environments, config.fragments.max_policy_lag_updates) = (actors, 8, 100);
            })
        };
        assert_eq!(appo(2), "");
        let dropped = appo(16);
        assert!(dropped.contains("up to 15 batches later, 240 updates, and are dropped"), "{dropped}");
    }

    #[test]
    fn fragments_that_a_time_limit_cuts_short_are_named() {
        let of_batch = |length, batch_size, limit| {
            let mut config = Config::for_environment("Pendulum-v1");
            config.algorithm.name = "ppo".into();
            (config.fragments.length_steps, config.learner.batch_size) = (length, batch_size);
            fragments_beyond_the_limit(&config, limit, false).unwrap_or_default()
        };
        let ppo = |length, limit| of_batch(length, 4 * length, limit);
        let long = ppo(1_000, Some(200));
        assert!(long.contains("1,000 does not divide the time limit of 200 steps"), "{long}");
        assert!(long.contains("about 800 of the 4,000 steps") && long.ends_with("fragments.length_steps=200"), "{long}");
        let between = ppo(150, Some(200));
        assert!(between.contains("about 400 of the 600 steps") && between.ends_with("fragments.length_steps=100"), "{between}");
        let with_batch = of_batch(128, 2_048, Some(200));
        assert!(with_batch.ends_with("use fragments.length_steps=100 and learner.batch_size=2100"), "{with_batch}");
        for (length, limit) in [(200, Some(200)), (100, Some(200)), (32, Some(500)), (1_000, None)] {
            assert_eq!(ppo(length, limit), "", "{length} {limit:?}");
        }
        let mut appo = Config::for_environment("CartPole-v1");
        appo.algorithm.name = "appo".into();
        (appo.fragments.length_steps, appo.learner.batch_size, appo.fragments.capacity) = (320, 2_560, Some(80));
        appo.validate().unwrap();
        let with_capacity = fragments_beyond_the_limit(&appo, Some(500), false).unwrap();
        let advised = ["fragments.length_steps=250", "learner.batch_size=2750", "fragments.capacity=83"];
        assert!(with_capacity.ends_with(&format!("use {}", advised.join(" and "))), "{with_capacity}");
        Config::parse(&appo.to_toml(), "advised", &advised.map(str::to_owned)).unwrap();
        let transitions = fragments_beyond_the_limit(&Config::for_environment("Pendulum-v1"), Some(1), false);
        assert_eq!(transitions, None, "DQN has no fragments");
    }
}
