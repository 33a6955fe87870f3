//! The backward pass: from the gradient of the output to the gradients of the parameters and of the input.

use super::convolution::Scratch;
use super::elementwise::{column_sums, mask_gradient, split_gradient, tanh_gradient};
use super::{Buffers, CpuNetwork, frames, sized};
use crate::networks::specification::{Activation, Operation, Stage};
use crate::values::Values;

impl CpuNetwork {
    /// Computes the gradients that are wanted, from the last stage to the first.
    pub(super) fn gradients(
        &self,
        buffers: &mut Buffers,
        rows: usize,
        output_gradient: &[f32],
        mut parameter_gradient: Option<&mut [f32]>,
        mut input_gradient: Option<&mut [f32]>,
    ) {
        let Buffers { gradient, above, image, convolution: scratch, .. } = buffers;
        // The two swap places from stage to stage, so both must hold the widest.
        let widest = self.stages.iter().skip(1).map(|stage| stage.inputs).fold(self.outputs, usize::max);
        for buffer in [&mut *gradient, &mut *above] {
            sized(buffer, rows * widest);
        }
        above[..output_gradient.len()].copy_from_slice(output_gradient);
        if let Some(last) = self.stages.last() {
            self.through_activation(self.stages.len() - 1, &mut above[..rows * last.outputs]);
        }
        for (index, stage) in self.stages.iter().enumerate().rev() {
            let above_values = &above[..rows * stage.outputs];
            if let Some(parameter_gradient) = &mut parameter_gradient {
                let (weight, bias) = parameter_gradient[stage.weight.start..stage.bias.end].split_at_mut(stage.weight.len());
                self.parameter_gradient(index, rows, above_values, (weight, bias), image, scratch);
            }
            if index > 0 {
                let below = &mut gradient[..rows * stage.inputs];
                if stage.operation == Operation::Dense && self.stages[index - 1].activation == Activation::Relu {
                    let activation = &self.kept.stages[index - 1][..rows * stage.inputs];
                    self.linear(index).input_gradient(self.arch, above_values, below, Some(activation));
                } else {
                    self.stage_input_gradient(index, above_values, below, scratch);
                    self.through_activation(index - 1, below);
                }
                std::mem::swap(gradient, above);
            } else if let Some(input_gradient) = input_gradient.take() {
                self.first_input_gradient(above_values, input_gradient, image, scratch);
            }
        }
    }

    /// Takes a gradient back through the activation of a stage.
    fn through_activation(&self, index: usize, gradient: &mut [f32]) {
        let activation = &self.kept.stages[index];
        match self.stages[index].activation {
            Activation::None => (),
            Activation::Relu => self.arch.dispatch(|| mask_gradient(gradient, activation)),
            Activation::Tanh => self.arch.dispatch(|| tanh_gradient(gradient, activation)),
        }
    }

    fn parameter_gradient(
        &self,
        index: usize,
        rows: usize,
        above: &[f32],
        (weight_gradient, bias_gradient): (&mut [f32], &mut [f32]),
        image: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) {
        let stage = &self.stages[index];
        match stage.operation {
            Operation::Dense => {
                let input = match (index, self.kept_input.input(rows * self.inputs)) {
                    (1.., _) => &self.kept.stages[index - 1][..rows * stage.inputs],
                    (0, Values::F32(values)) => values,
                    (0, Values::U8(_)) => &self.kept.floats[..rows * stage.inputs],
                };
                self.linear(index).parameter_gradient(self.arch, above, input, weight_gradient, bias_gradient);
            }
            Operation::Convolution { transposed, .. } => {
                self.arch.dispatch(|| column_sums(above, bias_gradient));
                let convolution = self.convolution(index);
                convolution.clear(scratch);
                for (row, above) in above.chunks_exact(stage.outputs).enumerate() {
                    let below = if index > 0 {
                        &self.kept.stages[index - 1][row * stage.inputs..][..stage.inputs]
                    } else {
                        self.load_image(self.kept_input.input(rows * self.inputs), row, image)
                    };
                    let (image, places) = if transposed { (above, below) } else { (below, above) };
                    convolution.accumulate(self.arch, image, places, scratch);
                }
                convolution.weight_gradient(scratch, weight_gradient);
            }
            Operation::Flatten(_) | Operation::Unflatten(_) | Operation::Dueling => (),
        }
    }

    /// The gradient of what entered a stage, given that of its operation.
    fn stage_input_gradient(&self, index: usize, above: &[f32], below: &mut [f32], scratch: &mut Scratch) {
        let stage = &self.stages[index];
        match stage.operation {
            Operation::Dense => self.linear(index).input_gradient(self.arch, above, below, None),
            Operation::Convolution { .. } => {
                for (above, below) in above.chunks_exact(stage.outputs).zip(below.chunks_exact_mut(stage.inputs)) {
                    self.window_input_gradient(index, above, below, scratch);
                }
            }
            Operation::Flatten([channels, ..]) => frames::unflatten(self.arch, above, channels, stage.inputs, below),
            Operation::Unflatten([channels, ..]) => frames::flatten(self.arch, above, channels, stage.inputs, below),
            Operation::Dueling => split_gradient(above, below, stage.outputs),
        }
    }

    fn window_input_gradient(&self, index: usize, above: &[f32], below: &mut [f32], scratch: &mut Scratch) {
        let convolution = self.convolution(index);
        if matches!(self.stages[index].operation, Operation::Convolution { transposed: true, .. }) {
            convolution.to_places(self.arch, above, &[], false, below);
        } else {
            convolution.to_image(self.arch, above, &[], false, below, scratch);
        }
    }

    /// The gradient of the network's input.
    fn first_input_gradient(&self, above: &[f32], input_gradient: &mut [f32], image: &mut Vec<f32>, scratch: &mut Scratch) {
        let Some(channels) = self.image_channels() else {
            return self.stage_input_gradient(0, above, input_gradient, scratch);
        };
        for (above, target) in above.chunks_exact(self.stages[0].outputs).zip(input_gradient.chunks_exact_mut(self.inputs)) {
            let image = sized(image, self.inputs);
            self.window_input_gradient(0, above, image, scratch);
            frames::flatten(self.arch, image, channels, self.inputs, target);
        }
    }

    /// The gradient of a perceptron's input alone. Rows whose output has no gradient are left out of every product.
    pub(super) fn input_gradient(&self, buffers: &mut Buffers, output_gradient: &[f32], input_gradient: &mut [f32]) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let Buffers { gradient, above, selected, selected_rows: rows, .. } = buffers;
        let has_gradient = |row: &[f32]| row.iter().any(|&value| value != 0.0);
        rows.clear();
        rows.extend(output_gradient.chunks_exact(outputs).enumerate().filter(|(_, row)| has_gradient(row)).map(|(row, _)| row));
        input_gradient.fill(0.0);
        select(output_gradient, outputs, rows, above);
        for (index, Stage { inputs, outputs, .. }) in self.stages.iter().enumerate().rev() {
            let activation = if index > 0 && self.stages[index - 1].activation == Activation::Relu {
                select(&self.kept.stages[index - 1], *inputs, rows, selected);
                Some(selected.as_slice())
            } else {
                None
            };
            let below = sized(gradient, rows.len() * inputs);
            self.linear(index).input_gradient(self.arch, &above[..rows.len() * outputs], below, activation);
            std::mem::swap(gradient, above);
        }
        for (&row, values) in rows.iter().zip(above.chunks_exact(inputs)) {
            input_gradient[row * inputs..][..inputs].copy_from_slice(values);
        }
    }
}

/// Copies the chosen rows of a matrix, one after the other.
fn select(matrix: &[f32], columns: usize, rows: &[usize], target: &mut Vec<f32>) {
    target.clear();
    rows.iter().for_each(|&row| target.extend_from_slice(&matrix[row * columns..][..columns]));
}
