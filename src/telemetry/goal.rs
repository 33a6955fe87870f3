//! The goal of a run, `run.stop_eval_return`: which evaluations reached it, and what fresh episodes made of that.

use serde::Serialize;

use super::units::score;
use super::{Evaluation, EvaluationKind};

/// Seconds of the run between two lines that say that the goal was reached and not confirmed.
const NOTICE_INTERVAL_S: f64 = 30.0;

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
    outcome: GoalOutcome,
    /// The evaluation that reached the goal and is not confirmed yet, in words.
    proposed: Option<String>,
    untold: u64,
    next_notice_s: f64,
}

impl Goal {
    pub(super) fn new(wanted: f64) -> Self {
        let outcome = GoalOutcome { wanted, confirmed: false, unconfirmed: 0 };
        Self { outcome, proposed: None, untold: 0, next_notice_s: 0.0 }
    }

    pub(super) fn outcome(&self) -> GoalOutcome {
        self.outcome
    }

    /// Takes note of an evaluation. Returns what the user must be told: once in a while, that the goal was reached and not confirmed.
    pub(super) fn observe(&mut self, evaluation: &Evaluation) -> Option<String> {
        let statistics = evaluation.statistics();
        let (mean, wanted) = (statistics.return_mean?, self.outcome.wanted);
        if evaluation.kind == EvaluationKind::Routine {
            self.proposed = (mean >= wanted).then(|| format!("{} over {} episodes", score(mean), statistics.episodes));
            return None;
        }
        self.outcome.confirmed |= evaluation.confirms(wanted);
        // Without a proposal the confirmation was about the best weights alone.
        let proposed = self.proposed.take().filter(|_| !self.outcome.confirmed)?;
        self.outcome.unconfirmed += 1;
        self.untold += 1;
        if evaluation.wall_s < self.next_notice_s {
            return None;
        }
        self.next_notice_s = evaluation.wall_s + NOTICE_INTERVAL_S;
        let times = match std::mem::take(&mut self.untold) {
            1 => String::new(),
            times => format!(" ({times} times since this was last said)"),
        };
        let (low, high) = (score(statistics.ci95_low?), score(statistics.ci95_high?));
        Some(format!(
            "not solved yet: an evaluation reached {} ({proposed}), and {} fresh episodes with the same weights did not confirm it: {}, 95 % \
             interval {low} to {high}, whose lower end decides; training goes on{times}",
            score(wanted),
            statistics.episodes,
            score(mean)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(kind: EvaluationKind, wall_s: f64, returns: &[f64]) -> Evaluation {
        Evaluation { kind, wall_s, returns: returns.to_vec(), ..Evaluation::default() }
    }

    fn routine(wall_s: f64, returns: &[f64]) -> Evaluation {
        evaluation(EvaluationKind::Routine, wall_s, returns)
    }

    fn confirmation(wall_s: f64, returns: &[f64]) -> Evaluation {
        evaluation(EvaluationKind::Confirmation, wall_s, returns)
    }

    #[test]
    fn a_goal_that_is_not_confirmed_is_told_once_in_a_while() {
        let mut goal = Goal::new(475.0);
        let mut told = Vec::new();
        for second in 0..=40 {
            assert_eq!(goal.observe(&routine(f64::from(second), &[480.0, 500.0])), None);
            told.extend(goal.observe(&confirmation(f64::from(second), &[460.0, 500.0, 480.0])));
        }
        assert_eq!(told.len(), 2, "{told:#?}");
        for part in ["not solved yet", "reached 475.0 (490.0 over 2 episodes)", "3 fresh episodes", "480.0, 95 % interval 430.3 to 529.7"] {
            assert!(told[0].contains(part), "`{part}` is missing in: {}", told[0]);
        }
        assert!(told[1].ends_with("training goes on (30 times since this was last said)"), "{}", told[1]);
        assert_eq!(goal.outcome(), GoalOutcome { wanted: 475.0, confirmed: false, unconfirmed: 41 });
    }

    #[test]
    fn nothing_is_said_of_a_goal_that_is_confirmed_or_was_not_reached() {
        let mut goal = Goal::new(475.0);
        // Better than before, so confirmed for the best weights' sake.
        assert_eq!(goal.observe(&routine(0.0, &[100.0, 200.0])), None);
        assert_eq!(goal.observe(&confirmation(0.0, &[100.0, 200.0])), None);
        assert_eq!(goal.outcome().unconfirmed, 0);
        assert_eq!(goal.observe(&routine(1.0, &[500.0, 500.0])), None);
        assert_eq!(goal.observe(&confirmation(1.0, &[500.0, 500.0])), None);
        assert_eq!(goal.outcome(), GoalOutcome { wanted: 475.0, confirmed: true, unconfirmed: 0 });
    }
}
