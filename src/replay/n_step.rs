//! n-step returns (Sutton 1988; in the form of Rainbow, Hessel et al. 2018), formed before a transition is staged.
//!
//! A transition says "from here, with this action, then n rewards discounted into one, and then that observation". At
//! the end of an episode the remaining ones are shorter.

/// One environment's memory of its last n steps. `T` is what a transition keeps of the step in which it starts.
#[derive(Debug, Clone)]
pub struct NStep<T> {
    steps: Vec<Pending<T>>,
    first: usize,
    count: usize,
    gamma: f32,
}

#[derive(Debug, Clone, Default)]
struct Pending<T> {
    start: T,
    reward: f64,
}

/// The rewards of a transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Return {
    /// Their discounted sum.
    pub reward: f64,
    /// Discount of what follows: gamma to the number of steps, whether or not something follows.
    pub discount: f32,
}

impl<T: Clone + Default> NStep<T> {
    /// A memory of `steps` steps with discount factor `gamma` per step.
    pub fn new(steps: usize, gamma: f32) -> Self {
        Self { steps: vec![Pending::default(); steps.max(1)], first: 0, count: 0, gamma }
    }

    /// Take in a step that earned `reward`, and call `ready` for each transition that ends with it: for one once n
    /// steps are there, for all that are under way if the episode `ended`. `remember` writes what is to be kept of
    /// the step over what was kept of an earlier one.
    pub fn push(&mut self, reward: f64, ended: bool, remember: impl FnOnce(&mut T), mut ready: impl FnMut(&mut T, Return)) {
        let newest = self.place(self.count);
        let pending = &mut self.steps[newest];
        pending.reward = reward;
        remember(&mut pending.start);
        self.count += 1;
        while self.count > 0 && (ended || self.count == self.steps.len()) {
            let rewards = self.discounted();
            ready(&mut self.steps[self.first].start, rewards);
            self.first = self.place(1);
            self.count -= 1;
        }
    }

    /// Index of the step that came `offset` steps after the first, where `offset` is at most the length of the ring:
    /// wraps around without a division.
    fn place(&self, offset: usize) -> usize {
        let place = self.first + offset;
        if place < self.steps.len() { place } else { place - self.steps.len() }
    }

    fn discounted(&self) -> Return {
        let none = Return { reward: 0.0, discount: 1.0 };
        (0..self.count).fold(none, |Return { reward, discount }, offset| {
            let next = self.steps[self.place(offset)].reward;
            Return { reward: reward + f64::from(discount) * next, discount: discount * self.gamma }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: usize, rewards: &[f64], ends: bool) -> Vec<(usize, f64, f32)> {
        let mut memory = NStep::new(steps, 0.5);
        let mut out = Vec::new();
        for (index, &reward) in rewards.iter().enumerate() {
            let ended = ends && index + 1 == rewards.len();
            memory.push(reward, ended, |start| *start = index, |&mut start, rewards| out.push((start, rewards.reward, rewards.discount)));
        }
        out
    }

    #[test]
    fn one_step_transitions_pass_through() {
        assert_eq!(run(1, &[1.0, 2.0], true), [(0, 1.0, 0.5), (1, 2.0, 0.5)]);
    }

    #[test]
    fn three_step_returns_shorten_at_the_end_of_an_episode_alone() {
        let whole = [(0, 1.0 + 1.0 + 1.0, 0.125), (1, 2.0 + 2.0 + 2.0, 0.125)];
        assert_eq!(run(3, &[1.0, 2.0, 4.0, 8.0], false), whole);
        assert_eq!(run(3, &[1.0, 2.0, 4.0, 8.0], true), [whole[0], whole[1], (2, 4.0 + 4.0, 0.25), (3, 8.0, 0.5)]);
    }
}
