//! The native engine: networks on the calling thread, with a backward pass written by hand.
//!
//! The engine exists because a general framework spends most of the time of small networks on overheads: here one call
//! costs its arithmetic and little more. Nothing is allocated once the largest number of rows was seen.
//!
//! Between two layers, images lie with the channels of a pixel side by side; they enter, leave and are flattened as
//! PyTorch lays them.

mod backward;
mod by_places;
mod by_rows;
mod convolution;
mod elementwise;
mod forward;
mod frames;
mod linear;
mod narrow;
mod patches;

use pulp::Arch;

use self::convolution::{Convolution, Scratch, convolution};
use self::linear::Linear;
use super::specification::{Activation, Operation, Stage};
use super::work::Work;
use super::{Network, NetworkError, NetworkSpec};
use crate::values::Values;

/// A network of the native engine.
pub struct CpuNetwork {
    spec: NetworkSpec,
    inputs: usize,
    outputs: usize,
    stages: Vec<Stage>,
    work: Work,
    /// Whether there are dense layers only, with ReLU between them.
    is_perceptron: bool,
    parameters: Vec<f32>,
    /// Weights of the first layer as `[inputs, outputs]`, if its product wants them so; follows every
    /// change of the parameters.
    transposed_weight: Vec<f32>,
    /// For each stage the window that it moves, if any, with its weights packed for the forward pass.
    convolutions: Vec<Option<Box<dyn Convolution>>>,
    /// Whether the weights of all windows are packed for the backward pass too.
    packed_for_backward: bool,
    arch: Arch,
    /// Activations of the last forward pass, for the backward pass.
    kept: Activations,
    kept_input: KeptInput,
    kept_rows: Option<usize>,
    /// Activations of inference, apart from the kept ones.
    scratch: Activations,
    buffers: Buffers,
}

/// Direction of a pass through the network.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Results of the stages of one pass.
#[derive(Default)]
struct Activations {
    /// `rows × outputs` of each stage, after its activation; of the last stage only if it has an activation.
    stages: Vec<Vec<f32>>,
    /// Bytes of the input as floats.
    floats: Vec<f32>,
    /// One image of the input.
    image: Vec<f32>,
    convolution: Scratch,
}

/// The input of the last forward pass.
#[derive(Default)]
struct KeptInput {
    floats: Vec<f32>,
    bytes: Vec<u8>,
    is_bytes: bool,
}

/// Buffers of the backward pass.
#[derive(Default)]
struct Buffers {
    /// Gradient of what entered the current stage.
    gradient: Vec<f32>,
    /// Gradient of what left the current stage.
    above: Vec<f32>,
    /// Activations of the rows that a gradient passes through.
    selected: Vec<f32>,
    selected_rows: Vec<usize>,
    /// One image of the input.
    image: Vec<f32>,
    convolution: Scratch,
}

impl CpuNetwork {
    /// A network with all parameters zero.
    ///
    /// # Errors
    /// When `spec` is not valid.
    pub fn new(spec: NetworkSpec) -> Result<Self, NetworkError> {
        let mut stages = spec.stages()?;
        // Images enter in the order in which they are flattened.
        if matches!(stages[0].operation, Operation::Flatten(_)) {
            stages.remove(0);
        }
        stages.extend(flattened_output(&stages));
        let arch = Arch::new();
        let window = |stage: &Stage| match stage.operation {
            Operation::Convolution { window, .. } => Some(convolution(arch, window)),
            _ => None,
        };
        let activations = || Activations { stages: stages.iter().map(|_| Vec::new()).collect(), ..Activations::default() };
        let first = &stages[0];
        let transposed = first.operation == Operation::Dense && Linear::wants_transposed(first.inputs);
        let is_plain = |stage: &Stage| stage.operation == Operation::Dense && stage.activation != Activation::Tanh;
        let is_last_linear = stages.last().is_some_and(|last| last.activation == Activation::None);
        Ok(Self {
            inputs: spec.inputs(),
            outputs: spec.outputs(),
            is_perceptron: stages.iter().all(is_plain) && is_last_linear,
            parameters: vec![0.0; spec.parameter_count()],
            transposed_weight: vec![0.0; if transposed { first.inputs * first.outputs } else { 0 }],
            convolutions: stages.iter().map(window).collect(),
            packed_for_backward: false,
            arch,
            kept: activations(),
            kept_input: KeptInput::default(),
            kept_rows: None,
            scratch: activations(),
            buffers: Buffers::default(),
            work: Work::of(&stages),
            stages,
            spec,
        })
    }

    /// The dense stage at `index`, with the parameters that belong to it.
    fn linear(&self, index: usize) -> Linear<'_> {
        let stage = &self.stages[index];
        Linear {
            inputs: stage.inputs,
            outputs: stage.outputs,
            weight: &self.parameters[stage.weight.clone()],
            transposed_weight: if index == 0 { &self.transposed_weight } else { &[] },
            bias: &self.parameters[stage.bias.clone()],
        }
    }

    /// The window of the stage at `index`.
    fn convolution(&self, index: usize) -> &dyn Convolution {
        self.convolutions[index].as_deref().expect("the stage moves a window")
    }

    /// The channels of the images that enter, if the first stage wants them side by side.
    fn image_channels(&self) -> Option<usize> {
        match self.stages[0].operation {
            Operation::Convolution { window, transposed: false } => Some(window.image[0]),
            Operation::Convolution { window, transposed: true } => Some(window.places[0]),
            _ => None,
        }
    }

    /// Packs the weights of all windows for a pass in this direction.
    fn pack(&mut self, direction: Direction) {
        for (stage, convolution) in self.stages.iter().zip(&mut self.convolutions) {
            let (Some(convolution), Operation::Convolution { transposed, .. }) = (convolution, stage.operation) else { continue };
            let weight = &self.parameters[stage.weight.clone()];
            if transposed == (direction == Direction::Backward) {
                convolution.pack_to_places(weight);
            } else {
                convolution.pack_to_image(weight);
            }
        }
    }

    fn transpose_first_weight(&mut self) {
        let first = &self.stages[0];
        let weight = &self.parameters[first.weight.clone()];
        for (input, column) in self.transposed_weight.chunks_exact_mut(first.outputs).enumerate() {
            for (output, value) in column.iter_mut().enumerate() {
                *value = weight[output * first.inputs + input];
            }
        }
    }
}

impl Network for CpuNetwork {
    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update_parameters(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        self.kept_rows = None;
        self.transpose_first_weight();
        self.pack(Direction::Forward);
        self.packed_for_backward = false;
    }

    fn infer(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) {
        // Taken out while the network is borrowed; an empty workspace does not allocate.
        let mut scratch = std::mem::take(&mut self.scratch);
        self.work.count_forward(rows);
        self.run(&mut scratch, input, rows, output);
        self.scratch = scratch;
    }

    fn forward(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) {
        let mut kept = std::mem::take(&mut self.kept);
        self.work.count_forward(rows);
        self.run(&mut kept, input, rows, output);
        self.kept = kept;
        self.kept_input.keep(input);
        self.kept_rows = Some(rows);
    }

    fn backward(&mut self, output_gradient: &[f32], parameter_gradient: Option<&mut [f32]>, input_gradient: Option<&mut [f32]>) {
        let rows = self.kept_rows.take().expect("a backward pass needs a forward pass under the same parameters before it");
        let (inputs, outputs) = (self.inputs, self.outputs);
        assert_eq!(output_gradient.len(), rows * outputs, "the output gradient is not {rows} rows of {outputs} columns");
        if let Some(parameter_gradient) = &parameter_gradient {
            assert_eq!(parameter_gradient.len(), self.parameters.len(), "the parameter gradient has the wrong length");
        }
        if let Some(input_gradient) = &input_gradient {
            assert_eq!(input_gradient.len(), rows * inputs, "the input gradient is not {rows} rows of {inputs} columns");
            assert!(!self.kept_input.is_bytes, "bytes have no gradient");
        }
        self.work.count_backward(rows, parameter_gradient.is_some(), input_gradient.is_some());
        if !self.packed_for_backward {
            self.pack(Direction::Backward);
            self.packed_for_backward = true;
        }
        // Taken out while the network is borrowed; an empty workspace does not allocate.
        let mut buffers = std::mem::take(&mut self.buffers);
        match (parameter_gradient, input_gradient) {
            (None, Some(input_gradient)) if self.is_perceptron => {
                self.input_gradient(&mut buffers, output_gradient, input_gradient);
            }
            (parameter_gradient, input_gradient) => {
                self.gradients(&mut buffers, rows, output_gradient, parameter_gradient, input_gradient);
            }
        }
        self.buffers = buffers;
    }
}

impl KeptInput {
    fn keep(&mut self, input: Values<'_>) {
        self.is_bytes = matches!(input, Values::U8(_));
        match input {
            Values::F32(values) => sized(&mut self.floats, values.len()).copy_from_slice(values),
            Values::U8(values) => {
                self.bytes.clear();
                self.bytes.extend_from_slice(values);
            }
        }
    }

    fn input(&self, length: usize) -> Values<'_> {
        if self.is_bytes { Values::U8(&self.bytes[..length]) } else { Values::F32(&self.floats[..length]) }
    }
}

/// A stage that lays an output image as PyTorch does, if the last of `stages` gives an image.
fn flattened_output(stages: &[Stage]) -> Option<Stage> {
    let last = stages.last()?;
    let image = match last.operation {
        Operation::Convolution { window, transposed: false } => window.places,
        Operation::Convolution { window, transposed: true } => window.image,
        Operation::Unflatten(image) => image,
        Operation::Dense | Operation::Flatten(_) | Operation::Dueling => return None,
    };
    let end = last.bias.end;
    Some(Stage {
        operation: Operation::Flatten(image),
        inputs: last.outputs,
        outputs: last.outputs,
        weight: end..end,
        bias: end..end,
        activation: Activation::None,
        is_head: false,
    })
}

/// The first `length` elements of a buffer that never shrinks.
fn sized(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if buffer.len() < length {
        buffer.resize(length, 0.0);
    }
    &mut buffer[..length]
}
