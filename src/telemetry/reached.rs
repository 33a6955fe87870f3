//! How far a run has come, and what has to be changed for it to go on from there.

use serde_json::Value;

use super::goal::GoalOutcome;
use crate::config::schema::RunConfig;

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reached {
    /// Environment steps taken.
    pub env_steps: u64,
    /// Seconds that the run took, in all its lives.
    pub wall_s: f64,
    /// The mean return of the goal, if fresh episodes have confirmed it.
    pub confirmed_goal: Option<f64>,
}

impl Reached {
    pub(super) fn of(env_steps: u64, wall_s: f64, goal: Option<GoalOutcome>) -> Self {
        Self { env_steps, wall_s, confirmed_goal: goal.filter(|goal| goal.confirmed).map(|goal| goal.wanted) }
    }

    /// Reads it from the figures of a closing report.
    pub(super) fn from_summary(summary: &Value) -> Self {
        let goal = &summary["goal"];
        Self {
            env_steps: summary["env_steps"].as_u64().unwrap_or(0),
            wall_s: summary["wall_s"].as_f64().unwrap_or(0.0),
            confirmed_goal: goal["wanted"].as_f64().filter(|_| goal["confirmed"] == true),
        }
    }

    /// The goal of `run`, if it is the one that was confirmed.
    pub fn goal_of(&self, run: &RunConfig) -> Option<f64> {
        self.confirmed_goal.filter(|_| self.confirmed_goal == run.stop_eval_return)
    }

    /// The options of `shoal resume` for what has to be changed in `run`; `None` if it goes on as it is. A confirmed
    /// goal is removed, and a limit that was reached becomes twice what it was, or twice what the run made if that is
    /// more.
    pub fn change_to_go_on(&self, run: &RunConfig) -> Option<String> {
        let goal = self.goal_of(run).map(|_| "--set run.stop_eval_return=none".to_owned());
        let steps = (self.env_steps >= run.stop_env_steps)
            .then(|| format!("--set run.stop_env_steps={}", self.env_steps.max(run.stop_env_steps).saturating_mul(2)));
        let seconds = run
            .stop_wall_s
            .filter(|&limit_s| self.wall_s >= limit_s)
            .map(|_| format!("--set run.stop_wall_s={}", (2.0 * self.wall_s).ceil()));
        let changes: Vec<String> = [goal, steps, seconds].into_iter().flatten().collect();
        (!changes.is_empty()).then(|| changes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_goal_of_any_digits_is_the_configured_one_after_it_was_written_and_read() {
        let goal = 3.0 * -157.1;
        let mut run = Config::for_environment("CartPole-v1").run;
        run.stop_eval_return = Some(goal);
        let summary = json!({"goal": {"wanted": goal, "confirmed": true}}).to_string();
        let reached = Reached::from_summary(&serde_json::from_str(&summary).unwrap());
        assert_eq!(reached.goal_of(&run), Some(goal));
    }

    #[test]
    fn every_limit_that_was_reached_is_to_be_changed_and_no_other() {
        let mut run = Config::for_environment("CartPole-v1").run;
        (run.stop_env_steps, run.stop_wall_s, run.stop_eval_return) = (2_000, Some(1.5), Some(475.0));
        let change = |env_steps, wall_s, confirmed_goal| Reached { env_steps, wall_s, confirmed_goal }.change_to_go_on(&run);
        assert_eq!(change(1_999, 1.4, None), None);
        assert_eq!(change(1_999, 1.4, Some(400.0)), None, "another goal was confirmed");
        assert_eq!(change(2_000, 0.5, None).unwrap(), "--set run.stop_env_steps=4000");
        assert_eq!(change(29_512, 0.5, None).unwrap(), "--set run.stop_env_steps=59024");
        assert_eq!(change(100, 1.6, None).unwrap(), "--set run.stop_wall_s=4");
        assert_eq!(change(100, 0.5, Some(475.0)).unwrap(), "--set run.stop_eval_return=none");
        assert_eq!(change(2_001, 0.5, Some(475.0)).unwrap(), "--set run.stop_eval_return=none --set run.stop_env_steps=4002");
    }
}
