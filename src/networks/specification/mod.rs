//! What a network looks like: its layers, and where each tensor lies in the one flat buffer of parameters.
//!
//! Everything that moves parameters (parameter board, gradient exchange, checkpoints, both engines) sees a flat slice
//! of `f32`; only the files of this folder know which part of it is which tensor.

mod shape;
mod stage;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use self::shape::Shape;
pub(crate) use self::stage::{Activation, Operation, Stage, Window};
use super::NetworkError;
use crate::config::schema::Initialisation;
use crate::values::ValueType;

/// Most parameters that a specification may ask for: 1 GiB of `f32`.
pub const MAXIMUM_PARAMETERS: usize = 1 << 28;

/// Most values that one row may have anywhere in a network: 1 GiB of `f32`.
pub const MAXIMUM_VALUES: usize = 1 << 28;

/// A network: what enters it, its layers from first to last, and what gives the output.
///
/// Layers with parameters are numbered from 0 and called as in a `torch.nn.ModuleList` of them: `layers.0.weight`,
/// `layers.0.bias`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// The input.
    pub input: InputSpec,
    /// The layers, in the order in which they are applied.
    pub layers: Vec<Layer>,
    /// What gives the output.
    pub head: Head,
}

/// What one row of the input is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Type of the elements.
    pub element: ValueType,
    /// Lengths of the dimensions: `[17]`, or `[channels, height, width]` for images.
    pub shape: Vec<usize>,
}

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layer {
    /// `units` weighted sums of all inputs, each with a bias (`torch.nn.Linear`).
    Dense {
        /// Outputs.
        units: usize,
    },
    /// A square kernel that moves over an image without padding (`torch.nn.Conv2d`).
    Convolution {
        /// Channels of the output.
        channels: usize,
        /// Height and width of the kernel.
        kernel: usize,
        /// Pixels from one place of the kernel to the next.
        stride: usize,
    },
    /// The adjoint of a convolution without padding (`torch.nn.ConvTranspose2d`): it gives an image of
    /// `(side - 1) × stride + kernel` pixels a side.
    TransposedConvolution {
        /// Channels of the output.
        channels: usize,
        /// Height and width of the kernel.
        kernel: usize,
        /// Pixels from where the kernel is put for one pixel to where it is put for the next.
        stride: usize,
    },
    /// Any shape as one row of values, channel after channel.
    Flatten,
    /// A row of values as an image: the opposite of [`Self::Flatten`].
    Unflatten {
        /// Channels, height and width.
        shape: [usize; 3],
    },
    /// Zero for what is negative; follows a layer with parameters.
    Relu,
    /// Hyperbolic tangent; follows a layer with parameters.
    Tanh,
}

/// What gives the output of a network.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Head {
    /// The last layer gives the output.
    None,
    /// One more dense layer, numbered like the others.
    Linear {
        /// Columns of the output.
        outputs: usize,
    },
    /// Two dense layers, `value` with one unit and `advantage` with `outputs` units, combined as `q = v + a - mean(a)`
    /// (Wang et al. 2016, "Dueling Network Architectures", equation 9).
    Dueling {
        /// Columns of the output.
        outputs: usize,
    },
    /// Dense layers side by side; their outputs follow each other in a row of the output.
    Named(Vec<NamedHead>),
}

/// One of several heads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedHead {
    /// First part of the names of the head's tensors: small letters, digits and `_`.
    pub name: String,
    /// Columns of the output that this head gives.
    pub outputs: usize,
}

/// One tensor inside the flat buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name, for instance `layers.0.weight` or `layers.0.bias`.
    pub name: String,
    /// Length of each dimension, row-major and as PyTorch stores it.
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

impl InputSpec {
    /// Rows of floats.
    pub fn floats(columns: usize) -> Self {
        Self { element: ValueType::F32, shape: vec![columns] }
    }
}

impl NetworkSpec {
    /// A multi-layer perceptron: dense layers of `hidden` units with ReLU after each, then `head`.
    pub fn perceptron(inputs: usize, hidden: &[usize], head: Head) -> Self {
        Self::of_input(InputSpec::floats(inputs), &[], hidden, head)
    }

    /// Convolutions, each given as `[channels, kernel, stride]`, then dense layers of `hidden` units,
    /// all with ReLU, then `head`.
    ///
    /// An input that is not one row of values is flattened before the dense layers.
    pub fn of_input(input: InputSpec, convolutions: &[[usize; 3]], hidden: &[usize], head: Head) -> Self {
        let convolution = |&[channels, kernel, stride]: &[usize; 3]| [Layer::Convolution { channels, kernel, stride }, Layer::Relu];
        let mut layers: Vec<Layer> = convolutions.iter().flat_map(convolution).collect();
        layers.extend((input.shape.len() != 1 || !layers.is_empty()).then_some(Layer::Flatten));
        layers.extend(hidden.iter().flat_map(|&units| [Layer::Dense { units }, Layer::Relu]));
        Self { input, layers, head }
    }

    /// From rows of `latent` values to images of `channels` x `side` x `side`: a transposed convolution of two channels
    /// with a kernel of half the side, ReLU, and one of `channels` whose kernel gives the rest.
    pub fn decoder(latent: usize, channels: usize, side: usize) -> Self {
        let transposed = |channels, kernel| Layer::TransposedConvolution { channels, kernel, stride: 1 };
        let first = side / 2;
        let layers =
            vec![Layer::Unflatten { shape: [latent, 1, 1] }, transposed(2, first), Layer::Relu, transposed(channels, side - first + 1)];
        Self { input: InputSpec::floats(latent), layers, head: Head::None }
    }

    /// Elements of one row of the input.
    ///
    /// # Panics
    /// When the number does not fit, which [`Self::validate`] excludes.
    pub fn inputs(&self) -> usize {
        self.input_shape().expect("the specification was validated").values()
    }

    /// Columns of the output.
    ///
    /// # Panics
    /// When a layer cannot be applied, which [`Self::validate`] excludes.
    pub fn outputs(&self) -> usize {
        match &self.head {
            Head::Linear { outputs } | Head::Dueling { outputs } => *outputs,
            Head::Named(heads) => heads.iter().map(|head| head.outputs).sum(),
            Head::None => {
                let shapes = self
                    .layers
                    .iter()
                    .enumerate()
                    .try_fold(self.input_shape(), |below, (index, layer)| below.map(|below| below.after(index, layer)));
                shapes.ok().and_then(Result::ok).expect("the specification was validated").values()
            }
        }
    }

    /// Units of the dense layers between input and head.
    pub fn hidden(&self) -> Vec<usize> {
        let units = |layer: &Layer| if let Layer::Dense { units } = layer { Some(*units) } else { None };
        self.layers.iter().filter_map(units).collect()
    }

    /// Columns of the output that the head called `name` gives; `None` without one.
    pub fn head_outputs(&self, name: &str) -> Option<usize> {
        let Head::Named(heads) = &self.head else { return None };
        heads.iter().find(|head| head.name == name).map(|head| head.outputs)
    }

    /// The convolutions, each as `[channels, kernel, stride]`.
    pub fn convolutions(&self) -> Vec<[usize; 3]> {
        let convolution = |layer: &Layer| match *layer {
            Layer::Convolution { channels, kernel, stride } => Some([channels, kernel, stride]),
            _ => None,
        };
        self.layers.iter().filter_map(convolution).collect()
    }

    /// Whether value and advantage are separate streams.
    pub fn is_dueling(&self) -> bool {
        matches!(self.head, Head::Dueling { .. })
    }

    /// Checks that every layer fits what reaches it and has something to compute, and that the whole stays within
    /// [`MAXIMUM_PARAMETERS`] and [`MAXIMUM_VALUES`].
    ///
    /// # Errors
    /// What is wrong with the first layer that cannot be applied.
    pub fn validate(&self) -> Result<(), NetworkError> {
        self.stages().map(drop)
    }

    /// Length of the flat buffer, in `f32` elements.
    ///
    /// # Panics
    /// When the specification is impossible, which [`Self::validate`] excludes.
    pub fn parameter_count(&self) -> usize {
        let stages = self.stages().expect("the specification was validated");
        stages.iter().map(|stage| stage.bias.end).max().unwrap_or(0)
    }

    /// All tensors in the order in which they lie in the flat buffer, without gaps.
    ///
    /// # Panics
    /// When the specification is impossible, which [`Self::validate`] excludes.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let stages = self.stages().expect("the specification was validated");
        let with_parameters = stages.iter().filter(|stage| !stage.bias.is_empty());
        let mut tensors = Vec::new();
        for (index, stage) in with_parameters.enumerate() {
            let parts = match &self.head {
                Head::Dueling { outputs } if stage.is_head => vec![("value", 1), ("advantage", *outputs)],
                Head::Named(heads) if stage.is_head => heads.iter().map(|head| (head.name.as_str(), head.outputs)).collect(),
                _ => {
                    let [weight, bias] = ["weight", "bias"].map(|tensor| format!("layers.{index}.{tensor}"));
                    tensors.push(TensorSpec { name: weight, shape: stage.weight_shape(), offset: stage.weight.start });
                    tensors.push(TensorSpec { name: bias, shape: vec![stage.bias.len()], offset: stage.bias.start });
                    continue;
                }
            };
            // All weights of the heads, then all biases: the heads are one product.
            let (mut weight, mut bias) = (stage.weight.start, stage.bias.start);
            let mut weights = |(name, outputs): &(&str, usize)| {
                let shape = vec![*outputs, stage.inputs];
                let tensor = TensorSpec { name: format!("{name}.weight"), shape, offset: weight };
                weight += tensor.length();
                tensor
            };
            tensors.extend(parts.iter().map(&mut weights));
            let mut biases = |(name, outputs): &(&str, usize)| {
                let tensor = TensorSpec { name: format!("{name}.bias"), shape: vec![*outputs], offset: bias };
                bias += outputs;
                tensor
            };
            tensors.extend(parts.iter().map(&mut biases));
        }
        tensors
    }

    /// Fresh parameters: weights and biases uniform in ±1/√fan_in, PyTorch's default for all of these layers.
    ///
    /// The same `seed` gives the same bits on every machine.
    ///
    /// # Panics
    /// When the specification is impossible, which [`Self::validate`] excludes.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        self.initialise_as(Initialisation::FanIn, seed)
    }

    /// Fresh parameters, drawn as `initialisation` says.
    ///
    /// # Panics
    /// As [`Self::initialise`].
    pub fn initialise_as(&self, initialisation: Initialisation, seed: u64) -> Vec<f32> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut parameters = Vec::with_capacity(self.parameter_count());
        for stage in self.stages().expect("the specification was validated") {
            let scale = 1.0 / (stage.fan_in() as f32).sqrt();
            // ReLU halves the mean square, and the mean square of a uniform number is a third of its bound's square.
            let keeps_size = initialisation == Initialisation::He && stage.activation == Activation::Relu;
            let bounds = if keeps_size { [6f32.sqrt() * scale, 0.0] } else { [scale, scale] };
            for (range, bound) in [stage.weight, stage.bias].into_iter().zip(bounds) {
                parameters.extend(range.map(|_| {
                    // 24 random bits fill the mantissa; drawn here rather than by `rand`, whose sampling may change
                    // between releases.
                    let unit = (generator.next_u64() >> 40) as f32 / (1u64 << 24) as f32;
                    (2.0 * unit - 1.0) * bound
                }));
            }
        }
        parameters
    }

    fn input_shape(&self) -> Result<Shape, NetworkError> {
        Shape::of_input(&self.input.shape)
    }
}

impl fmt::Display for NetworkSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:?}", self.input.element.name(), self.input.shape)?;
        self.layers.iter().try_for_each(|layer| write!(out, ", {layer}"))?;
        match &self.head {
            Head::None => Ok(()),
            Head::Linear { outputs } => write!(out, ", {outputs} outputs"),
            Head::Dueling { outputs } => write!(out, ", {outputs} dueling outputs"),
            Head::Named(heads) => heads.iter().try_for_each(|head| write!(out, ", {} outputs {}", head.outputs, head.name)),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense { units } => write!(out, "dense {units}"),
            Self::Convolution { channels, kernel, stride } => write!(out, "convolution {channels}@{kernel}/{stride}"),
            Self::TransposedConvolution { channels, kernel, stride } => {
                write!(out, "transposed convolution {channels}@{kernel}/{stride}")
            }
            Self::Flatten => write!(out, "flatten"),
            Self::Unflatten { shape } => write!(out, "unflatten to {shape:?}"),
            Self::Relu => write!(out, "relu"),
            Self::Tanh => write!(out, "tanh"),
        }
    }
}
