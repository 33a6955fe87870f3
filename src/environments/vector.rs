//! Many environments stepped one after another in one call, so that a policy can act for all of them in one batch.
//!
//! Everything lies in flat matrices that are reused, so a step allocates nothing. An environment whose episode ends is reset in
//! the same step ("same-step autoreset"): what to act on next and the true successor of the step are then two different
//! observations, and a learner needs both.

use super::{Action, ActionSpace, Environment, EnvironmentError, EnvironmentSpec, Moment, Outcome, derive_seed};
use crate::values::{ValueBuffer, Values};

/// One action for each environment, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Actions<'a> {
    /// One index per environment.
    Discrete(&'a [i32]),
    /// Environments x values of one action, row-major.
    Continuous(&'a [f32]),
}

/// An episode that ended in the last step; if it was the last part of a task ([`Outcome`]), the whole task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FinishedEpisode {
    /// Position of the environment in the vector.
    pub environment: usize,
    /// Undiscounted sum of its rewards, or its score where rewards were changed for training.
    pub episode_return: f64,
    /// Number of its steps.
    pub length_steps: u32,
    /// Whether it would have gone on ([`Outcome::CutOff`]).
    pub is_cut_off: bool,
}

/// E environments of one kind, stepped together. See the module's text.
pub struct VectorEnvironment {
    environments: Vec<Box<dyn Environment>>,
    spec: EnvironmentSpec,
    observation_len: usize,
    /// E x observation: what the last step led to.
    successors: ValueBuffer,
    /// E x observation: `successors` with a first observation in each row whose episode ended; only filled if one did.
    restarted: ValueBuffer,
    rewards: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    returns: Vec<f64>,
    lengths_steps: Vec<u32>,
    /// How many more episodes each of them plays until the next reset of all.
    episodes_left: Vec<usize>,
    /// Environments whose episode ended in the last step.
    ended: Vec<usize>,
    finished: Vec<FinishedEpisode>,
    /// Why the next step needs a reset, if it does.
    needs_reset: Option<&'static str>,
}

impl VectorEnvironment {
    /// Put environments together; all need the same observations and actions. They have to be reset before the first step.
    ///
    /// # Errors
    /// [`EnvironmentError::EmptyVector`] without environments, [`EnvironmentError::MixedVector`] if they differ in those.
    pub fn new(environments: Vec<Box<dyn Environment>>) -> Result<Self, EnvironmentError> {
        let spec = environments.first().ok_or(EnvironmentError::EmptyVector)?.spec().clone();
        let first = spec.spaces_in_words();
        // Bounds of observations, time limits and the like may be drawn at random for each.
        for (index, environment) in environments.iter().enumerate() {
            let found = environment.spec().spaces_in_words();
            if found != first {
                return Err(EnvironmentError::MixedVector {
                    index,
                    id: environment.spec().id.clone(),
                    found: found.into(),
                    first: first.into(),
                });
            }
        }
        let count = environments.len();
        let (observation_len, element) = (spec.observation.len(), spec.observation.element);
        Ok(Self {
            environments,
            spec,
            observation_len,
            successors: ValueBuffer::zeros(element, count * observation_len),
            restarted: ValueBuffer::zeros(element, count * observation_len),
            rewards: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            returns: vec![0.0; count],
            lengths_steps: vec![0; count],
            episodes_left: vec![usize::MAX; count],
            ended: Vec::with_capacity(count),
            finished: Vec::with_capacity(count),
            needs_reset: Some("before its first reset"),
        })
    }

    /// What is fixed about the first of the environments. Its observations and actions are those of all.
    pub fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    /// How many environments there are.
    pub fn len(&self) -> usize {
        self.environments.len()
    }

    /// Never true: a vector has at least one environment.
    pub fn is_empty(&self) -> bool {
        self.environments.is_empty()
    }

    /// Start a new episode everywhere. Environment i gets the seed [`derive_seed`]`(seed, i)`, so the environments of
    /// neighbouring seeds share no episodes; later episodes continue the random numbers of their environment.
    ///
    /// # Errors
    /// Those of the environments, and [`EnvironmentError::NotFinite`]. Afterwards a step needs a reset that succeeds.
    pub fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        self.reset_each(seed, || ())
    }

    /// As [`Self::reset`], with a call of `before` before each of them: some take seconds.
    ///
    /// # Errors
    /// Those of [`Self::reset`].
    pub fn reset_each(&mut self, seed: u64, mut before: impl FnMut()) -> Result<(), EnvironmentError> {
        self.needs_reset = Some("after a reset that failed");
        for (index, environment) in (0..).zip(&mut self.environments) {
            before();
            let observation = self.successors.row_mut(index as usize, self.observation_len);
            environment.reset(Some(derive_seed(seed, index)), observation)?;
            check_observation(&self.spec, self.successors.values().row(index as usize, self.observation_len), Moment::Reset)?;
        }
        self.rewards.fill(0.0);
        self.terminated.fill(false);
        self.truncated.fill(false);
        self.returns.fill(0.0);
        self.lengths_steps.fill(0);
        self.episodes_left.fill(usize::MAX);
        self.ended.clear();
        self.finished.clear();
        self.needs_reset = None;
        Ok(())
    }

    /// Let the environment at `index` play only so many `episodes`, the one under way included, until [`Self::reset`], since nobody needs
    /// more. After the last it is neither reset nor stepped: its action is still to be given, and what it last observed and was rewarded
    /// with stays in its row. Parts of a task ([`Outcome`]) are one episode here.
    pub fn limit_episodes(&mut self, index: usize, episodes: usize) {
        self.episodes_left[index] = episodes;
    }

    /// Step every environment that has [episodes left](Self::limit_episodes), and reset those whose episode ended if they still have.
    ///
    /// # Errors
    /// - [`EnvironmentError::ActionCount`] and [`EnvironmentError::InvalidAction`] before anything was stepped;
    /// - [`EnvironmentError::NeedsReset`] before the first reset;
    /// - those of the environments, and [`EnvironmentError::NotFinite`]. Some have been stepped then and some not, so a reset is needed.
    pub fn step(&mut self, actions: Actions<'_>) -> Result<(), EnvironmentError> {
        self.step_each(actions, || (), || ())
    }

    /// As [`Self::step`], with a call of `before_step` before each of their steps and of `before_reset` before each of their resets: some
    /// take seconds.
    ///
    /// # Errors
    /// Those of [`Self::step`].
    pub fn step_each(
        &mut self,
        actions: Actions<'_>,
        mut before_step: impl FnMut(),
        before_reset: impl FnMut(),
    ) -> Result<(), EnvironmentError> {
        if let Some(when) = self.needs_reset {
            return Err(self.spec.needs_reset(when));
        }
        self.check(actions)?;
        self.needs_reset = Some("after a step that failed");
        self.ended.clear();
        self.finished.clear();
        match actions {
            Actions::Discrete(indices) => {
                for (environment, &index) in indices.iter().enumerate() {
                    self.step_one(environment, Action::Discrete(index as usize), &mut before_step)?;
                }
            }
            Actions::Continuous(values) => {
                for (environment, action) in values.chunks_exact(values.len() / self.len()).enumerate() {
                    self.step_one(environment, Action::Continuous(action), &mut before_step)?;
                }
            }
        }
        self.restart_finished(before_reset)?;
        self.needs_reset = None;
        Ok(())
    }

    /// What to act on next, E x observation: where an episode ended, the first observation of the next one.
    pub fn observations(&self) -> Values<'_> {
        if self.ended.is_empty() { self.successors.values() } else { self.restarted.values() }
    }

    /// What the last step led to, E x observation: where an episode ended, its last observation.
    pub fn next_observations(&self) -> Values<'_> {
        self.successors.values()
    }

    /// Rewards of the last step.
    pub fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// Whether the last step ended an episode inside the problem (see [`Step`](super::Step)).
    pub fn terminated(&self) -> &[bool] {
        &self.terminated
    }

    /// Whether the last step was cut off from outside (see [`Step`](super::Step)).
    pub fn truncated(&self) -> &[bool] {
        &self.truncated
    }

    /// Episodes that ended in the last step, in the order of their environments: where episodes are parts of a task that goes on
    /// ([`Outcome`]), the whole of it once it is over.
    pub fn finished_episodes(&self) -> &[FinishedEpisode] {
        &self.finished
    }

    /// Refuse a batch as a whole, so that a bad action does not leave half of the environments a step ahead.
    fn check(&self, actions: Actions<'_>) -> Result<(), EnvironmentError> {
        match (actions, &self.spec.action) {
            (Actions::Discrete(indices), ActionSpace::Discrete { n }) => {
                self.check_count(indices.len(), 1)?;
                let outside = |index: &&i32| usize::try_from(**index).map_or(true, |index| index >= *n);
                indices.iter().find(outside).map_or(Ok(()), |index| Err(self.spec.invalid_action(index)))
            }
            (Actions::Continuous(values), ActionSpace::Box { low, .. }) => {
                self.check_count(values.len(), low.len())?;
                values.iter().find(|value| !value.is_finite()).map_or(Ok(()), |value| Err(self.spec.invalid_action(value)))
            }
            (Actions::Discrete(_), ActionSpace::Box { .. }) => Err(self.spec.invalid_action("index")),
            (Actions::Continuous(_), ActionSpace::Discrete { .. }) => Err(self.spec.invalid_action("vector")),
        }
    }

    fn check_count(&self, given: usize, action_len: usize) -> Result<(), EnvironmentError> {
        let environments = self.len();
        let expected = environments * action_len;
        if given == expected {
            return Ok(());
        }
        Err(EnvironmentError::ActionCount { id: self.spec.id.clone(), environments, given, expected })
    }

    fn step_one(&mut self, index: usize, action: Action<'_>, before: &mut impl FnMut()) -> Result<(), EnvironmentError> {
        if self.episodes_left[index] == 0 {
            return Ok(());
        }
        before();
        let observation = self.successors.row_mut(index, self.observation_len);
        let step = self.environments[index].step(action, observation)?;
        let during = Moment::Step(self.lengths_steps[index] + 1);
        check_observation(&self.spec, self.successors.values().row(index, self.observation_len), during)?;
        self.spec.check_reward(step.reward, during)?;
        self.rewards[index] = step.reward as f32;
        self.terminated[index] = step.terminated;
        self.truncated[index] = step.truncated;
        self.returns[index] += step.reward;
        self.lengths_steps[index] += 1;
        if step.ended() {
            let (sum, steps) = (std::mem::take(&mut self.returns[index]), std::mem::take(&mut self.lengths_steps[index]));
            let finished = match self.environments[index].outcome() {
                Outcome::SumOfRewards => Some((sum, steps, false)),
                Outcome::Unfinished => None,
                Outcome::Finished { score, length_steps } => Some((score, length_steps, false)),
                Outcome::CutOff { score, length_steps } => Some((score, length_steps, true)),
            };
            self.ended.push(index);
            if let Some((episode_return, length_steps, is_cut_off)) = finished {
                self.spec.check_score(episode_return, during)?;
                self.episodes_left[index] -= 1;
                self.finished.push(FinishedEpisode { environment: index, episode_return, length_steps, is_cut_off });
            }
        }
        Ok(())
    }

    /// Reset the environments whose episode ended and that play another. A step that ends no episode copies nothing: `successors` then
    /// serves as both.
    fn restart_finished(&mut self, mut before: impl FnMut()) -> Result<(), EnvironmentError> {
        if self.ended.is_empty() {
            return Ok(());
        }
        self.restarted.values_mut().copy_from(self.successors.values());
        for &index in self.ended.iter().filter(|&&index| self.episodes_left[index] > 0) {
            before();
            let observation = self.restarted.row_mut(index, self.observation_len);
            self.environments[index].reset(None, observation)?;
            check_observation(&self.spec, self.restarted.values().row(index, self.observation_len), Moment::Reset)?;
        }
        Ok(())
    }
}

/// Refuse a NaN or an infinity, which would stay in the statistics of observations and in the replay for ever. Bytes are always finite.
fn check_observation(spec: &EnvironmentSpec, observation: Values<'_>, during: Moment) -> Result<(), EnvironmentError> {
    observation.as_f32().map_or(Ok(()), |observation| spec.check_observation(observation, during))
}
