//! Remarks on updates: targets that hardly follow them, and a run that ends before the first or before any is used.

use crate::config::schema::{AlgorithmConfig, Split, TRANSITION_ALGORITHMS};
use crate::config::{Config, RowKind, TargetNetworks};
use crate::readable::grouped;

/// A target network that is further behind the learned one hardly follows it.
const SLOW_TARGET_UPDATES: f64 = 10_000.0;

/// Target networks may be far behind the learned ones.
pub(super) fn slow_target(config: &Config) -> Option<String> {
    let algorithm = config.algorithm.name.as_str();
    if !TRANSITION_ALGORITHMS.contains(&algorithm) {
        return None;
    }
    let TargetNetworks { tau, interval_updates: interval } = config.algorithm.target_networks(algorithm);
    let policy_delay_updates = AlgorithmConfig::default().policy_delay_updates;
    let as_usual = AlgorithmConfig { target_interval_updates: None, policy_delay_updates, ..config.algorithm.clone() };
    let usual = as_usual.target_networks(algorithm).interval_updates;
    let behind = interval as f64 / tau;
    (tau < 1.0 && behind > SLOW_TARGET_UPDATES).then(|| {
        let remedy = match usual as f64 / tau <= SLOW_TARGET_UPDATES {
            // TD3 has the delay of its policy as the interval where none is configured.
            true if config.algorithm.target_interval_updates.is_none() => format!("algorithm.policy_delay_updates={usual}"),
            true => format!("algorithm.target_interval_updates={usual}"),
            false => "algorithm.target_tau=0.005".to_owned(),
        };
        format!(
            "target networks that take over {tau} of the learned ones every {interval} updates are {behind:.0} updates behind; \
             {remedy} is usual"
        )
    })
}

/// The environment steps that a run takes before its first update, the keys that they follow from, and what may have it
/// come earlier.
fn first_update(config: &Config) -> (u64, &'static str, &'static str) {
    match config.row_kind() {
        RowKind::Fragments => {
            // The environments of an actor complete their first fragments at the same time, however few of them a
            // batch has.
            let first = config.actor.environments * config.fragments.length_steps;
            let (needed, keys) =
                (config.learner.batch_size, "learner.batch_size").max((first, "actor.environments * fragments.length_steps"));
            (needed as u64, keys, " unless time limits end fragments early")
        }
        RowKind::Transitions => (config.replay.min_size as u64, "replay.min_size", ""),
    }
}

/// A run may end before there is anything to learn from.
pub(super) fn no_update(config: &Config) -> Option<String> {
    let (needed, keys, unless) = first_update(config);
    let steps = config.run.stop_env_steps;
    (steps < needed).then(|| {
        format!(
            "the run ends after {} environment steps, before its first update, which needs the {} of {keys}{unless}",
            grouped(steps),
            grouped(needed)
        )
    })
}

/// A run may end before anybody uses what it learns.
pub(super) fn unused_updates(config: &Config) -> Option<String> {
    let algorithm = config.algorithm.name.as_str();
    if !TRANSITION_ALGORITHMS.contains(&algorithm) {
        return None;
    }
    let (steps, random_steps) = (config.run.stop_env_steps, config.actor.random_steps);
    if steps <= random_steps {
        let (steps, random_steps) = (grouped(steps), grouped(random_steps));
        return Some(format!(
            "actors act at random in all {steps} environment steps of the run; lower actor.random_steps from {random_steps}"
        ));
    }
    let learned_from = steps.saturating_sub(config.replay.min_size as u64) as f64;
    let updates = (learned_from * config.replay.samples_per_insert? / config.learner.batch_size as f64) as u64;
    let (learner, target) = (&config.learner, config.algorithm.target_networks(algorithm));
    let intervals = [
        ("learner.publish_interval_updates", learner.publish_interval_updates),
        ("learner.swap_interval_updates", if learner.split == Split::ActorCritic { learner.swap_interval_updates } else { 0 }),
        ("algorithm.target_interval_updates", if target.tau < 1.0 { 0 } else { target.interval_updates }),
    ];
    intervals.into_iter().find(|&(_, interval)| interval > updates).map(|(key, interval)| {
        let (updates, interval) = (grouped(updates), grouped(interval));
        format!("the run makes about {updates} updates, fewer than the {interval} of {key}, so that they are not passed on before its end")
    })
}

/// When a run that goes on with an empty replay learns again, and whether it ends before that: it has so many environment
/// steps `left`.
pub(in crate::roles::supervisor) fn next_update(config: &Config, left: u64) -> String {
    let (needed, keys, unless) = first_update(config);
    let ends_before = if left < needed { format!(", and the run ends after {}", grouped(left)) } else { String::new() };
    format!("the next update needs the {} more steps of {keys}{unless}{ends_before}", grouped(needed))
}

#[cfg(test)]
mod tests {
    use super::super::tests::about;
    use super::*;

    #[test]
    fn a_target_that_hardly_follows_and_a_run_that_never_learns_are_named() {
        let slow = about(|config| (config.algorithm.target_tau, config.algorithm.target_interval_updates) = (Some(0.005), Some(100)));
        assert!(slow.contains("0.005 of the learned ones every 100 updates are 20000 updates behind"), "{slow}");
        assert_eq!(about(|config| (config.algorithm.target_tau, config.algorithm.target_interval_updates) = (Some(1.0), Some(500))), "");
        let sac = about(|config| (config.algorithm.name, config.algorithm.target_interval_updates) = ("sac".into(), Some(100)));
        assert!(sac.contains("0.005 of the learned ones") && sac.ends_with("algorithm.target_interval_updates=1 is usual"), "{sac}");
        let tau = about(|config| (config.algorithm.name, config.algorithm.target_tau) = ("td3".into(), Some(0.0001)));
        assert!(tau.contains("20000 updates behind; algorithm.target_tau=0.005 is usual"), "{tau}");
        let delayed = |interval| {
            about(|config| {
                config.algorithm.name = "td3".into();
                (config.algorithm.policy_delay_updates, config.algorithm.target_interval_updates) = (60, interval);
            })
        };
        assert!(delayed(None).ends_with("12000 updates behind; algorithm.policy_delay_updates=2 is usual"), "{}", delayed(None));
        assert!(delayed(Some(100)).ends_with("algorithm.target_interval_updates=2 is usual"), "{}", delayed(Some(100)));
        let short = about(|config| config.run.stop_env_steps = 500);
        assert!(short.ends_with("500 environment steps, before its first update, which needs the 1,000 of replay.min_size"), "{short}");
    }

    #[test]
    fn a_run_that_ends_before_what_it_learns_is_used_is_named() {
        let random = about(|config| (config.replay.min_size, config.run.stop_env_steps) = (256, 1_000));
        assert_eq!(random, "actors act at random in all 1,000 environment steps of the run; lower actor.random_steps from 1,000");
        let with_intervals = |publish, target| {
            about(|config| {
                (config.replay.min_size, config.replay.samples_per_insert, config.run.stop_env_steps) = (1_000, Some(32.0), 9_000);
                (config.learner.publish_interval_updates, config.algorithm.target_interval_updates) = (publish, Some(target));
            })
        };
        assert_eq!(with_intervals(1_000, 1_000), "");
        let published = with_intervals(1_001, 100);
        assert!(published.contains("about 1,000 updates, fewer than the 1,001 of learner.publish_interval_updates, "), "{published}");
        assert!(with_intervals(4, 1_001).contains("the 1,001 of algorithm.target_interval_updates, "), "{}", with_intervals(4, 1_001));
    }

    #[test]
    fn a_run_that_ends_before_its_first_fragments_are_complete_is_named() {
        let ppo = |environments, steps| {
            about(|config| {
                (config.algorithm.name, config.run.stop_env_steps) = ("ppo".into(), steps);
                (config.fragments.length_steps, config.actor.environments) = (64, environments);
            })
        };
        assert_eq!(ppo(4, 256), "");
        let few = ppo(4, 255);
        let early = "before its first update, which needs the 256 of learner.batch_size unless time limits end fragments early";
        assert!(few.contains(early), "{few}");
        assert!(!ppo(16, 1_024).contains("first update"), "{}", ppo(16, 1_024));
        let many = ppo(16, 1_023);
        assert!(many.contains("which needs the 1,024 of actor.environments * fragments.length_steps"), "{many}");
    }

    #[test]
    fn a_run_that_goes_on_with_an_empty_replay_is_told_how_much_it_needs_to_learn_again() {
        let mut config = Config::for_environment("CartPole-v1");
        assert_eq!(next_update(&config, 1_000), "the next update needs the 1,000 more steps of replay.min_size");
        assert_eq!(next_update(&config, 999), "the next update needs the 1,000 more steps of replay.min_size, and the run ends after 999");
        config.algorithm.name = "ppo".into();
        (config.fragments.length_steps, config.actor.environments, config.learner.batch_size) = (64, 4, 512);
        let batch = "the next update needs the 512 more steps of learner.batch_size unless time limits end fragments early";
        assert_eq!(next_update(&config, 512), batch);
    }
}
