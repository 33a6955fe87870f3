//! Observation and action spaces, and single actions.

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::EnvironmentSpec;
use crate::values::{ValueBuffer, ValueType};

/// The most characters, all of them ASCII, in which [`EnvironmentSpec::spaces_in_words`] describes them; a hash stands for the rest.
const MOST_CHARACTERS: usize = 1_000;

/// A box of numbers that an environment shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationSpace {
    /// Type of the numbers.
    pub element: ValueType,
    /// Lengths of the dimensions. Images are channels, rows, columns; or rows, columns.
    pub shape: Vec<usize>,
    /// How many frames of equal size lie one after another along the first dimension; 1 if there is nothing to share. A replay
    /// stores each frame once, however many observations show it. An environment leaves 1 here: if it stacks frames itself,
    /// `environment.frames_per_observation` says how many.
    pub stack: usize,
    /// Whether each observation drops the oldest frame of the one before and appends one, and the first observation of an episode
    /// consists of copies of its first frame, as in all stacks that Shoal makes. An environment leaves `true` here, also if it
    /// stacks frames itself in another way: with an `environment.frames_per_observation` above 1 nobody relies on it.
    pub is_sliding: bool,
    /// Smallest values, flattened.
    pub low: Vec<f32>,
    /// Largest values, flattened.
    pub high: Vec<f32>,
}

impl ObservationSpace {
    /// A one-dimensional space within `low` and `high`, both of length N.
    pub fn vector<const N: usize>(low: [f32; N], high: [f32; N]) -> Self {
        Self { element: ValueType::F32, shape: vec![N], stack: 1, is_sliding: true, low: low.to_vec(), high: high.to_vec() }
    }

    /// A one-dimensional space of `length` numbers without bounds.
    pub fn unbounded(length: usize) -> Self {
        let (low, high) = (vec![f32::NEG_INFINITY; length], vec![f32::INFINITY; length]);
        Self { element: ValueType::F32, shape: vec![length], stack: 1, is_sliding: true, low, high }
    }

    /// Bytes of this shape, each from 0 to 255.
    pub fn bytes(shape: &[usize]) -> Self {
        let length = shape.iter().product();
        Self {
            element: ValueType::U8,
            shape: shape.to_vec(),
            stack: 1,
            is_sliding: true,
            low: vec![0.0; length],
            high: vec![255.0; length],
        }
    }

    /// A one-dimensional space from `-high` to `high`.
    pub fn symmetric<const N: usize>(high: [f32; N]) -> Self {
        Self::vector(high.map(|bound| -bound), high)
    }

    /// Number of values in one observation.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Room for one observation.
    pub fn zeros(&self) -> ValueBuffer {
        ValueBuffer::zeros(self.element, self.len())
    }

    /// Whether observations are images: rows of values from 0 to 255, with or without channels.
    pub fn is_image(&self) -> bool {
        self.shape.len() >= 2 && self.has_bounds(0.0, 255.0)
    }

    /// Whether there are values, all with these bounds.
    pub fn has_bounds(&self, low: f32, high: f32) -> bool {
        let all = |bounds: &[f32], wanted: f32| !bounds.is_empty() && bounds.iter().all(|&bound| bound == wanted);
        all(&self.low, low) && all(&self.high, high)
    }

    /// Whether there is nothing to observe.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What an environment accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl ActionSpace {
    /// Whether an environment takes this action: an index below `n`, or as many finite values as there are bounds.
    ///
    /// Values outside the bounds are taken, because the environment clips them. NaN and infinities are not: they
    /// come from a policy that has diverged, and would turn a reward into one silently.
    pub fn accepts(&self, action: Action<'_>) -> bool {
        match (self, action) {
            (Self::Discrete { n }, Action::Discrete(index)) => index < *n,
            (Self::Box { low, .. }, Action::Continuous(values)) => {
                values.len() == low.len() && values.iter().all(|value| value.is_finite())
            }
            _ => false,
        }
    }
}

impl fmt::Display for ActionSpace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discrete { n } => write!(formatter, "an index from 0 to {}", n.saturating_sub(1)),
            Self::Box { low, high } => write!(formatter, "{} finite values, clipped to {low:?} .. {high:?}", low.len()),
        }
    }
}

/// The arrays of whole numbers for which the indices of a discrete space stand: all combinations of the numbers. The last number
/// changes from each index to the next, as in NumPy's `unravel_index`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionArrays {
    /// How many values each number can have, flattened.
    pub counts: Vec<usize>,
    /// The smallest value of each number.
    pub start: Vec<i64>,
    /// Lengths of the dimensions.
    pub shape: Vec<usize>,
    /// NumPy's name for the type of the numbers.
    pub dtype: String,
}

impl ActionArrays {
    /// How many arrays there are; `None` if the parts do not fit each other, as in a damaged file.
    pub fn combinations(&self) -> Option<usize> {
        let product = |factors: &[usize]| factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor));
        let fit = self.start.len() == self.counts.len() && product(&self.shape) == Some(self.counts.len());
        if fit { product(&self.counts) } else { None }
    }
}

impl fmt::Display for ActionArrays {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counts, start, shape, dtype } = self;
        write!(formatter, "an array ({dtype} {shape:?}) of {counts:?} values from {start:?} on")
    }
}

impl EnvironmentSpec {
    /// What an agent observes in the environment and what it does there, in words that differ whenever either does.
    pub fn spaces_in_words(&self) -> String {
        let ObservationSpace { element, shape, .. } = &self.observation;
        let arrays = self.action_arrays.as_ref().map_or_else(String::new, |arrays| format!(" for {arrays}"));
        let words = format!("{} observed values ({} {shape:?}) and takes {}{arrays}", self.observation.len(), element.name(), self.action);
        if words.len() <= MOST_CHARACTERS {
            return words;
        }
        // The bounds of thousands of values have no room in a message, nor where a run describes itself.
        format!("{}... ({:032x})", &words[..MOST_CHARACTERS], XxHash3_128::oneshot(words.as_bytes()))
    }
}

/// One action for one environment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Index into a discrete space.
    Discrete(usize),
    /// Values of a box space, as many as its elements.
    Continuous(&'a [f32]),
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discrete(index) => write!(formatter, "{index}"),
            Self::Continuous(values) => write!(formatter, "{values:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::registry;

    #[test]
    fn indices_that_stand_for_other_arrays_are_told_apart() {
        let of_counts = |counts: [usize; 2]| {
            let arrays = ActionArrays { counts: counts.to_vec(), start: vec![0, 0], shape: vec![2], dtype: "int64".into() };
            EnvironmentSpec {
                action: ActionSpace::Discrete { n: 6 },
                action_arrays: Some(arrays),
                ..registry::spec("CartPole-v1").unwrap()
            }
        };
        let planned = of_counts([2, 3]).spaces_in_words();
        assert!(planned.ends_with("an index from 0 to 5 for an array (int64 [2]) of [2, 3] values from [0, 0] on"), "{planned}");
        assert_eq!(of_counts([2, 3]).spaces_in_words(), planned);
        assert_ne!(of_counts([3, 2]).spaces_in_words(), planned);
    }

    #[test]
    fn spaces_of_any_length_are_told_apart_in_few_words() {
        let of_last_bound = |bound: f32| {
            let mut high = vec![1.0; 5_000];
            high[4_999] = bound;
            EnvironmentSpec { action: ActionSpace::Box { low: vec![-1.0; 5_000], high }, ..registry::spec("Pendulum-v1").unwrap() }
        };
        let planned = of_last_bound(1.0).spaces_in_words();
        assert!(planned.len() < 2 * MOST_CHARACTERS);
        assert_eq!(of_last_bound(1.0).spaces_in_words(), planned);
        assert_ne!(of_last_bound(2.0).spaces_in_words(), planned);
    }
}
