//! Which process runs on which cores, so that the ones that compute all the time do not push each other around.

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;

/// The cores of every process; several processes may share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// Cores of each learner.
    pub learners: Vec<Vec<usize>>,
    /// Cores of each actor.
    pub actors: Vec<Vec<usize>>,
    /// Cores of the evaluator, if there is one.
    pub evaluator: Option<Vec<usize>>,
    /// Cores of the supervisor, which sleeps most of the time.
    pub supervisor: Vec<usize>,
}

/// A process cannot be bound to the cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// No cores were given.
    #[error("a process cannot be bound to no core at all; give at least one of those in `supervisor doctor`")]
    NoCores,
    /// The number is beyond what the kernel's mask holds.
    #[error("core {core} is beyond the {limit} cores of an affinity mask; use those in `supervisor doctor`")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// Cores that a mask holds.
        limit: usize,
    },
    /// The kernel refused.
    #[error(
        "the kernel refused to bind this process to the cores {cores:?} ({errno}); use those in `supervisor doctor`, or set machine.affinity to false"
    )]
    Refused {
        /// The cores.
        cores: Vec<usize>,
        /// Its reason.
        errno: Errno,
    },
}

/// Spreads processes over `cores`, which are listed in the order of preference.
///
/// Every learner gets a core of its own as long as one is left for the others; actors spread evenly over the rest; the evaluator takes what is
/// free, or else the least crowded core that no learner computes on; the supervisor may wander over all that is free, or else goes where the
/// evaluator would. Without any core everything is left unbound: the lists are empty.
pub fn plan(cores: &[usize], actors: usize, learners: usize, has_evaluator: bool) -> Assignment {
    let needs_rest = actors > 0 || has_evaluator;
    let most_for_learners = if needs_rest && cores.len() > 1 { cores.len() - 1 } else { cores.len() };
    let (for_learners, rest) = cores.split_at(learners.min(most_for_learners));
    let rest = if rest.is_empty() { cores } else { rest };

    let mut crowd = vec![0usize; rest.len()];
    let mut take = || {
        let index = (0..crowd.len()).min_by_key(|&index| crowd[index])?;
        crowd[index] += 1;
        Some(rest[index])
    };
    let actors: Vec<Vec<usize>> = (0..actors).map(|_| Vec::from_iter(take())).collect();
    let evaluator = has_evaluator.then(|| Vec::from_iter(take()));
    let free: Vec<usize> = rest
        .iter()
        .zip(&crowd)
        .filter(|&(core, &processes)| processes == 0 && !for_learners.contains(core))
        .map(|(core, _)| *core)
        .collect();
    let least_crowded = || (0..rest.len()).min_by_key(|&index| crowd[index]).map(|index| rest[index]);
    Assignment {
        learners: (0..learners).map(|learner| for_learners.iter().cycle().nth(learner).copied().into_iter().collect()).collect(),
        actors,
        evaluator,
        supervisor: if free.is_empty() { Vec::from_iter(least_crowded()) } else { free },
    }
}

/// Binds this process, and those that it will fork, to `cores`.
///
/// # Errors
/// No core, a core that does not exist, or one that this process may not use.
pub fn bind_current_process(cores: &[usize]) -> Result<(), AffinityError> {
    if cores.is_empty() {
        return Err(AffinityError::NoCores);
    }
    let mut mask = CpuSet::new();
    for &core in cores {
        mask.set(core).map_err(|_| AffinityError::NoSuchCore { core, limit: CpuSet::count() })?;
    }
    sched_setaffinity(Pid::from_raw(0), &mask).map_err(|errno| AffinityError::Refused { cores: cores.to_vec(), errno })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn on_two_cores_the_learner_has_one_and_actor_and_evaluator_share_the_other() {
        let plan = plan(&[0, 1], 1, 1, true);
        assert_eq!(plan, Assignment { learners: vec![vec![0]], actors: vec![vec![1]], evaluator: Some(vec![1]), supervisor: vec![1] });
    }

    #[test]
    fn with_cores_to_spare_every_process_is_alone_and_the_supervisor_has_the_rest() {
        let plan = plan(&[4, 5, 6, 7, 8, 9], 2, 1, true);
        assert_eq!(
            plan,
            Assignment { learners: vec![vec![4]], actors: vec![vec![5], vec![6]], evaluator: Some(vec![7]), supervisor: vec![8, 9] }
        );
    }

    #[test]
    fn on_one_core_everything_shares_it() {
        let plan = plan(&[3], 2, 1, true);
        assert_eq!(
            plan,
            Assignment { learners: vec![vec![3]], actors: vec![vec![3], vec![3]], evaluator: Some(vec![3]), supervisor: vec![3] }
        );
    }

    #[test]
    fn learners_share_when_they_are_too_many_and_leave_a_core_for_actors() {
        let plan = plan(&[0, 1, 2], 1, 4, false);
        assert_eq!(plan.learners, [[0], [1], [0], [1]]);
        assert_eq!(plan.actors, [[2]]);
    }

    #[test]
    fn without_other_processes_learners_may_take_every_core() {
        assert_eq!(plan(&[0, 1], 0, 2, false).learners, [[0], [1]]);
    }

    proptest! {
        #[test]
        fn every_process_gets_a_core_and_shares_it_only_when_it_must(
            core_count in 1usize..40, actors in 0usize..60, learners in 0usize..10, has_evaluator: bool,
        ) {
            let cores: Vec<usize> = (100..100 + core_count).collect();
            let plan = plan(&cores, actors, learners, has_evaluator);
            let bound: Vec<usize> = plan.learners.iter().chain(&plan.actors).chain(&plan.evaluator).flatten().copied().collect();
            prop_assert_eq!(bound.len(), learners + actors + usize::from(has_evaluator));
            prop_assert!(bound.iter().chain(&plan.supervisor).all(|core| cores.contains(core)));
            prop_assert!(!plan.supervisor.is_empty());
            let mut distinct = bound.clone();
            distinct.sort();
            distinct.dedup();
            if bound.len() <= core_count {
                prop_assert_eq!(distinct.len(), bound.len(), "processes share although there are cores enough");
            }
            let load = |core: usize| plan.actors.iter().filter(|actor| actor[0] == core).count();
            let loads: Vec<usize> = distinct.iter().map(|&core| load(core)).filter(|&load| load > 0).collect();
            if let (Some(least), Some(most)) = (loads.iter().min(), loads.iter().max()) {
                prop_assert!(most - least <= 1, "actors are spread unevenly: {loads:?}");
            }
        }
    }

    #[test]
    fn a_bound_thread_runs_on_that_core_alone() {
        // The mask belongs to a thread, so that binding one of our own leaves the other tests alone.
        let usable = super::super::Cores::detect_under(std::path::Path::new("/")).usable;
        let core = usable[usable.len() - 1];
        let bound = std::thread::spawn(move || {
            bind_current_process(&[core]).unwrap();
            super::super::Cores::detect_under(std::path::Path::new("/")).usable
        });
        assert_eq!(bound.join().unwrap(), [core]);
    }

    #[test]
    fn cores_that_do_not_exist_are_refused() {
        assert_eq!(bind_current_process(&[]), Err(AffinityError::NoCores));
        assert!(matches!(bind_current_process(&[1_000_000]), Err(AffinityError::NoSuchCore { core: 1_000_000, .. })));
    }
}
