//! When a process that steps many environments says that it lives.

use std::time::Duration;

use crate::environments::{Actions, EnvironmentError, VectorEnvironment};

/// If the last step of all its environments together took longer than this, a process renews its heartbeat before the step of each of
/// them; otherwise once for all, since a heartbeat for each would make such fast steps a tenth slower. Before a reset it always does:
/// resets are rare, and may be slow where steps are not.
const LONG_FOR_ALL: Duration = Duration::from_millis(200);

/// When a process says that it lives, which depends on whether its environments took long in their last step.
pub(super) struct SignsOfLife {
    are_slow: bool,
}

impl SignsOfLife {
    /// Those for environments that have not been stepped yet, which may be slow.
    pub(super) fn new() -> Self {
        Self { are_slow: true }
    }

    /// Step all `environments`, with a `sign_of_life` before each of their resets and, where they may be slow, before each of their steps.
    pub(super) fn step(
        &self,
        environments: &mut VectorEnvironment,
        actions: Actions<'_>,
        sign_of_life: impl Fn(),
    ) -> Result<(), EnvironmentError> {
        let before_step = || {
            if self.are_slow {
                sign_of_life();
            }
        };
        environments.step_each(actions, before_step, &sign_of_life)
    }

    /// Take note of how long the last step of all environments together took.
    pub(super) fn took(&mut self, time: Duration) {
        self.are_slow = time > LONG_FOR_ALL;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ops::Bound;

    use super::*;
    use crate::config::{Key, Limits};
    use crate::environments::registry;

    #[test]
    fn a_step_with_one_sign_of_life_for_all_takes_no_half_of_the_time_after_which_a_process_may_count_as_hung() {
        let limits = Key::find("machine.hang_timeout_s").unwrap().limits;
        let Limits::Real { low: Bound::Included(least_s), .. } = limits else { panic!("{limits:?}") };
        assert!(2.0 * LONG_FOR_ALL.as_secs_f64() < least_s, "{least_s}");
    }

    #[test]
    fn a_process_says_before_each_step_that_it_lives_where_environments_are_slow_or_not_known_yet() {
        let mut environments = VectorEnvironment::new((0..3).map(|_| registry::make("CartPole-v1").unwrap()).collect()).unwrap();
        environments.reset(1).unwrap();
        let mut signs_of_life = SignsOfLife::new();
        // The last step of each took so long; no episode ends as early as this.
        for (took_ms, signs) in [(None, 3), (Some(200), 0), (Some(201), 3)] {
            took_ms.into_iter().for_each(|took_ms| signs_of_life.took(Duration::from_millis(took_ms)));
            let given = Cell::new(0);
            signs_of_life.step(&mut environments, Actions::Discrete(&[0; 3]), || given.set(given.get() + 1)).unwrap();
            assert_eq!(given.get(), signs, "after a step of {took_ms:?} ms");
        }
    }
}
