//! Observation and action spaces.

/// A box of real numbers that an environment shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationSpace {
    /// Lengths of the dimensions.
    pub shape: Vec<usize>,
    /// Smallest values, flattened.
    pub low: Vec<f32>,
    /// Largest values, flattened.
    pub high: Vec<f32>,
}

impl ObservationSpace {
    /// Number of values in one observation.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is nothing to observe.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What an environment accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionSpace {
    /// One of `n` actions, numbered from 0.
    Discrete {
        /// How many.
        n: usize,
    },
    /// A vector within bounds; values outside are clipped by the environment as Gymnasium's does.
    Box {
        /// Smallest values.
        low: Vec<f32>,
        /// Largest values.
        high: Vec<f32>,
    },
}
