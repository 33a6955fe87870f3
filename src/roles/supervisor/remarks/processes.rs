//! Remarks on processes: more learners or actors than pay on the cores.

use crate::config::schema::Split;
use crate::config::{Config, LEAST_TRANSITIONS_PER_LEARNER};
use crate::readable::counted;

/// More learners than cores take turns.
pub(super) fn learners_in_turns(config: &Config, cores: usize) -> Option<String> {
    let learners = config.learner.processes();
    if learners <= cores {
        return None;
    }
    let on_cores = counted(cores, "core");
    if config.learner.split == Split::None {
        return Some(format!(
            "{learners} learners on {on_cores} wait for each other's turn; more than learner.count={cores} do not pay here"
        ));
    }
    (config.learner.device_of(0) == config.learner.device_of(1))
        .then(|| format!("the two halves of learner.split take turns on {on_cores}; one learner does as much there"))
}

/// Learners may have too little to compute to be faster together than one alone.
pub(super) fn small_shares(config: &Config) -> Option<String> {
    let learners = config.learner.processes();
    let each = config.transitions_per_learner(learners);
    (config.learner.split == Split::None && learners > 1 && each < LEAST_TRANSITIONS_PER_LEARNER).then(|| {
        format!(
            "each of {learners} learners computes {each} transitions of an update; with less than {LEAST_TRANSITIONS_PER_LEARNER} \
             they hardly do more updates than one: set learner.count=1, or raise learner.batch_size to learn from more at once"
        )
    })
}

/// More actors than there are cores for take turns, unless their environments are known to sleep.
pub(super) fn actors_in_turns(config: &Config, cores: usize) -> Option<String> {
    if config.environment.step_delay_us > 0 {
        return None;
    }
    let actors = config.actor.count;
    let learners = config.learner.processes();
    let on_cores = counted(cores, "core");
    if config.replay.samples_per_insert.is_some() {
        return (actors > cores)
            .then(|| format!("{actors} actors on {on_cores} pay only where environments sleep, such as a simulator elsewhere"));
    }
    (actors + learners > cores).then(|| {
        format!(
            "{} and {} compute all the time, on {on_cores}; with replay.samples_per_insert actors wait when learners cannot follow",
            counted(actors, "actor"),
            counted(learners, "learner")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::about;

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
        let sleeping = about(|config| (config.actor.count, config.environment.step_delay_us) = (3, 1_000));
        assert_eq!(sleeping, "", "the configuration says that they sleep");
    }
}
