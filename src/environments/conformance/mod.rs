//! A suite that any environment can be put through: does it keep the rules that [`Environment`] states?
//!
//! Learning fails quietly when an environment breaks one (a time limit reported as a termination, an episode that goes on after
//! its end, a reward that is NaN). The suite is written against the trait alone, so it takes environments of every origin.

mod error;
mod probe;
mod rules;

pub use error::ConformanceError;

use super::{Environment, EnvironmentError};

/// Put the environments that `make` makes through every rule, and name the first that is broken.
///
/// About twenty thousand steps with random actions are taken. Rules about the end of an episode and about the time limit hold
/// for the episodes that random actions reach; an environment whose episodes they never end passes them unseen.
///
/// # Errors
/// The rule that was broken, and where. An error of the environment itself is [`ConformanceError::Environment`].
pub fn check(make: impl Fn() -> Result<Box<dyn Environment>, EnvironmentError>) -> Result<(), ConformanceError> {
    let make = || make().map_err(|source| ConformanceError::Environment { during: "making it", source });
    rules::spec_is_consistent(&make)?;
    rules::step_before_reset_is_refused(&make)?;
    rules::outputs_and_time_limit_are_valid(&make)?;
    rules::same_seed_gives_same_trajectory(&make)?;
    rules::different_seeds_differ(&make)?;
    rules::unseeded_reset_continues_the_generator(&make)?;
    rules::step_after_end_is_refused(&make)?;
    rules::invalid_actions_are_refused(&make)?;
    rules::actions_outside_the_bounds_are_taken(&make)
}
