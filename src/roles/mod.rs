//! What each process of a run does. No role uses another, except that the supervisor starts them all, that an attached actor is an actor,
//! that the synchronous trainer is made of the actor, the learner and the evaluator, and that whoever plays does so as the evaluator does.

pub mod actor;
pub mod attached;
pub mod configured_environment;
pub mod evaluator;
pub mod learner;
mod newest_parameters;
pub mod player;
pub mod run;
mod signs_of_life;
pub mod supervisor;
pub mod synchronous;
mod visualizer;

pub use run::{RoleError, Run};
