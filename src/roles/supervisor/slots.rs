//! The slots of the process table: who gets which.

use std::ops::Range;

use super::plan::Placement;
use crate::config::Config;
use crate::segment::processes::Role;

/// One process of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProcess {
    /// Slot in the process table.
    pub slot: usize,
    /// What it does.
    pub role: Role,
    /// Number among its kind.
    pub number: usize,
    /// Cores it is bound to; empty leaves it to the kernel.
    pub cores: Vec<usize>,
}

impl PlannedProcess {
    /// Role and number, for people.
    pub fn name(&self) -> String {
        format!("{} {}", self.role.name(), self.number)
    }

    /// Whether a plan names the two together: learners, of which each has a core or a half of its own, are named
    /// one by one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.role != Role::Learner && (self.role, &self.cores) == (other.role, &other.cores)
    }
}

/// How many actors there are, and how many environments each has, as an actor knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActorSetting {
    /// Number of actors.
    pub(super) actors: usize,
    /// Environments of each actor.
    pub(super) environments: usize,
}

/// How many processes of each kind there are at most. Slots come in this order: actors, attached actors, learners,
/// evaluator, visualizer; the first two have staging areas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slots {
    /// One process acts, learns and evaluates in turn, in the slot of an actor.
    is_synchronous: bool,
    actors: usize,
    attached: usize,
    learners: usize,
    evaluators: usize,
    /// At most one.
    pub(super) visualizers: usize,
}

impl Slots {
    pub(super) fn of(config: &Config) -> Self {
        let is_synchronous = config.is_synchronous();
        let beside_one_process = |count: usize| if is_synchronous { 0 } else { count };
        Self {
            is_synchronous,
            actors: config.actor.count.max(1),
            attached: config.places_to_attach(),
            learners: beside_one_process(config.learner.processes()),
            evaluators: beside_one_process(config.evaluator.enabled.into()),
            visualizers: config.visualizer.enabled.into(),
        }
    }

    /// All of them.
    pub(super) fn count(self) -> usize {
        self.stagers() + self.learners + self.evaluators + self.visualizers
    }

    /// Number of the slots with staging areas.
    pub(super) fn stagers(self) -> usize {
        self.actors + self.attached
    }

    /// The slots of attached actors.
    pub(super) fn attached(self) -> Range<usize> {
        self.actors..self.stagers()
    }

    /// The processes that the supervisor forks, in the order in which it does, on the cores that `placement` has
    /// for them.
    pub(super) fn processes(self, placement: Placement) -> Vec<PlannedProcess> {
        let of_role = |role: Role, first_slot: usize, count: usize| {
            (0..count).map(move |number| PlannedProcess { slot: first_slot + number, role, number, cores: Vec::new() })
        };
        let evaluator_slot = self.stagers() + self.learners;
        // On any core: it has the lowest priority.
        let visualizer = of_role(Role::Visualizer, evaluator_slot + self.evaluators, self.visualizers);
        if self.is_synchronous {
            return of_role(Role::Synchronous, 0, 1).chain(visualizer).collect();
        }
        let Placement { actors, learners, evaluator, .. } = placement;
        // The learners first: they take longest to set up, and the actors can begin without parameters.
        let mut cores_of_learners = learners.into_iter();
        let learners = of_role(Role::Learner, self.stagers(), self.learners)
            .map(|process| PlannedProcess { cores: cores_of_learners.next().into_iter().collect(), ..process });
        let actors = of_role(Role::Actor, 0, self.actors).map(|process| PlannedProcess { cores: actors.clone(), ..process });
        let evaluator =
            of_role(Role::Evaluator, evaluator_slot, self.evaluators).map(|process| PlannedProcess { cores: evaluator.clone(), ..process });
        learners.chain(actors).chain(evaluator).chain(visualizer).collect()
    }
}
