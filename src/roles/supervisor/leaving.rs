//! How long processes may take to leave at the end of a run, and what is sent to those that do not.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::roles::run::LEAVING_PATIENCE;
use crate::segment::processes::Role;
use crate::telemetry::StopReason;

/// How long an evaluator may take if the last weights are to be evaluated: for the confirmation under way, and for
/// those weights, after learners have published them.
const EVALUATION_PATIENCE: Duration = Duration::from_secs(60);

/// How long a visualizer may take.
const SHOWING_PATIENCE: Duration = Duration::from_millis(500);

/// Whether the last weights are evaluated once training has ended for this `reason`.
pub(super) fn is_evaluation_wanted(reason: &StopReason) -> bool {
    !matches!(reason, StopReason::Interrupted | StopReason::Terminated | StopReason::Solved | StopReason::TimeLimit)
}

/// The time after the end of training.
pub(super) struct Leaving {
    began: Instant,
    deadline: Instant,
    evaluation_deadline: Instant,
    evaluation_wanted: bool,
}

impl Leaving {
    /// The time after training that ended at `now`.
    pub(super) fn new(reason: &StopReason, now: Instant) -> Self {
        let evaluation_wanted = is_evaluation_wanted(reason);
        let patience = if evaluation_wanted { EVALUATION_PATIENCE } else { LEAVING_PATIENCE };
        Self { began: now, deadline: now + LEAVING_PATIENCE, evaluation_deadline: now + patience, evaluation_wanted }
    }

    /// Give everybody as much time more: for a `pause` nobody could get on, since the whole run was stopped.
    pub(super) fn put_off(&mut self, pause: Duration) {
        for moment in [&mut self.began, &mut self.deadline, &mut self.evaluation_deadline] {
            *moment += pause;
        }
    }

    /// Note that the user has no more patience.
    pub(super) fn interrupt(&mut self, now: Instant) {
        if self.evaluation_wanted {
            self.evaluation_wanted = false;
            self.evaluation_deadline = self.evaluation_deadline.min(now + LEAVING_PATIENCE);
        }
    }

    /// Whether the last weights are to be evaluated.
    pub(super) fn evaluates(&self) -> bool {
        self.evaluation_wanted
    }

    /// Whether those without a part in the evaluation should be gone by `now`.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// What a process of this role that is still there is sent at `now`. `closing` is for how long it has done nothing but close its
    /// environments, if that is all it still does: nothing of the run waits for it.
    pub(super) fn signal(&self, role: Role, closing: Option<Duration>, now: Instant) -> Option<Signal> {
        let deadline = match role {
            _ if role.evaluates() => self.evaluation_deadline,
            // Nobody waits for a visualizer, not even at the end.
            Role::Visualizer => self.began + SHOWING_PATIENCE,
            _ => self.deadline,
        };
        match now >= deadline || closing.is_some_and(|time| time >= LEAVING_PATIENCE) {
            true => Some(Signal::SIGKILL),
            false => (role.evaluates() && !self.evaluation_wanted).then_some(Signal::SIGTERM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reason: &StopReason, seconds: u64) -> [Option<Signal>; 2] {
        let start = Instant::now();
        let leaving = Leaving::new(reason, start);
        [Role::Learner, Role::Evaluator].map(|role| leaving.signal(role, None, start + Duration::from_secs(seconds)))
    }

    #[test]
    fn an_evaluator_that_only_closes_its_environments_has_no_more_time_for_it_than_others() {
        let start = Instant::now();
        let leaving = Leaving::new(&StopReason::StepLimit, start);
        let signal = |closing_s| leaving.signal(Role::Evaluator, Some(Duration::from_secs(closing_s)), start + Duration::from_secs(20));
        assert_eq!((signal(9), signal(10)), (None, Some(Signal::SIGKILL)));
    }

    #[test]
    fn an_evaluator_has_time_where_the_last_weights_are_to_be_evaluated() {
        for reason in [StopReason::StepLimit, StopReason::GaveUp(String::new()), StopReason::Failed(String::new())] {
            assert_eq!(after(&reason, 0), [None, None]);
            assert_eq!(after(&reason, 10), [Some(Signal::SIGKILL), None]);
            assert_eq!(after(&reason, 60), [Some(Signal::SIGKILL); 2]);
        }
        for reason in [StopReason::Solved, StopReason::Interrupted, StopReason::Terminated, StopReason::TimeLimit] {
            assert_eq!(after(&reason, 0), [None, Some(Signal::SIGTERM)]);
            assert_eq!(after(&reason, 10), [Some(Signal::SIGKILL); 2]);
        }
    }

    #[test]
    fn time_in_which_the_whole_run_stood_still_is_nobodys() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&StopReason::StepLimit, start);
        leaving.put_off(Duration::from_secs(100));
        let signals = |seconds| [Role::Visualizer, Role::Learner, Role::Evaluator].map(|role| leaving.signal(role, None, at(seconds)));
        assert_eq!(signals(100), [None; 3]);
        assert_eq!(signals(110), [Some(Signal::SIGKILL), Some(Signal::SIGKILL), None]);
        assert_eq!(signals(160), [Some(Signal::SIGKILL); 3]);
    }

    #[test]
    fn an_interruption_calls_the_last_evaluation_off() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&StopReason::StepLimit, start);
        (20..25).for_each(|second| leaving.interrupt(at(second)));
        assert_eq!(leaving.signal(Role::Evaluator, None, at(25)), Some(Signal::SIGTERM));
        assert_eq!(leaving.signal(Role::Evaluator, None, at(30)), Some(Signal::SIGKILL));
    }
}
