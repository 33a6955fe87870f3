//! The goal of a run, `run.stop_eval_return`: what confirms it, and how often it was reached without being confirmed.

use serde::Serialize;

use super::{Evaluation, EvaluationKind, ReturnStatistics};
use crate::readable::score;

/// The chance that a run is called solved by luck, over all its attempts.
const ERROR: f64 = 0.05;
/// Seconds of the run between two notices that the goal was reached and not confirmed.
const NOTICE_INTERVAL_S: f64 = 30.0;

/// The mean return that fresh episodes prove in attempt number `attempt`, from 1, to confirm a goal.
///
/// Weights that miss a goal by little pass a fixed test after some attempts, and a run may have hundreds. So every
/// attempt has to prove more than the one before: it is granted an error of `ERROR / (attempt · (attempt + 1))`,
/// which adds up to `ERROR` over infinitely many attempts. The first attempt is judged by the 95 % interval.
pub fn proven_return(statistics: &ReturnStatistics, attempt: u64) -> Option<f64> {
    let attempt = attempt as f64;
    statistics.lower_bound(ERROR / (attempt * (attempt + 1.0)))
}

/// Counts the attempts to confirm a goal, from the evaluations of a run in their order: the count that
/// [`proven_return`] takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    has_reached_goal: bool,
    failed: u64,
}

impl Attempts {
    /// The count after so many `failed` attempts.
    pub fn after(failed: u64) -> Self {
        Self { has_reached_goal: false, failed }
    }

    /// How many attempts failed.
    pub fn failed(self) -> u64 {
        self.failed
    }

    /// Takes in a routine evaluation with this `mean` return.
    pub fn propose(&mut self, mean: Option<f64>, goal: Option<f64>) {
        self.has_reached_goal = mean.zip(goal).is_some_and(|(mean, goal)| mean >= goal);
    }

    /// The number, from 1, of the attempt that the next confirmation makes. `None` if the last routine evaluation did
    /// not reach the goal: the confirmation then only decides whether the weights are the best.
    pub fn number(self) -> Option<u64> {
        self.has_reached_goal.then_some(self.failed + 1)
    }

    /// Whether a confirmation with these `statistics` of what was proposed last would be an attempt that proves the goal.
    pub fn proves_goal(self, statistics: &ReturnStatistics, goal: Option<f64>) -> bool {
        let proven = self.number().and_then(|attempt| proven_return(statistics, attempt));
        proven.zip(goal).is_some_and(|(proven, goal)| proven >= goal)
    }

    /// Take in a confirmation. Returns whether it was an attempt that failed.
    pub fn decide(&mut self, confirms_goal: bool) -> bool {
        let has_failed = std::mem::take(&mut self.has_reached_goal) && !confirms_goal;
        self.failed += u64::from(has_failed);
        has_failed
    }
}

/// What became of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GoalOutcome {
    /// The mean return to reach.
    pub wanted: f64,
    /// Whether fresh episodes confirmed it.
    pub confirmed: bool,
    /// Evaluations that reached it and were not confirmed.
    pub unconfirmed: u64,
}

/// Follows the evaluations of a run with a goal.
#[derive(Debug)]
pub(super) struct Goal {
    wanted: f64,
    is_confirmed: bool,
    attempts: Attempts,
    /// The newest routine evaluation, in words.
    proposed: String,
    /// Failed attempts since the last notice.
    unreported: u64,
    next_notice_s: f64,
}

impl Goal {
    /// A goal that evaluations of an earlier life of the run reached `unconfirmed` times without being confirmed.
    pub(super) fn new(wanted: f64, unconfirmed: u64) -> Self {
        let attempts = Attempts::after(unconfirmed);
        Self { wanted, is_confirmed: false, attempts, proposed: String::new(), unreported: 0, next_notice_s: 0.0 }
    }

    pub(super) fn outcome(&self) -> GoalOutcome {
        GoalOutcome { wanted: self.wanted, confirmed: self.is_confirmed, unconfirmed: self.attempts.failed() }
    }

    /// Takes note of an evaluation. Returns a notice for the user, once in a while, that the goal was reached and not
    /// confirmed.
    pub(super) fn observe(&mut self, evaluation: &Evaluation) -> Option<String> {
        let statistics = evaluation.statistics();
        let mean = statistics.return_mean?;
        if evaluation.kind == EvaluationKind::Routine {
            self.attempts.propose(Some(mean), Some(self.wanted));
            self.proposed = format!("{} over {} episodes", score(mean), statistics.episodes);
            return None;
        }
        self.is_confirmed |= evaluation.confirms_goal;
        let attempt = self.attempts.number()?;
        if !self.attempts.decide(evaluation.confirms_goal) {
            return None;
        }
        self.unreported += 1;
        if evaluation.wall_s < self.next_notice_s {
            return None;
        }
        self.next_notice_s = evaluation.wall_s + NOTICE_INTERVAL_S;
        let times = match std::mem::take(&mut self.unreported) {
            1 => String::new(),
            times => format!(" ({times} times since this was last said)"),
        };
        let proven = score(proven_return(&statistics, attempt)?);
        let Self { wanted, proposed, .. } = self;
        Some(format!(
            "not solved yet: an evaluation reached {} ({proposed}), and {} fresh episodes with the same weights did not confirm it: {}, \
             and no more than {proven} is proven; training goes on{times}",
            score(*wanted),
            statistics.episodes,
            score(mean)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routine(wall_s: f64, returns: &[f64]) -> Evaluation {
        Evaluation { wall_s, returns: returns.to_vec(), ..Evaluation::default() }
    }

    fn confirmation(wall_s: f64, returns: &[f64]) -> Evaluation {
        Evaluation { kind: EvaluationKind::Confirmation, ..routine(wall_s, returns) }
    }

    #[test]
    fn every_attempt_has_to_prove_more_and_all_of_them_share_one_chance_of_error() {
        let statistics = confirmation(0.0, &[470.0, 480.0, 490.0, 500.0]).statistics();
        assert_eq!(proven_return(&statistics, 1), statistics.ci95_low);
        let proven: Vec<f64> = (1..100).map(|attempt| proven_return(&statistics, attempt).unwrap()).collect();
        assert!(proven.is_sorted_by(|earlier, later| earlier > later), "{proven:?}");
        let granted: f64 = (1..10_000).map(|attempt| ERROR / f64::from(attempt * (attempt + 1))).sum();
        assert!(0.9999 * ERROR < granted && granted < ERROR, "{granted}");
        assert_eq!(proven_return(&confirmation(0.0, &[500.0; 100]).statistics(), 1_000_000), Some(500.0));
    }

    #[test]
    fn a_goal_that_is_not_confirmed_is_told_once_in_a_while() {
        let mut goal = Goal::new(475.0, 0);
        let mut notices = Vec::new();
        for second in 0..=40 {
            assert_eq!(goal.observe(&routine(f64::from(second), &[480.0, 500.0])), None);
            notices.extend(goal.observe(&confirmation(f64::from(second), &[460.0, 500.0, 480.0])));
        }
        assert_eq!(notices.len(), 2, "{notices:#?}");
        for part in
            ["not solved yet", "reached 475.0 (490.0 over 2 episodes)", "3 fresh episodes", "480.0, and no more than 430.3 is proven"]
        {
            assert!(notices[0].contains(part), "`{part}` is missing in: {}", notices[0]);
        }
        assert!(notices[1].ends_with("training goes on (30 times since this was last said)"), "{}", notices[1]);
        assert_eq!(goal.outcome(), GoalOutcome { wanted: 475.0, confirmed: false, unconfirmed: 41 });
    }

    #[test]
    fn nothing_is_said_of_a_goal_that_is_confirmed_or_was_not_reached() {
        let mut goal = Goal::new(475.0, 0);
        // Better than before, and therefore confirmed as the best weights.
        assert_eq!(goal.observe(&routine(0.0, &[100.0, 200.0])), None);
        assert_eq!(goal.observe(&confirmation(0.0, &[100.0, 200.0])), None);
        assert_eq!(goal.outcome().unconfirmed, 0);
        assert_eq!(goal.observe(&routine(1.0, &[500.0, 500.0])), None);
        assert_eq!(goal.observe(&Evaluation { confirms_goal: true, ..confirmation(1.0, &[500.0, 500.0]) }), None);
        assert_eq!(goal.outcome(), GoalOutcome { wanted: 475.0, confirmed: true, unconfirmed: 0 });
    }
}
