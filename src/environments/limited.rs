//! An environment that is cut off after so many steps: where it has no limit of its own, a policy that goes round in circles would never
//! come to the end of an episode, and whoever waits for that would wait for ever.

use super::{Action, Environment, EnvironmentError, EnvironmentSpec, Outcome, Step};
use crate::values::ValuesMut;

/// Truncate the episodes of `environment` after `limit_steps`; one that has no longer ones is returned unchanged.
pub fn limited(environment: Box<dyn Environment>, limit_steps: u32) -> Box<dyn Environment> {
    if environment.spec().time_limit_steps.is_some_and(|own| own <= limit_steps) {
        return environment;
    }
    Box::new(Limited { environment, limit_steps, elapsed_steps: 0, score: 0.0, is_over: true })
}

struct Limited {
    environment: Box<dyn Environment>,
    limit_steps: u32,
    /// Of the whole task, where episodes are parts of one.
    elapsed_steps: u32,
    score: f64,
    is_over: bool,
}

impl Environment for Limited {
    fn spec(&self) -> &EnvironmentSpec {
        self.environment.spec()
    }

    fn reset(&mut self, seed: Option<u64>, observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        // A seed begins anew, whatever was under way.
        if self.is_over || seed.is_some() {
            (self.elapsed_steps, self.score, self.is_over) = (0, 0.0, false);
        }
        self.environment.reset(seed, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        if self.elapsed_steps >= self.limit_steps {
            return Err(self.spec().needs_reset("after the end of an episode"));
        }
        let mut step = self.environment.step(action, observation)?;
        self.elapsed_steps += 1;
        self.score += step.reward;
        step.truncated |= self.elapsed_steps >= self.limit_steps;
        self.is_over = step.ended() && self.outcome() != Outcome::Unfinished;
        Ok(step)
    }

    fn wrapped(&self) -> Option<&dyn Environment> {
        Some(&*self.environment)
    }

    fn outcome(&self) -> Outcome {
        match self.environment.outcome() {
            // What would have gone on in the next episode ends here.
            Outcome::Unfinished if self.elapsed_steps >= self.limit_steps => {
                Outcome::Finished { score: self.score, length_steps: self.elapsed_steps }
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{ActionSpace, Actions, ObservationSpace, VectorEnvironment, registry};

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

    fn endless(part_steps: Option<u32>) -> Box<dyn Environment> {
        let spec = registry::spec("CartPole-v1").unwrap();
        let action = ActionSpace::Discrete { n: 2 };
        let spec = EnvironmentSpec { time_limit_steps: None, action, observation: ObservationSpace::bytes(&[1]), ..spec };
        Box::new(Endless { spec, part_steps, elapsed_steps: 0 })
    }

    #[test]
    fn an_episode_without_end_is_cut_off_and_counts_as_far_as_it_came() {
        for part_steps in [None, Some(3), Some(7)] {
            let mut environments = VectorEnvironment::new(vec![limited(endless(part_steps), 7)]).unwrap();
            environments.reset(1).unwrap();
            environments.step(Actions::Discrete(&[0])).unwrap();
            environments.reset(2).unwrap();
            for step in 1..=21 {
                environments.step(Actions::Discrete(&[0])).unwrap();
                assert_eq!(environments.truncated(), [step % 7 == 0], "step {step}, parts of {part_steps:?}");
                let finished = environments.finished_episodes().iter().map(|episode| (episode.episode_return, episode.length_steps));
                assert_eq!(finished.collect::<Vec<_>>(), if step % 7 == 0 { vec![(-7.0, 7)] } else { vec![] });
            }
        }
    }

    #[test]
    fn the_lower_of_two_limits_ends_an_episode() {
        for (limit_steps, ends_after) in [(50, 50), (300, 200)] {
            let mut environments = VectorEnvironment::new(vec![limited(registry::make("Pendulum-v1").unwrap(), limit_steps)]).unwrap();
            environments.reset(1).unwrap();
            let ended = (1..).find(|_| {
                environments.step(Actions::Continuous(&[0.0])).unwrap();
                environments.truncated()[0]
            });
            assert_eq!(ended, Some(ends_after));
        }
    }
}
