//! n-step transitions (Sutton 1988; in the form of Rainbow, Hessel et al. 2018): formed by the actor, before staging.
//!
//! A transition that is ready says "from this observation, this action, then n rewards discounted into one, and then
//! that observation". At the end of an episode the remaining ones are shorter. Terminated and truncated are kept apart:
//! only a terminated transition has no value behind it.
//!
//! Observations are bytes as they will lie in a row: those of their values, or of the names of their frames.

/// One environment's memory of its last n steps.
#[derive(Debug, Clone)]
pub struct NStep {
    steps: Vec<Pending>,
    first: usize,
    count: usize,
    gamma: f32,
}

#[derive(Debug, Clone, Default)]
struct Pending {
    observation: Vec<u8>,
    action: Vec<u32>,
    value: f32,
    reward: f32,
}

/// A transition that is ready to be staged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ready<'a> {
    /// Where it starts.
    pub observation: &'a [u8],
    /// What was done there, in 32-bit lanes.
    pub action: &'a [u32],
    /// Value that the actor gave to the action there.
    pub value: f32,
    /// Discounted sum of its rewards.
    pub reward: f32,
    /// Discount of what follows: gamma to the number of its steps.
    pub discount: f32,
    /// Where it ends.
    pub next_observation: &'a [u8],
    /// It ended inside the problem: nothing follows.
    pub terminated: bool,
    /// It was cut off: something would follow.
    pub truncated: bool,
}

/// One step of an environment.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Where it started.
    pub observation: &'a [u8],
    /// What was done, in 32-bit lanes.
    pub action: &'a [u32],
    /// Value that the actor gave to the action.
    pub value: f32,
    /// Reward.
    pub reward: f32,
    /// Where it led.
    pub next_observation: &'a [u8],
    /// See [`Ready::terminated`].
    pub terminated: bool,
    /// See [`Ready::truncated`].
    pub truncated: bool,
}

impl NStep {
    /// A memory of `steps` steps with discount factor `gamma` per step.
    pub fn new(steps: usize, gamma: f32) -> Self {
        Self { steps: vec![Pending::default(); steps.max(1)], first: 0, count: 0, gamma }
    }

    /// Take a step in and hand out what became ready.
    pub fn push(&mut self, step: Taken<'_>, mut ready: impl FnMut(Ready<'_>)) {
        let length = self.steps.len();
        let pending = &mut self.steps[(self.first + self.count) % length];
        pending.observation.clear();
        pending.observation.extend_from_slice(step.observation);
        pending.action.clear();
        pending.action.extend_from_slice(step.action);
        pending.value = step.value;
        pending.reward = step.reward;
        self.count += 1;
        let ended = step.terminated || step.truncated;
        while self.count > 0 && (ended || self.count == length) {
            let (reward, discount) = self.discounted();
            let oldest = &self.steps[self.first];
            ready(Ready {
                observation: &oldest.observation,
                action: &oldest.action,
                value: oldest.value,
                reward,
                discount,
                next_observation: step.next_observation,
                terminated: step.terminated,
                truncated: step.truncated,
            });
            self.first = (self.first + 1) % length;
            self.count -= 1;
        }
    }

    fn discounted(&self) -> (f32, f32) {
        (0..self.count).fold((0.0, 1.0), |(sum, discount), offset| {
            let reward = self.steps[(self.first + offset) % self.steps.len()].reward;
            (sum + discount * reward, discount * self.gamma)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: usize, rewards: &[f32], terminated: bool) -> Vec<(f32, f32, f32, f32, bool, bool)> {
        let mut memory = NStep::new(steps, 0.5);
        let mut out = Vec::new();
        for (index, &reward) in rewards.iter().enumerate() {
            let last = index + 1 == rewards.len();
            let taken = Taken {
                observation: &[index as u8],
                action: &[0],
                value: 0.0,
                reward,
                next_observation: &[index as u8 + 1],
                terminated: last && terminated,
                truncated: last && !terminated,
            };
            memory.push(taken, |ready| {
                out.push((
                    ready.observation[0].into(),
                    ready.reward,
                    ready.discount,
                    ready.next_observation[0].into(),
                    ready.terminated,
                    ready.truncated,
                ));
            });
        }
        out
    }

    #[test]
    fn one_step_transitions_pass_through() {
        assert_eq!(run(1, &[1.0, 2.0], true), [(0.0, 1.0, 0.5, 1.0, false, false), (1.0, 2.0, 0.5, 2.0, true, false)]);
    }

    #[test]
    fn three_step_returns_shorten_at_the_end_and_keep_truncation_apart() {
        assert_eq!(
            run(3, &[1.0, 2.0, 4.0, 8.0], false),
            [
                (0.0, 1.0 + 1.0 + 1.0, 0.125, 3.0, false, false),
                (1.0, 2.0 + 2.0 + 2.0, 0.125, 4.0, false, true),
                (2.0, 4.0 + 4.0, 0.25, 4.0, false, true),
                (3.0, 8.0, 0.5, 4.0, false, true),
            ]
        );
    }
}
