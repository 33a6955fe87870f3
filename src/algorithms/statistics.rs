//! Statistics of what actors see, for normalising it: each actor keeps its own and publishes them through the segment;
//! learners merge them all.
//!
//! Means and variances follow Chan et al. (1979), "Updating formulae and a pairwise algorithm for
//! computing sample variances".

use crate::networks::InputScaling;

/// Added to a variance before it divides, so that rounding errors of what never varies stay small.
const EPSILON: f64 = 1e-8;

/// What is normalised, and how much there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Normalisation {
    /// Observations are scaled to mean 0 and variance 1.
    pub observations: bool,
    /// Rewards are divided by the standard deviation of the discounted return.
    pub rewards: bool,
    /// Elements of an observation.
    pub length: usize,
}

impl Normalisation {
    /// Whether there is anything to do.
    pub fn is_needed(self) -> bool {
        self.observations || self.rewards
    }

    /// Values that an actor publishes: mean and variance of each element of the observation, and of the return.
    pub fn statistics_values(self) -> usize {
        if self.is_needed() { 2 * self.length + 2 } else { 0 }
    }
}

/// Count, mean and variance of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Moments {
    count: f64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    pub(super) squares: f64,
}

impl Moments {
    fn new(count: u64, mean: f32, variance: f32) -> Self {
        let count = count as f64;
        Self { count, mean: f64::from(mean), squares: f64::from(variance) * count }
    }

    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let difference = value - self.mean;
        self.mean += difference / self.count;
        self.squares += difference * (value - self.mean);
    }

    fn merge(&mut self, other: Self) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let difference = other.mean - self.mean;
        self.squares += other.squares + difference * difference * self.count * other.count / count;
        self.mean += difference * other.count / count;
        self.count = count;
    }

    /// At most the largest f32, as it is published: with an infinite one everything would be scaled to 0 from then on.
    fn variance(&self) -> f64 {
        if self.count > 0.0 { (self.squares / self.count).min(f64::from(f32::MAX)) } else { 1.0 }
    }
}

/// What one actor has seen.
#[derive(Debug, Clone)]
pub struct RunningStatistics {
    seen: Statistics,
    /// Discounted return so far, per environment.
    discounted: Vec<f64>,
    gamma: f64,
}

impl RunningStatistics {
    /// Nothing seen yet, of `environments` environments with observations of `length` elements.
    pub fn new(length: usize, environments: usize, gamma: f64) -> Self {
        Self { seen: Statistics::new(length), discounted: vec![0.0; environments], gamma }
    }

    /// Go on from what was published last: `values`, and `counts` of observations and returns.
    pub fn resume(&mut self, values: &[f32], counts: [u64; 2]) {
        self.seen.take_in(values, counts, |moments, published| *moments = published);
    }

    /// Take in what was observed: environments x elements.
    pub fn observe(&mut self, observations: &[f32]) {
        for observation in observations.chunks_exact(self.seen.observations.len()) {
            for (moments, value) in self.seen.observations.iter_mut().zip(observation) {
                moments.add(f64::from(*value));
            }
        }
    }

    /// Take in the reward of one environment's step.
    pub fn reward(&mut self, environment: usize, reward: f32, ended: bool) {
        let discounted = &mut self.discounted[environment];
        *discounted = *discounted * self.gamma + f64::from(reward);
        self.seen.returns.add(*discounted);
        if ended {
            *discounted = 0.0;
        }
    }

    /// Write what to publish into `values`; see [`Statistics::publish`].
    pub fn publish(&self, values: &mut [f32]) -> [u64; 2] {
        self.seen.publish(values)
    }
}

/// What all actors together have seen, or one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    observations: Vec<Moments>,
    returns: Moments,
}

impl Statistics {
    /// Nothing seen yet, of observations of `length` elements.
    pub fn new(length: usize) -> Self {
        Self { observations: vec![Moments::default(); length], returns: Moments::default() }
    }

    /// Write what to publish into `values`: means, then variances of the observations' elements, then mean and variance
    /// of the returns. Returns how many observations and returns there were.
    // The moments are published as f32; counts are whole.
    pub fn publish(&self, values: &mut [f32]) -> [u64; 2] {
        let length = self.observations.len();
        for (index, moments) in self.observations.iter().enumerate() {
            values[index] = moments.mean as f32;
            values[length + index] = moments.variance() as f32;
        }
        values[2 * length] = self.returns.mean as f32;
        values[2 * length + 1] = self.returns.variance() as f32;
        [self.observations.first().map_or(0, |moments| moments.count as u64), self.returns.count as u64]
    }

    /// Add what one actor has published; see [`Self::publish`].
    pub fn merge(&mut self, values: &[f32], counts: [u64; 2]) {
        self.take_in(values, counts, Moments::merge);
    }

    /// Call `take` with each of the moments and the published moments of the same numbers.
    fn take_in(&mut self, values: &[f32], counts: [u64; 2], take: impl Fn(&mut Moments, Moments)) {
        let length = self.observations.len();
        for (index, moments) in self.observations.iter_mut().enumerate() {
            take(moments, Moments::new(counts[0], values[index], values[length + index]));
        }
        take(&mut self.returns, Moments::new(counts[1], values[2 * length], values[2 * length + 1]));
    }

    /// The scaling of observations.
    pub fn input_scaling(&self) -> InputScaling {
        InputScaling {
            means: self.observations.iter().map(|moments| moments.mean as f32).collect(),
            inverse_deviations: self.observations.iter().map(|moments| (1.0 / (moments.variance() + EPSILON).sqrt()) as f32).collect(),
        }
    }

    /// The factor of rewards. It is 1 while all returns were the same: otherwise the first other
    /// reward would become enormous.
    pub fn reward_scale(&self) -> f32 {
        if self.returns.variance() == 0.0 {
            return 1.0;
        }
        (1.0 / (self.returns.variance() + EPSILON).sqrt()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(step: usize) -> [f32; 2] {
        [(step as f32 * 0.37).sin() * 3.0 + 100.0, step as f32]
    }

    #[test]
    fn statistics_of_two_actors_merge_into_those_of_all_they_saw() {
        let (mut all, mut halves) = (RunningStatistics::new(2, 1, 0.9), [(); 2].map(|()| RunningStatistics::new(2, 1, 0.9)));
        for step in 0..1_000 {
            all.observe(&observation(step));
            halves[usize::from(step >= 300)].observe(&observation(step));
        }
        let merged = |parts: &[RunningStatistics]| {
            let mut statistics = Statistics::new(2);
            for part in parts {
                let mut values = [0.0; 6];
                let counts = part.publish(&mut values);
                statistics.merge(&values, counts);
            }
            statistics.input_scaling()
        };
        let (expected, found) = (merged(&[all]), merged(&halves));
        for (found, expected) in
            found.means.iter().zip(&expected.means).chain(found.inverse_deviations.iter().zip(&expected.inverse_deviations))
        {
            assert!((found - expected).abs() < 1e-4 * expected.abs(), "{found} is not {expected}");
        }
        assert!((expected.means[1] - 499.5).abs() < 1e-3);
    }

    #[test]
    fn an_actor_goes_on_from_what_it_published() {
        let mut first = RunningStatistics::new(2, 1, 0.9);
        (0..500).for_each(|step| first.observe(&observation(step)));
        let mut values = [0.0; 6];
        let counts = first.publish(&mut values);
        let mut second = RunningStatistics::new(2, 1, 0.9);
        second.resume(&values, counts);
        (500..1_000).for_each(|step| {
            first.observe(&observation(step));
            second.observe(&observation(step));
        });
        let (mut expected, mut found) = ([0.0; 6], [0.0; 6]);
        assert_eq!(first.publish(&mut expected), second.publish(&mut found));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-4 * expected.abs(), "{found} is not {expected}");
        }
    }

    #[test]
    fn rewards_that_were_all_zero_are_not_scaled() {
        let scale_after = |rewards: &[f32]| {
            let mut seen = RunningStatistics::new(2, 1, 0.0);
            rewards.iter().for_each(|&reward| seen.reward(0, reward, false));
            let (mut statistics, mut values) = (Statistics::new(2), [0.0; 6]);
            let counts = seen.publish(&mut values);
            statistics.merge(&values, counts);
            statistics.reward_scale()
        };
        assert_eq!(scale_after(&[0.0; 1_000]), 1.0);
        assert!((scale_after(&[0.5, -0.5]) - 2.0).abs() < 1e-5);
    }

    #[test]
    fn numbers_as_large_as_floats_may_be_are_scaled_to_others_than_0() {
        let (mut seen, large) = (RunningStatistics::new(1, 1, 0.0), [f32::MAX, f32::MAX, f32::MAX, -f32::MAX]);
        seen.observe(&large);
        large.iter().for_each(|&reward| seen.reward(0, reward, false));
        let (mut statistics, mut values) = (Statistics::new(1), [0.0; 4]);
        let counts = seen.publish(&mut values);
        statistics.merge(&values, counts);
        let mut scaled = large;
        statistics.input_scaling().apply(&mut scaled);
        // The difference of the last one from the mean is beyond all floats.
        assert_eq!(scaled, [10.0, 10.0, 10.0, -10.0]);
        assert!(statistics.reward_scale() > 0.0);
    }

    #[test]
    fn the_return_is_discounted_and_starts_again_with_the_episode() {
        let mut statistics = RunningStatistics::new(1, 1, 0.5);
        for (reward, ended) in [(1.0, false), (1.0, true), (3.0, false)] {
            statistics.reward(0, reward, ended);
        }
        let mut values = [0.0; 4];
        assert_eq!(statistics.publish(&mut values)[1], 3);
        // Returns 1, 1.5 and 3.
        assert!((values[2] - 5.5 / 3.0).abs() < 1e-6);
    }
}
