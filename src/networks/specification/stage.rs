//! The specification as what engines compute: a list of stages, each with its place in the flat buffer.
//!
//! A stage is one layer with parameters and the activation after it, so that an engine can do both in one pass.

use std::ops::Range;

use super::shape::{Shape, name};
use super::{Head, Layer, MAXIMUM_PARAMETERS, NetworkError, NetworkSpec};

/// One step of the computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) operation: Operation,
    /// Values of one row that enter.
    pub(crate) inputs: usize,
    /// Values of one row that leave.
    pub(crate) outputs: usize,
    /// Where the weights lie, directly followed by the biases; both are empty without parameters.
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
    /// Activation after the operation.
    pub(crate) activation: Activation,
    /// Whether the stage is the product of all heads.
    pub(crate) is_head: bool,
}

/// What a stage computes before its activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `weight[outputs, inputs] · input + bias`.
    Dense,
    /// From the image of a window to the places of its kernel; transposed, from the places to the image.
    Convolution { window: Window, transposed: bool },
    /// Images become rows of values.
    Flatten([usize; 3]),
    /// Rows of values become images.
    Unflatten([usize; 3]),
    /// A value and advantages become `q = v + a - mean(a)`.
    Dueling,
}

/// Activation after an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    None,
    Relu,
    Tanh,
}

/// A square kernel on an image: a convolution takes its image to its places, a transposed convolution the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Channels, height and width of the image.
    pub(crate) image: [usize; 3],
    /// Channels, and how many places the kernel has down and across.
    pub(crate) places: [usize; 3],
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

impl Stage {
    /// Shape of the weights as PyTorch stores them.
    pub(crate) fn weight_shape(&self) -> Vec<usize> {
        match self.operation {
            // A transposed convolution has `[in, out, height, width]`, which also are the places and the image.
            Operation::Convolution { window, .. } => vec![window.places[0], window.image[0], window.kernel, window.kernel],
            _ => vec![self.outputs, self.inputs],
        }
    }

    /// Multiplications with a weight that one row takes.
    pub(crate) fn products(&self) -> usize {
        match self.operation {
            Operation::Convolution { window, .. } => {
                let [_, down, across] = window.places;
                self.weight.len() * down * across
            }
            _ => self.weight.len(),
        }
    }

    /// Number of inputs of one output, as PyTorch counts it when it initialises.
    pub(super) fn fan_in(&self) -> usize {
        match self.operation {
            // PyTorch takes the second dimension of the weights, even if that is the output.
            Operation::Convolution { window, .. } => window.image[0] * window.kernel * window.kernel,
            _ => self.inputs,
        }
    }
}

impl NetworkSpec {
    /// The stages from input to output.
    ///
    /// # Errors
    /// What is wrong with the first layer that cannot be applied.
    pub(crate) fn stages(&self) -> Result<Vec<Stage>, NetworkError> {
        let mut shape = self.input_shape()?;
        let mut builder = Builder { stages: Vec::new(), end: 0, specification: self };
        for (index, layer) in self.layers.iter().enumerate() {
            let above = shape.after(index, layer)?;
            builder.push_layer(index, layer, shape, above)?;
            shape = above;
        }
        builder.push_head(shape)?;
        if builder.end == 0 { Err(NetworkError::EmptyLayer { layer: "the network".into() }) } else { Ok(builder.stages) }
    }
}

struct Builder<'a> {
    stages: Vec<Stage>,
    end: usize,
    specification: &'a NetworkSpec,
}

impl Builder<'_> {
    fn push_layer(&mut self, index: usize, layer: &Layer, below: Shape, above: Shape) -> Result<(), NetworkError> {
        let (inputs, outputs) = (below.values(), above.values());
        match (layer, below, above) {
            (Layer::Relu | Layer::Tanh, ..) => {
                let activation = if *layer == Layer::Relu { Activation::Relu } else { Activation::Tanh };
                let last = self.stages.last_mut().filter(|last| !last.bias.is_empty() && last.activation == Activation::None);
                let last = last.ok_or_else(|| NetworkError::NothingToActivate { layer: name(index, layer) })?;
                last.activation = activation;
                Ok(())
            }
            (Layer::Dense { .. }, ..) => self.push(Operation::Dense, inputs, outputs, inputs, outputs),
            (&Layer::Convolution { kernel, stride, .. }, Shape::Image(image), Shape::Image(places)) => {
                let window = Window { image, places, kernel, stride };
                self.push(Operation::Convolution { window, transposed: false }, inputs, outputs, window.taps(image[0]), places[0])
            }
            (&Layer::TransposedConvolution { kernel, stride, .. }, Shape::Image(places), Shape::Image(image)) => {
                let window = Window { image, places, kernel, stride };
                self.push(Operation::Convolution { window, transposed: true }, inputs, outputs, window.taps(places[0]), image[0])
            }
            (Layer::Flatten, Shape::Image(image), _) => self.push(Operation::Flatten(image), inputs, outputs, 0, 0),
            (Layer::Unflatten { shape }, ..) => self.push(Operation::Unflatten(*shape), inputs, outputs, 0, 0),
            // Values that are no image lie as they would when flattened.
            _ => Ok(()),
        }
    }

    fn push_head(&mut self, shape: Shape) -> Result<(), NetworkError> {
        let streams: &[usize] = match &self.specification.head {
            Head::None => return Ok(()),
            Head::Linear { outputs } => &[*outputs],
            Head::Dueling { outputs } => &[*outputs, 1],
            Head::Named(heads) => {
                check_names(heads.iter().map(|head| head.name.as_str()))?;
                &heads.iter().map(|head| head.outputs).collect::<Vec<_>>()
            }
        };
        let Shape::Flat(inputs) = shape else {
            return Err(NetworkError::NotFlat { layer: "the head".into(), found: shape.to_string() });
        };
        if streams.is_empty() || streams.contains(&0) {
            return Err(NetworkError::EmptyLayer { layer: "the output".into() });
        }
        let outputs = streams.iter().try_fold(0usize, |sum, &stream| sum.checked_add(stream));
        let outputs = outputs.ok_or_else(|| self.too_many())?;
        self.push(Operation::Dense, inputs, outputs, inputs, outputs)?;
        if let Some(stage) = self.stages.last_mut() {
            stage.is_head = true;
        }
        match self.specification.head {
            Head::Dueling { outputs: combined } => self.push(Operation::Dueling, outputs, combined, 0, 0),
            _ => Ok(()),
        }
    }

    /// A stage with `biases` biases, and `weights` weights for each of them.
    fn push(&mut self, operation: Operation, inputs: usize, outputs: usize, weights: usize, biases: usize) -> Result<(), NetworkError> {
        let end = |start: usize, length: Option<usize>| length.and_then(|length| start.checked_add(length));
        let weight_end = end(self.end, weights.checked_mul(biases));
        let bias_end = weight_end.and_then(|start| end(start, Some(biases))).filter(|&end| end <= MAXIMUM_PARAMETERS);
        let (Some(weight_end), Some(bias_end)) = (weight_end, bias_end) else { return Err(self.too_many()) };
        let (weight, bias) = (self.end..weight_end, weight_end..bias_end);
        self.end = bias_end;
        self.stages.push(Stage { operation, inputs, outputs, weight, bias, activation: Activation::None, is_head: false });
        Ok(())
    }

    fn too_many(&self) -> NetworkError {
        NetworkError::TooManyParameters { specification: Box::new(self.specification.clone()), limit: MAXIMUM_PARAMETERS }
    }
}

impl Window {
    /// Weights of one output channel, for an input of so many channels.
    fn taps(&self, channels: usize) -> usize {
        self.kernel.saturating_mul(self.kernel).saturating_mul(channels)
    }
}

/// Names of heads are unique, and nothing that a weights file or PyTorch would take apart.
fn check_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Result<(), NetworkError> {
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') && name != "layers"
    };
    for (index, name) in names.clone().enumerate() {
        if !is_plain(name) || names.clone().take(index).any(|other| other == name) {
            return Err(NetworkError::HeadName { name: name.to_owned() });
        }
    }
    Ok(())
}
