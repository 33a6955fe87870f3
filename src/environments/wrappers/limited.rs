//! Cuts episodes off after a number of steps. In an environment without a limit of its own, a policy that goes round in
//! circles would never end an episode, and whoever waits for the end would wait for ever.

use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, Outcome, Step};
use crate::values::ValuesMut;

/// Truncate the episodes of `environment` after `limit_steps`, whatever it says of its own limit: a wrapper may go on beyond that.
pub fn limited(environment: Box<dyn Environment>, limit_steps: u32) -> Box<dyn Environment> {
    Box::new(Limited { environment, limit_steps, elapsed_steps: 0, score: 0.0, is_over: true, is_cut: false })
}

struct Limited {
    environment: Box<dyn Environment>,
    limit_steps: u32,
    /// Steps since the task began, which may have more than one episode ([`Outcome::Unfinished`]).
    elapsed_steps: u32,
    /// Sum of the rewards since then.
    score: f64,
    /// Whether the task is over, so that the next reset begins another.
    is_over: bool,
    /// Whether the last step ended a task that would have gone on, in this episode or in another.
    is_cut: bool,
}

impl Environment for Limited {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        // A seed begins anew, whatever was under way.
        if self.is_over || seed.is_some() {
            self.elapsed_steps = 0;
            self.score = 0.0;
            self.is_over = false;
        }
        self.environment.reset(seed, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        if self.elapsed_steps >= self.limit_steps {
            return Err(self.spec().needs_reset("after its episode ended"));
        }
        let mut step = self.environment.step(action, observation)?;
        self.elapsed_steps += 1;
        self.score += step.reward;
        let goes_on = !step.ended() || self.environment.outcome() == Outcome::Unfinished;
        self.is_cut = goes_on && self.elapsed_steps >= self.limit_steps;
        step.truncated |= self.elapsed_steps >= self.limit_steps;
        self.is_over = step.ended() && self.outcome() != Outcome::Unfinished;
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }

    fn outcome(&self) -> Outcome {
        // An environment does not know that it was cut off: it still tells the outcome of the last task that it ended itself.
        if self.is_cut { Outcome::CutOff { score: self.score, length_steps: self.elapsed_steps } } else { self.environment.outcome() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ActionSpace, Actions, FinishedEpisode, ObservationSpace, VectorEnvironment, registry};

    /// A task that never ends, in parts of so many steps, if any.
    struct Endless {
        spec: EnvironmentSpec,
        part_steps: Option<u32>,
        elapsed_steps: u32,
    }

    impl Environment for Endless {
        fn spec(&self) -> &EnvironmentSpec {
            &self.spec
        }

        fn reset(&mut self, _: Option<u64>, _: ValuesMut<'_>) -> Result<(), EnvironmentError> {
            self.elapsed_steps = 0;
            Ok(())
        }

        fn step(&mut self, _: Action<'_>, _: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
            self.elapsed_steps += 1;
            Ok(Step { reward: -1.0, terminated: Some(self.elapsed_steps) == self.part_steps, truncated: false })
        }

        fn outcome(&self) -> Outcome {
            if self.part_steps.is_some() { Outcome::Unfinished } else { Outcome::SumOfRewards }
        }
    }

    /// A task that ends after three steps once, and never again.
    struct EndsOnce {
        spec: EnvironmentSpec,
        elapsed_steps: u32,
    }

    impl Environment for EndsOnce {
        fn spec(&self) -> &EnvironmentSpec {
            &self.spec
        }

        fn reset(&mut self, _: Option<u64>, _: ValuesMut<'_>) -> Result<(), EnvironmentError> {
            Ok(())
        }

        fn step(&mut self, _: Action<'_>, _: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
            self.elapsed_steps += 1;
            Ok(Step { reward: -1.0, terminated: self.elapsed_steps == 3, truncated: false })
        }

        fn outcome(&self) -> Outcome {
            Outcome::Finished { score: -3.0, length_steps: 3 }
        }
    }

    fn spec(time_limit_steps: Option<u32>) -> EnvironmentSpec {
        let spec = registry::spec("CartPole-v1").unwrap();
        let action = ActionSpace::Discrete { n: 2 };
        EnvironmentSpec { time_limit_steps, action, observation: ObservationSpace::bytes(&[1]), ..spec }
    }

    #[test]
    fn an_episode_without_end_is_cut_off_and_counts_as_far_as_it_came() {
        // The last one does not keep the limit that it names.
        for (part_steps, named_limit) in [(None, None), (Some(3), None), (Some(7), None), (None, Some(5))] {
            let endless = Endless { spec: spec(named_limit), part_steps, elapsed_steps: 0 };
            let mut environments = VectorEnvironment::new(vec![limited(Box::new(endless), 7)]).unwrap();
            environments.reset(1).unwrap();
            environments.step(Actions::Discrete(&[0])).unwrap();
            environments.reset(2).unwrap();
            for step in 1..=21 {
                environments.step(Actions::Discrete(&[0])).unwrap();
                assert_eq!(environments.truncated(), [step % 7 == 0], "step {step}, parts of {part_steps:?}, {named_limit:?}");
                let finished = environments.finished_episodes();
                let expected = FinishedEpisode { environment: 0, episode_return: -7.0, length_steps: 7, is_cut_off: true };
                assert_eq!(finished, if step % 7 == 0 { vec![expected] } else { vec![] });
            }
        }
    }

    #[test]
    fn a_task_that_is_cut_off_has_not_the_score_of_the_one_before() {
        let ends_once = EndsOnce { spec: spec(None), elapsed_steps: 0 };
        let mut environments = VectorEnvironment::new(vec![limited(Box::new(ends_once), 7)]).unwrap();
        environments.reset(1).unwrap();
        let mut finished = Vec::new();
        for _ in 0..3 + 7 {
            environments.step(Actions::Discrete(&[0])).unwrap();
            finished.extend(environments.finished_episodes().iter().map(|episode| (episode.episode_return, episode.length_steps)));
        }
        assert_eq!(finished, [(-3.0, 3), (-7.0, 7)]);
    }

    #[test]
    fn what_ends_by_itself_in_the_last_step_is_not_cut_off() {
        let ended = |environment: Box<dyn Environment>, steps: u32| {
            let mut environments = VectorEnvironment::new(vec![environment]).unwrap();
            environments.reset(1).unwrap();
            (0..steps).for_each(|_| environments.step(Actions::Discrete(&[0])).unwrap());
            environments.finished_episodes().iter().map(|episode| (episode.length_steps, episode.is_cut_off)).collect::<Vec<_>>()
        };
        let ends_once = || Box::new(EndsOnce { spec: spec(None), elapsed_steps: 0 });
        assert_eq!(ended(limited(ends_once(), 3), 3), [(3, false)]);
        assert_eq!(ended(limited(ends_once(), 2), 2), [(2, true)]);
        // Who does not cut it off itself tells who did.
        let endless = Endless { spec: spec(None), part_steps: None, elapsed_steps: 0 };
        assert_eq!(ended(limited(limited(Box::new(endless), 5), 5), 5), [(5, true)]);
    }

    #[test]
    fn the_lower_of_two_limits_ends_each_episode() {
        for (limit_steps, ends_after) in [(50, 50), (300, 200)] {
            let mut environments = VectorEnvironment::new(vec![limited(registry::make("Pendulum-v1").unwrap(), limit_steps)]).unwrap();
            environments.reset(1).unwrap();
            for step in 1..=2 * ends_after {
                environments.step(Actions::Continuous(&[0.0])).unwrap();
                assert_eq!(environments.truncated(), [step % ends_after == 0], "step {step}, limit {limit_steps}");
            }
        }
    }
}
