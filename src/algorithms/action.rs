//! Actions of a row of environments: as the policy chose them and the replay keeps them, and as the environments take them.
//!
//! A continuous policy chooses within [-1, 1] in every dimension, whatever the environment's bounds are: noise, entropy and
//! learning rates then mean the same everywhere.

use rand::RngExt;

use super::Random;
use crate::environments::{ActionSpace, Actions};

/// The actions of all environments of a process.
#[derive(Debug, Clone)]
pub struct ActionBatch {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Discrete(Vec<i32>),
    Continuous { chosen: Vec<f32>, scaled: Vec<f32>, centre: Vec<f32>, half_range: Vec<f32> },
}

/// One action, to be chosen.
#[derive(Debug)]
pub enum ActionMut<'a> {
    /// An index.
    Discrete(&'a mut i32),
    /// A value within [-1, 1] for every dimension.
    Continuous(&'a mut [f32]),
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
                    centre: low.iter().zip(high).map(|(low, high)| 0.5 * (low + high)).collect(),
                    half_range: low.iter().zip(high).map(|(low, high)| 0.5 * (high - low)).collect(),
                }
            }
        };
        Self { kind }
    }

    /// The action of one environment, to be chosen.
    pub fn row_mut(&mut self, environment: usize) -> ActionMut<'_> {
        match &mut self.kind {
            Kind::Discrete(indices) => ActionMut::Discrete(&mut indices[environment]),
            Kind::Continuous { chosen, centre, .. } => ActionMut::Continuous(&mut chosen[environment * centre.len()..][..centre.len()]),
        }
    }

    /// The action of one environment as the replay keeps it, in 32-bit lanes.
    pub fn lanes(&self, environment: usize) -> &[u32] {
        match &self.kind {
            Kind::Discrete(indices) => bytemuck::cast_slice(&indices[environment..=environment]),
            Kind::Continuous { chosen, centre, .. } => bytemuck::cast_slice(&chosen[environment * centre.len()..][..centre.len()]),
        }
    }

    /// All actions as the replay keeps them, in 32-bit lanes, environment after environment.
    pub fn all_lanes(&self) -> &[u32] {
        match &self.kind {
            Kind::Discrete(indices) => bytemuck::cast_slice(indices),
            Kind::Continuous { chosen, .. } => bytemuck::cast_slice(chosen),
        }
    }

    /// All actions as the environments take them: continuous ones scaled to their bounds.
    pub fn for_environments(&mut self) -> Actions<'_> {
        match &mut self.kind {
            Kind::Discrete(indices) => Actions::Discrete(indices),
            Kind::Continuous { chosen, scaled, centre, half_range } => {
                let length = centre.len();
                for (scaled, chosen) in scaled.chunks_exact_mut(length).zip(chosen.chunks_exact(length)) {
                    for (index, (scaled, chosen)) in scaled.iter_mut().zip(chosen).enumerate() {
                        *scaled = centre[index] + half_range[index] * chosen;
                    }
                }
                Actions::Continuous(scaled)
            }
        }
    }
}

/// Index of the largest value; the first of equals.
pub(super) fn greedy(values: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// A continuous action, every element uniform in [-1, 1].
pub(super) fn uniform(random: &mut Random, action: &mut [f32]) {
    for value in action {
        *value = random.random_range(-1.0..=1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn discrete_actions_pass_through() {
        let mut actions = ActionBatch::new(&ActionSpace::Discrete { n: 3 }, 2);
        let ActionMut::Discrete(index) = actions.row_mut(1) else { panic!("the space is discrete") };
        *index = 2;
        assert_eq!(actions.lanes(1), [2]);
        assert_eq!(actions.for_environments(), Actions::Discrete(&[0, 2]));
    }
}
