//! What a plan says to whoever asks for more processes than pay.

use crate::config::schema::Split;
use crate::config::{Config, LEAST_TRANSITIONS_PER_LEARNER};
use crate::readable::counted;

/// Remarks on the numbers of processes that `config` asks for, on this many cores; none when they are well chosen.
pub(super) fn remarks(config: &Config, cores: usize) -> Vec<String> {
    let (actors, learners) = (config.actor.count, config.learner.processes());
    let mut remarks = Vec::new();
    let (environments, fragments) = (actors.max(1) * config.actor.environments, config.fragments_per_batch());
    if config.algorithm.name == "ppo" && environments > fragments {
        remarks.push(format!(
            "{environments} environments complete more than the {} of a batch, so that some are learned from a batch later; raise \
             learner.batch_size to {}, or lower actor.environments or actor.count",
            counted(fragments, "fragment"),
            environments * config.fragments.length_steps
        ));
    }
    if actors == 0 {
        return remarks;
    }
    if config.learner.split != Split::None {
        if learners > cores && config.learner.device_of(0) == config.learner.device_of(1) {
            remarks
                .push(format!("the two halves of learner.split take turns on {}; one learner does as much there", counted(cores, "core")));
        }
    } else if learners > cores {
        remarks.push(format!(
            "{learners} learners on {} wait for each other's turn; more than learner.count={cores} do not pay here",
            counted(cores, "core")
        ));
    }
    let each = config.transitions_per_learner(learners);
    if config.learner.split == Split::None && learners > 1 && each < LEAST_TRANSITIONS_PER_LEARNER {
        remarks.push(format!(
            "each of {learners} learners computes {each} transitions of an update; with less than {LEAST_TRANSITIONS_PER_LEARNER} they hardly \
             do more updates than one: set learner.count=1, or raise learner.batch_size to learn from more at once"
        ));
    }
    if config.replay.samples_per_insert.is_none() {
        if actors + learners > cores {
            remarks.push(format!(
                "{} and {} compute all the time, on {}; with replay.samples_per_insert actors wait when learners cannot follow",
                counted(actors, "actor"),
                counted(learners, "learner"),
                counted(cores, "core")
            ));
        }
    } else if actors > cores {
        remarks.push(format!(
            "{actors} actors on {} pay only where environments sleep, such as a simulator elsewhere",
            counted(cores, "core")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(change: impl FnOnce(&mut Config)) -> String {
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
        assert_eq!(about(|config| (config.actor.count, config.learner.count) = (0, 2)), "", "one process computes, whatever the keys say");
    }

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
        assert!(late.contains("16 environments") && late.contains("8 fragments") && late.contains("batch_size to 512"), "{late}");
    }

    #[test]
    fn learners_beyond_the_cores_or_with_little_to_compute_are_named() {
        let many = about(|config| (config.learner.count, config.learner.batch_size) = (4, 1024));
        assert_eq!(many, "4 learners on 2 cores wait for each other's turn; more than learner.count=2 do not pay here");
        let small = about(|config| (config.learner.count, config.learner.batch_size) = (2, 64));
        assert!(small.contains("each of 2 learners computes 32 transitions") && small.contains("learner.count=1"), "{small}");
    }

    #[test]
    fn actors_beyond_the_cores_are_named_if_they_compute() {
        let free = about(|config| (config.actor.count, config.replay.samples_per_insert) = (2, None));
        assert!(free.contains("2 actors and 1 learner compute all the time, on 2 cores"), "{free}");
        let limited = about(|config| config.actor.count = 3);
        assert_eq!(limited, "3 actors on 2 cores pay only where environments sleep, such as a simulator elsewhere");
    }
}
