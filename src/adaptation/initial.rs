//! The setting to begin with if the configuration says `auto`: a guess that needs no measurement.

/// What an algorithm learns from, which decides the usual size of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Transitions drawn again and again, with one network to train (DQN).
    Values,
    /// Transitions drawn again and again, with a policy and critics to train (DDPG, TD3, SAC).
    ActorCritic,
    /// Fragments of this many steps, each taken once (APPO, PPO).
    Fragments {
        /// Steps of one fragment.
        length_steps: usize,
    },
}

/// Transitions of a batch that each of several learners should have. With fewer, they hardly do more updates than one:
/// exchanging gradients takes the time that they save. Measured: docs/performance.md.
pub const LEAST_TRANSITIONS_PER_LEARNER: usize = 128;
/// Actors for every core if their environments mostly sleep. Many more would be no slower, but each is a process with
/// memory of its own.
const SLEEPING_ACTORS_PER_CORE: usize = 4;

/// Actors to begin with: one for every core that no learner has, since two processes on a core only take turns.
///
/// An environment of which nothing is known is taken to compute. If it sleeps after all, learners wait, which is seen
/// after a few windows. The opposite mistake is harder to see: too many actors would slow learners down and look
/// busy.
pub fn actors(usable_cores: usize, learners: usize, environments_sleep: bool) -> usize {
    if environments_sleep {
        return usable_cores.max(1) * SLEEPING_ACTORS_PER_CORE;
    }
    usable_cores.saturating_sub(learners).max(1)
}

/// The batch to begin with, in transitions: what the algorithms' authors and our presets use, since that is known to
/// learn, and more only if several learners would have too little each. It is at most `most`, if that is possible.
///
/// The tuner makes the batch larger if that is faster. Its range has to keep it in sizes with which the algorithm
/// learns.
pub fn batch_size(kind: BatchKind, learners: usize, most: usize) -> usize {
    let usual = match kind {
        BatchKind::Values => 64,
        BatchKind::ActorCritic | BatchKind::Fragments { .. } => 256,
    };
    let for_all = if learners > 1 { usual.max(LEAST_TRANSITIONS_PER_LEARNER * learners) } else { usual };
    let indivisible = match kind {
        BatchKind::Fragments { length_steps } => length_steps,
        BatchKind::Values | BatchKind::ActorCritic => 1,
    };
    let unit = (indivisible * learners).max(1);
    for_all.next_multiple_of(unit).min((most / unit).max(1) * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_have_the_cores_that_learners_leave_and_at_least_one_process() {
        let count = |cores, learners| actors(cores, learners, false);
        assert_eq!([count(1, 1), count(2, 1), count(8, 1), count(32, 2), count(2, 4)], [1, 1, 7, 30, 1]);
        assert_eq!(actors(2, 1, true), 8);
    }

    #[test]
    fn a_batch_is_the_usual_one_unless_learners_would_have_too_little_each() {
        let chosen = |kind, learners| batch_size(kind, learners, 65_536);
        assert_eq!(chosen(BatchKind::Values, 1), 64);
        assert_eq!(chosen(BatchKind::Values, 4), 512);
        assert_eq!(chosen(BatchKind::ActorCritic, 1), 256);
        let fragments = BatchKind::Fragments { length_steps: 100 };
        assert_eq!([1, 3].map(|learners| chosen(fragments, learners)), [300, 600]);
        assert_eq!(batch_size(fragments, 3, 500), 300, "no more than a batch may have");
        assert_eq!([3, 8].map(|learners| batch_size(BatchKind::Values, learners, 250)), [249, 248], "and the same for each learner");
    }
}
