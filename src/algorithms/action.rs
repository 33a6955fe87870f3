//! Actions of a row of environments: as the policy chose them and the replay keeps them, and as
//! the environments take them.
//!
//! A continuous policy chooses in units of the action range: -1 and 1 stand for the environment's bounds, so that
//! noise, entropy and learning rates mean the same in every environment. A policy that draws from a normal distribution
//! may choose beyond them. The replay keeps that choice, whose probability is known; the environment takes the nearest
//! action within its bounds.

use rand::RngExt;

use super::{AlgorithmError, Random};
use crate::environments::{ActionSpace, Actions, EnvironmentSpec};
use crate::experience::Choice;

/// The actions of all environments of a process.
#[derive(Debug, Clone)]
pub struct ActionBatch {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Discrete(Vec<i32>),
    Continuous { chosen: Vec<f32>, scaled: Vec<f32>, ranges: Vec<Range> },
}

/// Bounds of one element of an action.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: f32,
    high: f32,
}

impl Range {
    /// The environment's value for `chosen`: the bound if `chosen` lies beyond it. NaN stays NaN.
    fn scale(self, chosen: f32) -> f32 {
        let Self { low, high } = self;
        // Clamped last, so that rounding cannot lead out of the bounds either.
        (0.5 * (low + high) + 0.5 * (high - low) * chosen).clamp(low, high)
    }
}

/// One action, to be chosen.
#[derive(Debug)]
pub enum ActionMut<'a> {
    /// An index.
    Discrete(&'a mut i32),
    /// A value for every element; what lies beyond [-1, 1] is cut off for the environment.
    Continuous(&'a mut [f32]),
}

impl ActionMut<'_> {
    /// Choose action number `index` of discrete actions with these `values`.
    pub fn choose(self, index: usize, values: &[f32]) -> Choice {
        if let Self::Discrete(action) = self {
            *action = i32::try_from(index).unwrap_or(0);
        }
        Choice::of_value(values[index])
    }
}

impl ActionBatch {
    /// Room for the actions of `environments` environments.
    pub fn new(space: &ActionSpace, environments: usize) -> Self {
        let kind = match space {
            ActionSpace::Discrete { .. } => Kind::Discrete(vec![0; environments]),
            ActionSpace::Box { low, high } => {
                let values = vec![0.0; environments * low.len()];
                Kind::Continuous {
                    chosen: values.clone(),
                    scaled: values,
                    ranges: low.iter().zip(high).map(|(&low, &high)| Range { low, high }).collect(),
                }
            }
        };
        Self { kind }
    }

    /// The action of one environment, to be chosen.
    pub fn row_mut(&mut self, environment: usize) -> ActionMut<'_> {
        match &mut self.kind {
            Kind::Discrete(indices) => ActionMut::Discrete(&mut indices[environment]),
            Kind::Continuous { chosen, ranges, .. } => ActionMut::Continuous(&mut chosen[environment * ranges.len()..][..ranges.len()]),
        }
    }

    /// The action of one environment as the replay keeps it, in 32-bit lanes.
    pub fn lanes(&self, environment: usize) -> &[u32] {
        match &self.kind {
            Kind::Discrete(indices) => bytemuck::cast_slice(&indices[environment..=environment]),
            Kind::Continuous { chosen, ranges, .. } => bytemuck::cast_slice(&chosen[environment * ranges.len()..][..ranges.len()]),
        }
    }

    /// All actions as the replay keeps them, in 32-bit lanes, environment after environment.
    pub fn all_lanes(&self) -> &[u32] {
        match &self.kind {
            Kind::Discrete(indices) => bytemuck::cast_slice(indices),
            Kind::Continuous { chosen, .. } => bytemuck::cast_slice(chosen),
        }
    }

    /// All actions as the environments take them: continuous ones scaled to their bounds, and none beyond.
    pub fn for_environments(&mut self) -> Actions<'_> {
        match &mut self.kind {
            Kind::Discrete(indices) => Actions::Discrete(indices),
            Kind::Continuous { chosen, scaled, ranges } => {
                let length = ranges.len();
                for (scaled, chosen) in scaled.chunks_exact_mut(length).zip(chosen.chunks_exact(length)) {
                    for ((scaled, chosen), range) in scaled.iter_mut().zip(chosen).zip(&*ranges) {
                        *scaled = range.scale(*chosen);
                    }
                }
                Actions::Continuous(scaled)
            }
        }
    }
}

/// The number of actions to choose from; other action spaces are refused in the name of `algorithm`.
///
/// # Errors
/// [`AlgorithmError::ActionSpace`].
pub fn discrete_actions(algorithm: &'static str, environment: &EnvironmentSpec) -> Result<usize, AlgorithmError> {
    match environment.action {
        ActionSpace::Discrete { n } => Ok(n),
        ActionSpace::Box { .. } => Err(AlgorithmError::ActionSpace {
            algorithm,
            environment: environment.id.clone(),
            needed: "discrete",
            found: "continuous",
            advice: "\"sac\", \"td3\", \"ddpg\", \"ppo\" or \"appo\"",
        }),
    }
}

/// The number of elements of a continuous action; other action spaces are refused in the name of `algorithm`.
///
/// # Errors
/// [`AlgorithmError::ActionSpace`].
pub fn continuous_actions(algorithm: &'static str, environment: &EnvironmentSpec) -> Result<usize, AlgorithmError> {
    match &environment.action {
        ActionSpace::Box { low, .. } => Ok(low.len()),
        ActionSpace::Discrete { .. } => Err(AlgorithmError::ActionSpace {
            algorithm,
            environment: environment.id.clone(),
            needed: "continuous",
            found: "discrete",
            advice: "\"dqn\", \"ppo\" or \"appo\"",
        }),
    }
}

/// Refuse bounds that no action can be scaled to: infinite or NaN, in the wrong order, or so far apart that their
/// distance overflows.
pub(super) fn check_bounds(algorithm: &'static str, environment: &EnvironmentSpec) -> Result<(), AlgorithmError> {
    let ActionSpace::Box { low, high } = &environment.action else { return Ok(()) };
    match low.iter().zip(high).position(|(low, high)| !(0.0..=f32::MAX).contains(&(high - low))) {
        Some(index) => {
            Err(AlgorithmError::Unbounded { algorithm, environment: environment.id.clone(), index, low: low[index], high: high[index] })
        }
        None => Ok(()),
    }
}

/// Index of the largest value; the first of equals.
pub fn greedy(values: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// Draw a continuous action, every element uniform in [-1, 1]: what a policy does in the first steps of a run.
///
/// ```
/// use shoal::prelude::*;
///
/// /// `Policy::choose_randomly` of an algorithm with continuous actions.
/// fn choose_randomly(random: &mut Random, action: ActionMut<'_>) -> Choice {
///     if let ActionMut::Continuous(action) = action {
///         uniform(random, action);
///     }
///     Choice::default()
/// }
///
/// /// The head of its network.
/// fn head(environment: &EnvironmentSpec) -> Result<Head, AlgorithmError> {
///     Ok(Head::Linear { outputs: continuous_actions("my_algorithm", environment)? })
/// }
/// ```
pub fn uniform(random: &mut Random, action: &mut [f32]) {
    for value in action {
        *value = random.random_range(-1.0..=1.0);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::algorithms::standardised::assert_standardised;

    #[test]
    fn continuous_actions_are_scaled_to_the_bounds_and_kept_as_chosen() {
        let space = ActionSpace::Box { low: vec![-2.0, 0.0], high: vec![2.0, 10.0] };
        let mut actions = ActionBatch::new(&space, 2);
        let ActionMut::Continuous(row) = actions.row_mut(1) else { panic!("the space is continuous") };
        row.copy_from_slice(&[1.0, -0.5]);
        assert_eq!(actions.lanes(1), [1.0f32.to_bits(), (-0.5f32).to_bits()]);
        assert_eq!(actions.for_environments(), Actions::Continuous(&[0.0, 5.0, 2.0, 2.5]));
    }

    #[test]
    fn what_was_chosen_beyond_the_bounds_is_kept_and_the_environment_takes_the_bound() {
        // Rounded, the middle and half of the length of the second range lead beyond its end.
        let space = ActionSpace::Box { low: vec![-2.0, -0.1], high: vec![2.0, 0.7] };
        let mut actions = ActionBatch::new(&space, 3);
        let chosen = [[1.7, 1.0], [-1.01, -1.0], [f32::NAN, -40.0]];
        for (environment, chosen) in chosen.iter().enumerate() {
            let ActionMut::Continuous(row) = actions.row_mut(environment) else { panic!("the space is continuous") };
            row.copy_from_slice(chosen);
        }
        assert_eq!(actions.lanes(0), [1.7f32.to_bits(), 1.0f32.to_bits()]);
        let Actions::Continuous(taken) = actions.for_environments() else { panic!("the space is continuous") };
        assert_eq!(taken[..4], [2.0, 0.7, -2.0, -0.1]);
        assert!(taken[4].is_nan() && taken[5] == -0.1, "what is no number is not made one: {taken:?}");
    }

    #[test]
    fn discrete_actions_pass_through() {
        let mut actions = ActionBatch::new(&ActionSpace::Discrete { n: 3 }, 2);
        let ActionMut::Discrete(index) = actions.row_mut(1) else { panic!("the space is discrete") };
        *index = 2;
        assert_eq!(actions.lanes(1), [2]);
        assert_eq!(actions.for_environments(), Actions::Discrete(&[0, 2]));
    }

    #[test]
    fn uniform_actions_reach_from_bound_to_bound_in_each_element_by_itself() {
        let mut random = Random::seed_from_u64(4);
        let (mut action, mut least, mut largest) = ([0.0f32; 2], 0.0f32, 0.0f32);
        assert_standardised(|| {
            uniform(&mut random, &mut action);
            (least, largest) = action.iter().fold((least, largest), |(least, largest), value| (least.min(*value), largest.max(*value)));
            // From -1 to 1, the variance is a third.
            action.map(|value| f64::from(value) * 3.0f64.sqrt())
        });
        assert!((-1.0..-0.99).contains(&least) && (0.99..=1.0).contains(&largest), "from {least} to {largest}");
    }
}
