//! The native engine: multi-layer perceptrons on the calling thread, with a backward pass written by hand.
//!
//! It exists because small networks are dominated by overheads in a general framework: here one call costs its arithmetic and little
//! more. Nothing is allocated once the largest number of rows was seen.

mod elementwise;
mod linear;
mod narrow;

use pulp::Arch;

use self::{
    elementwise::{combine_streams, split_gradient},
    linear::Linear,
};
use super::{MlpSpec, Network, NetworkError, specification::LinearSpec};

/// A network of the native engine.
pub struct CpuNetwork {
    spec: MlpSpec,
    linears: Vec<LinearSpec>,
    parameters: Vec<f32>,
    /// Weights of the first layer as `[inputs, outputs]`, if its product wants them so; follows every change of the parameters.
    transposed_weight: Vec<f32>,
    arch: Arch,
    /// What the last forward pass left for the backward pass.
    kept: Activations,
    kept_input: Vec<f32>,
    kept_rows: Option<usize>,
    /// Activations of inference, apart from the kept ones.
    scratch: Activations,
    /// Gradients that travel down from layer to layer, and the one above.
    gradient: Vec<f32>,
    gradient_above: Vec<f32>,
    /// Activations of the rows that a gradient passes through.
    selected: Vec<f32>,
    selected_rows: Vec<usize>,
}

/// Outputs of the layers of one pass.
#[derive(Default)]
struct Activations {
    /// `rows × units` of each hidden layer, after ReLU.
    hidden: Vec<Vec<f32>>,
    /// `rows × (1 + outputs)` of a dueling head: the value, then the advantages.
    streams: Vec<f32>,
}

impl CpuNetwork {
    /// A network with all parameters zero.
    ///
    /// # Errors
    /// When `spec` is not valid.
    pub fn new(spec: MlpSpec) -> Result<Self, NetworkError> {
        spec.validate()?;
        let activations = || Activations { hidden: vec![Vec::new(); spec.hidden.len()], streams: Vec::new() };
        let linears = spec.linears();
        let first = &linears[0];
        let transposed = if Linear::wants_transposed(first.inputs) { first.inputs * first.outputs } else { 0 };
        Ok(Self {
            parameters: vec![0.0; spec.parameter_count()],
            transposed_weight: vec![0.0; transposed],
            arch: Arch::new(),
            kept: activations(),
            kept_input: Vec::new(),
            kept_rows: None,
            scratch: activations(),
            gradient: Vec::new(),
            gradient_above: Vec::new(),
            selected: Vec::new(),
            selected_rows: Vec::new(),
            linears,
            spec,
        })
    }

    /// The layer at `index`, with the parameters that belong to it.
    fn linear(&self, index: usize) -> Linear<'_> {
        let spec = &self.linears[index];
        Linear {
            inputs: spec.inputs,
            outputs: spec.outputs,
            weight: &self.parameters[spec.weight.clone()],
            transposed_weight: if index == 0 { &self.transposed_weight } else { &[] },
            bias: &self.parameters[spec.bias.clone()],
        }
    }

    fn run(&self, activations: &mut Activations, input: &[f32], rows: usize, output: &mut [f32]) {
        assert_eq!(input.len(), rows * self.spec.inputs, "the input is not {rows} rows of {} columns", self.spec.inputs);
        assert_eq!(output.len(), rows * self.spec.outputs, "the output is not {rows} rows of {} columns", self.spec.outputs);
        let Activations { hidden, streams } = activations;
        let mut below = input;
        for (index, hidden) in hidden.iter_mut().enumerate() {
            let target = sized(hidden, rows * self.spec.hidden[index]);
            self.linear(index).forward(self.arch, below, target, true);
            below = target;
        }
        let head = self.linear(self.linears.len() - 1);
        if self.spec.dueling {
            let streams = sized(streams, rows * head.outputs);
            head.forward(self.arch, below, streams, false);
            combine_streams(streams, output, self.spec.outputs);
        } else {
            head.forward(self.arch, below, output, false);
        }
    }

    /// The gradient of the input alone. Rows whose output has no gradient are left out of every product.
    fn input_gradient(&mut self, output_gradient: &[f32], input_gradient: &mut [f32]) {
        let MlpSpec { inputs, outputs, .. } = self.spec;
        let has_gradient = |row: &[f32]| row.iter().any(|&value| value != 0.0);
        let mut rows = std::mem::take(&mut self.selected_rows);
        rows.clear();
        rows.extend(output_gradient.chunks_exact(outputs).enumerate().filter(|(_, row)| has_gradient(row)).map(|(row, _)| row));
        input_gradient.fill(0.0);
        let (mut gradient, mut above) = (std::mem::take(&mut self.gradient), std::mem::take(&mut self.gradient_above));
        let mut selected = std::mem::take(&mut self.selected);
        select(output_gradient, outputs, &rows, &mut above);
        for (index, spec) in self.linears.iter().enumerate().rev() {
            let activation = if index == 0 {
                None
            } else {
                select(&self.kept.hidden[index - 1], spec.inputs, &rows, &mut selected);
                Some(selected.as_slice())
            };
            let below = sized(&mut gradient, rows.len() * spec.inputs);
            self.linear(index).input_gradient(self.arch, &above[..rows.len() * spec.outputs], below, activation);
            std::mem::swap(&mut gradient, &mut above);
        }
        for (&row, values) in rows.iter().zip(above.chunks_exact(inputs)) {
            input_gradient[row * inputs..][..inputs].copy_from_slice(values);
        }
        (self.gradient, self.gradient_above, self.selected, self.selected_rows) = (gradient, above, selected, rows);
    }

    fn transpose_first_weight(&mut self) {
        let first = &self.linears[0];
        let weight = &self.parameters[first.weight.clone()];
        for (input, column) in self.transposed_weight.chunks_exact_mut(first.outputs).enumerate() {
            for (output, value) in column.iter_mut().enumerate() {
                *value = weight[output * first.inputs + input];
            }
        }
    }
}

impl Network for CpuNetwork {
    fn spec(&self) -> &MlpSpec {
        &self.spec
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update_parameters(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        self.kept_rows = None;
        self.transpose_first_weight();
    }

    fn infer(&mut self, input: &[f32], rows: usize, output: &mut [f32]) {
        // Taken out while the network is borrowed; an empty workspace does not allocate.
        let mut scratch = std::mem::take(&mut self.scratch);
        self.run(&mut scratch, input, rows, output);
        self.scratch = scratch;
    }

    fn forward(&mut self, input: &[f32], rows: usize, output: &mut [f32]) {
        let mut kept = std::mem::take(&mut self.kept);
        self.run(&mut kept, input, rows, output);
        self.kept = kept;
        sized(&mut self.kept_input, input.len()).copy_from_slice(input);
        self.kept_rows = Some(rows);
    }

    fn backward(&mut self, output_gradient: &[f32], mut parameter_gradient: Option<&mut [f32]>, mut input_gradient: Option<&mut [f32]>) {
        let rows = self.kept_rows.take().expect("a backward pass needs a forward pass under the same parameters before it");
        let MlpSpec { inputs, outputs, dueling, .. } = self.spec;
        assert_eq!(output_gradient.len(), rows * outputs, "the output gradient is not {rows} rows of {outputs} columns");
        if let Some(parameter_gradient) = &parameter_gradient {
            assert_eq!(parameter_gradient.len(), self.parameters.len(), "the parameter gradient has the wrong length");
        }
        if let Some(input_gradient) = &input_gradient {
            assert_eq!(input_gradient.len(), rows * inputs, "the input gradient is not {rows} rows of {inputs} columns");
        }
        if let (None, Some(input_gradient), false) = (&parameter_gradient, &mut input_gradient, dueling) {
            return self.input_gradient(output_gradient, input_gradient);
        }
        let (mut gradient, mut above) = (std::mem::take(&mut self.gradient), std::mem::take(&mut self.gradient_above));
        // The two swap places from layer to layer, so both must hold the widest.
        let widest = self.linears.iter().map(|linear| linear.outputs).max().unwrap_or(0);
        for buffer in [&mut gradient, &mut above] {
            sized(buffer, rows * widest);
        }
        if dueling {
            split_gradient(output_gradient, sized(&mut above, rows * (1 + outputs)), outputs);
        } else {
            sized(&mut above, output_gradient.len()).copy_from_slice(output_gradient);
        }
        for (index, spec) in self.linears.iter().enumerate().rev() {
            let linear = self.linear(index);
            let above_values = &above[..rows * spec.outputs];
            let input = if index == 0 { &self.kept_input[..rows * inputs] } else { &self.kept.hidden[index - 1][..rows * spec.inputs] };
            if let Some(parameter_gradient) = &mut parameter_gradient {
                let (weight_gradient, bias_gradient) = parameter_gradient[spec.weight.start..spec.bias.end].split_at_mut(spec.weight.len());
                linear.parameter_gradient(self.arch, above_values, input, weight_gradient, bias_gradient);
            }
            if index > 0 {
                linear.input_gradient(self.arch, above_values, sized(&mut gradient, rows * spec.inputs), Some(input));
                std::mem::swap(&mut gradient, &mut above);
            } else if let Some(input_gradient) = input_gradient.take() {
                linear.input_gradient(self.arch, above_values, input_gradient, None);
            }
        }
        (self.gradient, self.gradient_above) = (gradient, above);
    }
}

/// Copies the chosen rows of a matrix, one after the other.
fn select(matrix: &[f32], columns: usize, rows: &[usize], target: &mut Vec<f32>) {
    target.clear();
    rows.iter().for_each(|&row| target.extend_from_slice(&matrix[row * columns..][..columns]));
}

/// The first `length` elements of a buffer that never shrinks.
fn sized(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if buffer.len() < length {
        buffer.resize(length, 0.0);
    }
    &mut buffer[..length]
}
