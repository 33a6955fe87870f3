//! What a network looks like: its shape, and where each tensor lies in the one flat buffer of parameters.
//!
//! Everything that moves parameters (parameter board, gradient exchange, checkpoints, both engines) sees a flat slice of `f32`;
//! only this file knows which part of it is which tensor.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::NetworkError;

/// Most parameters that a specification may ask for: 1 GiB of `f32`.
pub const MAXIMUM_PARAMETERS: usize = 1 << 28;

/// A multi-layer perceptron with ReLU after every hidden layer and a linear output.
///
/// With `dueling`, the last hidden layer feeds a value stream of one unit and an advantage stream of `outputs` units, which are combined
/// as `q = v + a - mean(a)` (Wang et al. 2016, "Dueling Network Architectures", equation 9).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    /// Columns of the input.
    pub inputs: usize,
    /// Units of each hidden layer; empty for a linear model.
    pub hidden: Vec<usize>,
    /// Columns of the output.
    pub outputs: usize,
    /// Whether value and advantage are separate streams.
    pub dueling: bool,
}

/// One tensor inside the flat buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name, for instance `layers.0.weight` (`[out, in]`, as PyTorch stores it) or `layers.0.bias` (`[out]`).
    pub name: String,
    /// Length of each dimension, row-major.
    pub shape: Vec<usize>,
    /// Index of the first element in the flat buffer.
    pub offset: usize,
}

impl TensorSpec {
    /// Number of elements.
    pub fn length(&self) -> usize {
        self.shape.iter().product()
    }

    /// Where the elements lie in the flat buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.length()
    }
}

/// One matrix product of the network: weights `[outputs, inputs]`, directly followed by `outputs` biases.
///
/// Value and advantage stream are one product with `1 + outputs` rows, the value first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinearSpec {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl MlpSpec {
    /// Checks that every layer has at least one unit and that the whole stays within [`MAXIMUM_PARAMETERS`].
    pub fn validate(&self) -> Result<(), NetworkError> {
        if self.inputs == 0 {
            return Err(NetworkError::EmptyLayer { layer: "the input".into() });
        }
        if self.outputs == 0 {
            return Err(NetworkError::EmptyLayer { layer: "the output".into() });
        }
        if let Some(index) = self.hidden.iter().position(|&units| units == 0) {
            return Err(NetworkError::EmptyLayer { layer: format!("hidden layer {index}") });
        }
        match self.checked_parameter_count() {
            Some(count) if count <= MAXIMUM_PARAMETERS => Ok(()),
            _ => Err(NetworkError::TooManyParameters { specification: self.clone(), limit: MAXIMUM_PARAMETERS }),
        }
    }

    /// Length of the flat buffer, in `f32` elements.
    ///
    /// # Panics
    /// When the number does not fit, which [`Self::validate`] excludes.
    pub fn parameter_count(&self) -> usize {
        self.checked_parameter_count().expect("the specification was validated")
    }

    fn checked_parameter_count(&self) -> Option<usize> {
        let head = self.outputs.checked_add(usize::from(self.dueling))?;
        let mut inputs = self.inputs;
        let mut count = 0usize;
        for outputs in self.hidden.iter().copied().chain([head]) {
            count = count.checked_add(inputs.checked_add(1)?.checked_mul(outputs)?)?;
            inputs = outputs;
        }
        Some(count)
    }

    /// All tensors in the order in which they lie in the flat buffer, without gaps.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let linears = self.linears();
        let mut tensors = Vec::with_capacity(2 * linears.len() + 2);
        let mut push = |name: String, shape: Vec<usize>, offset: usize| tensors.push(TensorSpec { name, shape, offset });
        for (index, linear) in linears.iter().enumerate() {
            let (weight, bias) = (linear.weight.start, linear.bias.start);
            if self.dueling && index == self.hidden.len() {
                push("value.weight".into(), vec![1, linear.inputs], weight);
                push("advantage.weight".into(), vec![self.outputs, linear.inputs], weight + linear.inputs);
                push("value.bias".into(), vec![1], bias);
                push("advantage.bias".into(), vec![self.outputs], bias + 1);
            } else {
                push(format!("layers.{index}.weight"), vec![linear.outputs, linear.inputs], weight);
                push(format!("layers.{index}.bias"), vec![linear.outputs], bias);
            }
        }
        tensors
    }

    /// The matrix products from input to output.
    pub(crate) fn linears(&self) -> Vec<LinearSpec> {
        let head = self.outputs + usize::from(self.dueling);
        let (mut inputs, mut offset) = (self.inputs, 0);
        let linear = |outputs: usize| {
            let weight = offset..offset + inputs * outputs;
            let bias = weight.end..weight.end + outputs;
            offset = bias.end;
            LinearSpec { inputs: std::mem::replace(&mut inputs, outputs), outputs, weight, bias }
        };
        self.hidden.iter().copied().chain([head]).map(linear).collect()
    }

    /// Fresh parameters: weights and biases uniform in ±1/√fan_in, PyTorch's default for linear layers.
    ///
    /// The same `seed` gives the same bits on every machine.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut parameters = Vec::with_capacity(self.parameter_count());
        for linear in self.linears() {
            let bound = 1.0 / (linear.inputs as f32).sqrt();
            parameters.extend((0..(linear.inputs + 1) * linear.outputs).map(|_| {
                // 24 random bits fill the mantissa; drawn here rather than by `rand`, whose sampling may change between releases.
                let unit = (generator.next_u64() >> 40) as f32 / (1u64 << 24) as f32;
                (2.0 * unit - 1.0) * bound
            }));
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specification(dueling: bool) -> MlpSpec {
        MlpSpec { inputs: 4, hidden: vec![64, 32], outputs: 3, dueling }
    }

    #[test]
    fn tensors_cover_the_flat_buffer_without_gap_or_overlap() {
        for dueling in [false, true] {
            let specification = specification(dueling);
            let mut end = 0;
            for tensor in specification.tensors() {
                assert_eq!(tensor.offset, end, "{}", tensor.name);
                end = tensor.range().end;
            }
            assert_eq!(end, specification.parameter_count());
        }
        assert_eq!(specification(false).parameter_count(), 5 * 64 + 65 * 32 + 33 * 3);
        assert_eq!(specification(true).parameter_count(), 5 * 64 + 65 * 32 + 33 * 4);
    }

    #[test]
    fn tensors_are_named_and_shaped_as_in_pytorch() {
        let names = |dueling| specification(dueling).tensors().into_iter().map(|t| format!("{} {:?}", t.name, t.shape)).collect::<Vec<_>>();
        assert_eq!(names(false)[..2], ["layers.0.weight [64, 4]", "layers.0.bias [64]"]);
        assert_eq!(names(false)[4..], ["layers.2.weight [3, 32]", "layers.2.bias [3]"]);
        assert_eq!(names(true)[4..], ["value.weight [1, 32]", "advantage.weight [3, 32]", "value.bias [1]", "advantage.bias [3]"]);
    }

    #[test]
    fn initialisation_is_uniform_within_the_fan_in_bound_and_repeats_from_its_seed() {
        let specification = MlpSpec { inputs: 16, hidden: vec![400], outputs: 2, dueling: false };
        let parameters = specification.initialise(7);
        assert_eq!(parameters, specification.initialise(7));
        assert_ne!(parameters, specification.initialise(8));
        let first = &parameters[..17 * 400];
        assert!(first.iter().all(|x| x.abs() <= 0.25));
        let mean = first.iter().sum::<f32>() / first.len() as f32;
        let variance = first.iter().map(|x| x * x).sum::<f32>() / first.len() as f32;
        // A uniform distribution on ±0.25 has variance 0.25² / 3; six standard errors of 6,800 draws.
        assert!(mean.abs() < 6.0 * 0.144 / 82.0, "{mean}");
        assert!((variance - 0.0625 / 3.0).abs() < 6.0 * 0.0187 / 82.0, "{variance}");
        assert!(parameters[17 * 400..].iter().all(|x| x.abs() <= 0.05));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let base = specification(true);
        let refused = |change: fn(&mut MlpSpec)| {
            let mut specification = base.clone();
            change(&mut specification);
            specification.validate().unwrap_err().to_string()
        };
        assert!(refused(|s| s.inputs = 0).contains("the input"));
        assert!(refused(|s| s.outputs = 0).contains("the output"));
        assert!(refused(|s| s.hidden[1] = 0).contains("hidden layer 1"));
        assert!(refused(|s| s.hidden = vec![1 << 20, 1 << 20]).contains("268435456"));
        assert!(refused(|s| s.hidden = vec![usize::MAX / 2, usize::MAX / 2]).contains("268435456"));
        assert!(base.validate().is_ok());
    }
}
