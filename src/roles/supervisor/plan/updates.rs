//! How many updates a run makes for each environment step. No key has that number: it follows from two of them.

use crate::adaptation::Ranges;
use crate::config::Config;
use crate::config::schema::Split;
use crate::readable::short;
use crate::replay::RateLimiter;

/// The updates for each environment step, in a run that tries the settings in `ranges`; `None` if no ratio is held, or
/// if it is one of fragments, each of which is taken once.
pub(super) fn updates_for_each_step(config: &Config, limiter: RateLimiter, ranges: Option<Ranges>) -> Option<String> {
    let ratio = limiter.samples_per_insert.filter(|_| !limiter.takes_once)?;
    let batch_size = config.learner.batch_size;
    let updates = ratio / batch_size as f64;
    let (updates, steps) = if updates >= 1.0 {
        (short(updates), "each environment step".to_owned())
    } else {
        ("1".to_owned(), format!("every {} environment steps", short(1.0 / updates)))
    };
    // The other half learns from batches that nobody counts.
    let whose = if config.learner.split == Split::None { "" } else { " of the critics" };
    let varies = ranges.is_some_and(|ranges| !ranges.batch_size.is_fixed()) && !config.holds_updates();
    let otherwise = if varies { ", more with smaller batches and fewer with larger ones" } else { "" };
    Some(format!("{updates}{whose} for {steps} (replay.samples_per_insert {ratio} / learner.batch_size {batch_size}){otherwise}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::{Hold, Range};
    use crate::algorithms::registry;
    use crate::environments;

    fn told(name: &str, ranges: Option<Ranges>, change: impl FnOnce(&mut Config)) -> Option<String> {
        let environment = if name == "sac" { "Pendulum-v1" } else { "CartPole-v1" };
        let mut config = Config::for_environment(environment);
        config.algorithm.name = name.into();
        change(&mut config);
        let algorithm = registry::build(&config, &environments::registry::spec(environment).unwrap()).unwrap();
        updates_for_each_step(&config, algorithm.experience().limiter(), ranges)
    }

    #[test]
    fn the_number_is_the_ratio_over_the_batch_of_all_learners() {
        for (ratio, batch_size, expected) in [
            (64.0, 64, "1 for each environment step (replay.samples_per_insert 64 / learner.batch_size 64)"),
            (96.0, 64, "1.5 for each environment step (replay.samples_per_insert 96 / learner.batch_size 64)"),
            (16.0, 256, "1 for every 16 environment steps (replay.samples_per_insert 16 / learner.batch_size 256)"),
            (0.5, 512, "1 for every 1.02k environment steps (replay.samples_per_insert 0.5 / learner.batch_size 512)"),
        ] {
            for (learners, n_step) in [(1, 1), (2, 1), (1, 3)] {
                let found = told("dqn", None, |config| {
                    (config.replay.samples_per_insert, config.learner.batch_size) = (Some(ratio), batch_size);
                    (config.learner.count, config.algorithm.n_step) = (learners, n_step);
                });
                assert_eq!(found.unwrap(), expected, "{learners} learners, {n_step} steps");
            }
        }
    }

    #[test]
    fn of_two_halves_the_critics_make_that_many() {
        let halves = told("sac", None, |config| config.learner.split = Split::ActorCritic).unwrap();
        assert!(halves.starts_with("1 of the critics for every 2 environment steps ("), "{halves}");
    }

    #[test]
    fn nothing_is_told_where_no_ratio_is_held_and_of_fragments() {
        assert_eq!(told("dqn", None, |config| config.replay.samples_per_insert = None), None);
        assert_eq!(["ppo", "appo"].map(|name| told(name, None, |_| {})), [None, None]);
    }

    #[test]
    fn a_run_that_tries_other_batches_says_what_these_change_unless_it_holds_its_updates() {
        let batches = |batch_size| Some(Ranges { actors: Range::fixed(1), environments: Range { low: 1, high: 32 }, batch_size });
        let several = batches(Range { low: 64, high: 256 });
        let varying = told("dqn", several, |_| {}).unwrap();
        assert!(varying.ends_with("learner.batch_size 64), more with smaller batches and fewer with larger ones"), "{varying}");
        for (ranges, hold) in [(batches(Range::fixed(64)), Hold::SamplesPerInsert), (several, Hold::UpdatesPerStep)] {
            let held = told("dqn", ranges, |config| config.adaptation.hold = hold).unwrap();
            assert!(held.ends_with("learner.batch_size 64)"), "{held}");
        }
    }
}
