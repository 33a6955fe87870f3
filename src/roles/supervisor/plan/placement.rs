//! Which process of a plan runs on which cores.
//!
//! A learner computes all the time, so a process that shares its core takes half of it, and all learners wait for the
//! slowest. Binding helps if it keeps one core free for each learner and leaves at least one for the other processes.
//! If there are too few cores for that, or other programs have them or the time on them, the kernel shares them out
//! better than any plan: it sees which process waits for the rate limiter and which core is idle.

use std::collections::BTreeSet;

use super::super::neighbours::Neighbour;
use crate::config::Config;
use crate::readable::counted;
use crate::replay::RateLimiter;

/// The processes that want cores.
#[derive(Debug, Clone, Copy)]
struct Demand {
    /// Learners, each of which computes all the time.
    learners: usize,
    /// Actors.
    actors: usize,
    /// Whether a rate limiter lets actors run only as fast as learners do. Their cores are then idle for much of the
    /// time.
    actors_wait: bool,
}

/// The cores of every process. A process without cores is not bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::roles::supervisor) struct Placement {
    /// The core of each learner.
    pub(in crate::roles::supervisor) learners: Vec<usize>,
    /// The cores that all actors share.
    pub(in crate::roles::supervisor) actors: Vec<usize>,
    /// Cores of the evaluator.
    pub(in crate::roles::supervisor) evaluator: Vec<usize>,
}

/// Divides the cores, with time for `usable_cores` of them, and says how for the plan.
pub(super) fn place(
    config: &Config,
    limiter: RateLimiter,
    cores: &[usize],
    usable_cores: usize,
    neighbours: &[Neighbour],
) -> (Option<Placement>, String) {
    let demand =
        Demand { learners: config.learner.processes(), actors: config.actor.count, actors_wait: limiter.samples_per_insert.is_some() };
    let to_the_kernel = |why: String| (None, format!("every process on any core: {why}"));
    if config.is_synchronous() {
        return to_the_kernel("there is only one".into());
    }
    if !config.machine.affinity {
        return to_the_kernel("machine.affinity is false".into());
    }
    if cores.is_empty() {
        return to_the_kernel("there are more than an affinity mask has room for".into());
    }
    // Runs of other containers, which nobody here sees, would take the same cores while others are idle.
    if usable_cores < cores.len() {
        let cores = counted(cores.len(), "core");
        return to_the_kernel(format!("the control group has the time of {usable_cores} of {cores}, and others have the rest"));
    }
    if config.learner.prefetch {
        return to_the_kernel("a learner that gets its batches ready ahead (learner.prefetch) is two threads".into());
    }
    if config.computes_with_libtorch() && config.machine.torch_threads > 1 {
        return to_the_kernel(format!("libtorch computes with {} threads (machine.torch_threads)", config.machine.torch_threads));
    }
    let taken: BTreeSet<usize> = neighbours.iter().flat_map(|neighbour| &neighbour.cores).copied().collect();
    let others: Vec<String> = neighbours.iter().map(ToString::to_string).collect();
    match divide(cores, &taken, demand) {
        Some(placement) if others.is_empty() => (Some(placement), "one for each learner, the others share the rest".into()),
        Some(placement) => (Some(placement), format!("one for each learner, the others share the rest; {}", others.join(", "))),
        None if others.is_empty() || cores.len() <= demand.learners => {
            let (cores, learners) = (counted(cores.len(), "core"), counted(demand.learners, "learner"));
            to_the_kernel(format!("of {cores} none would be left beside {learners}"))
        }
        None => to_the_kernel(others.join(", ")),
    }
}

/// Divides the `usable` cores, which are listed in the order of preference, except those that are `taken`.
///
/// Each learner gets a core of its own. All other processes share the rest, however few they are: an environment may
/// start threads and processes of its own, which inherit its cores, and the kernel spreads them. If actors wait for
/// learners and are more than the rest of the cores, they may run on every core that is not taken: when they are the
/// slower side, learners wait and leave their cores idle.
///
/// Returns `None` if no core would be left beside those of the learners; then nothing should be bound.
fn divide(usable: &[usize], taken: &BTreeSet<usize>, demand: Demand) -> Option<Placement> {
    let free: Vec<usize> = usable.iter().copied().filter(|core| !taken.contains(core)).collect();
    if free.len() <= demand.learners {
        return None;
    }
    let (for_learners, rest) = free.split_at(demand.learners);
    let actors = if demand.actors > rest.len() && demand.actors_wait { &free } else { rest };
    Some(Placement { learners: for_learners.to_vec(), actors: actors.to_vec(), evaluator: rest.to_vec() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USUAL: Demand = Demand { learners: 1, actors: 1, actors_wait: true };

    fn divided(usable: &[usize], demand: Demand) -> Option<Placement> {
        divide(usable, &BTreeSet::new(), demand)
    }

    #[test]
    fn on_two_cores_the_learner_has_one_and_actor_and_evaluator_share_the_other() {
        let placement = divided(&[0, 1], USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![0], actors: vec![1], evaluator: vec![1] });
    }

    #[test]
    fn a_single_actor_may_use_every_core_that_no_learner_has_because_its_environment_may_start_others() {
        let placement = divided(&[4, 5, 6, 7], USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![4], actors: vec![5, 6, 7], evaluator: vec![5, 6, 7] });
    }

    #[test]
    fn learners_that_leave_no_core_to_the_others_are_left_to_the_kernel() {
        assert_eq!(divided(&[0, 1], Demand { learners: 2, ..USUAL }), None);
        assert_eq!(divided(&[3], USUAL), None);
        assert_eq!(divided(&[0, 1, 2], Demand { learners: 4, ..USUAL }), None);
        assert!(divided(&[0, 1, 2], Demand { learners: 2, ..USUAL }).is_some());
    }

    #[test]
    fn actors_that_wait_for_learners_may_use_the_cores_on_which_learners_wait_for_them() {
        let many = Demand { actors: 4, ..USUAL };
        assert_eq!(divided(&[0, 1], many).unwrap().actors, [0, 1]);
        assert_eq!(divided(&[0, 1], many).unwrap().evaluator, [1], "an evaluator computes all the time");
        assert_eq!(divided(&[0, 1], Demand { actors_wait: false, ..many }).unwrap().actors, [1], "these never wait");
    }

    #[test]
    fn cores_of_others_are_left_alone_or_nothing_is_bound() {
        let taken = BTreeSet::from([0, 1]);
        let placement = divide(&[0, 1, 2, 3], &taken, USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![2], actors: vec![3], evaluator: vec![3] });
        assert_eq!(divide(&[0, 1, 2, 3], &taken, Demand { actors: 9, ..USUAL }).unwrap().actors, [2, 3]);
        assert_eq!(divide(&[0, 1], &taken, USUAL), None);
        assert_eq!(divide(&[0, 1, 2], &taken, USUAL), None);
    }

    proptest! {
        #[test]
        fn a_learner_shares_its_core_with_nobody_but_actors_that_wait_for_it(
            core_count in 1usize..40, taken in prop::collection::btree_set(100usize..140, 0..40),
            actors in 1usize..60, learners in 1usize..10,
            actors_wait: bool,
        ) {
            let usable: Vec<usize> = (100..100 + core_count).collect();
            let free = usable.iter().filter(|core| !taken.contains(core)).count();
            let demand = Demand { learners, actors, actors_wait };
            let Some(placement) = divide(&usable, &taken, demand) else {
                prop_assert!(free <= learners);
                return Ok(());
            };
            prop_assert!(free > learners);
            let of_learners: BTreeSet<usize> = placement.learners.iter().copied().collect();
            prop_assert_eq!(of_learners.len(), learners, "learners share cores: {:?}", placement);
            prop_assert!(placement.evaluator.iter().all(|core| !of_learners.contains(core)));
            prop_assert_eq!(placement.evaluator.len(), free - learners);
            let everywhere = placement.actors.iter().any(|core| of_learners.contains(core));
            prop_assert_eq!(everywhere, actors_wait && actors > free - learners, "{:?}", placement);
            prop_assert!(placement.actors.len() >= free - learners);
            let all = of_learners.iter().chain(&placement.actors).chain(&placement.evaluator);
            prop_assert!(all.clone().all(|core| usable.contains(core) && !taken.contains(core)));
        }
    }
}
