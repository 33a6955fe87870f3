//! The forward pass: from an input to an output.

use super::elementwise::combine_streams;
use super::{Activations, CpuNetwork, frames, sized};
use crate::networks::specification::{Activation, Operation};
use crate::values::Values;

/// What enters a stage.
#[derive(Clone, Copy)]
enum Below<'a> {
    /// The network's input, image by image.
    Images(Values<'a>),
    /// The values of all rows.
    Values(&'a [f32]),
}

impl Below<'_> {
    fn values(&self) -> &[f32] {
        match self {
            Self::Values(values) => values,
            Self::Images(_) => unreachable!("only windows take images one at a time"),
        }
    }
}

impl CpuNetwork {
    pub(super) fn run(&self, activations: &mut Activations, input: Values<'_>, rows: usize, output: &mut [f32]) {
        input.assert_rows(self.spec.input.element, rows, self.inputs);
        assert_eq!(output.len(), rows * self.outputs, "the output is not {rows} rows of {} columns", self.outputs);
        let Activations { stages, floats, image, convolution: scratch } = activations;
        let mut below = match input {
            _ if self.image_channels().is_some() => Below::Images(input),
            Values::F32(values) => Below::Values(values),
            Values::U8(bytes) => {
                let floats = sized(floats, bytes.len());
                frames::convert(self.arch, bytes, floats);
                Below::Values(floats)
            }
        };
        let last = self.stages.len() - 1;
        for (index, values) in stages[..last].iter_mut().enumerate() {
            let target = sized(values, rows * self.stages[index].outputs);
            self.run_stage(index, below, rows, target, image, scratch);
            below = Below::Values(target);
        }
        self.run_stage(last, below, rows, output, image, scratch);
        if self.stages[last].activation != Activation::None {
            sized(&mut stages[last], output.len()).copy_from_slice(output);
        }
    }

    fn run_stage(
        &self,
        index: usize,
        below: Below<'_>,
        rows: usize,
        target: &mut [f32],
        image: &mut Vec<f32>,
        scratch: &mut super::Scratch,
    ) {
        let stage = &self.stages[index];
        let activate = stage.activation == Activation::Relu;
        match stage.operation {
            Operation::Dense => self.linear(index).forward(self.arch, below.values(), target, activate),
            Operation::Convolution { transposed, .. } => {
                let (convolution, bias) = (self.convolution(index), &self.parameters[stage.bias.clone()]);
                for (row, target) in target.chunks_exact_mut(stage.outputs).enumerate() {
                    let from = match below {
                        Below::Values(values) => &values[row * stage.inputs..][..stage.inputs],
                        Below::Images(input) => self.load_image(input, row, image),
                    };
                    if transposed {
                        convolution.to_image(self.arch, from, bias, activate, target, scratch);
                    } else {
                        convolution.to_places(self.arch, from, bias, activate, target);
                    }
                }
            }
            Operation::Flatten([channels, ..]) => frames::flatten(self.arch, below.values(), channels, stage.inputs, target),
            Operation::Unflatten([channels, ..]) => frames::unflatten(self.arch, below.values(), channels, stage.inputs, target),
            Operation::Dueling => combine_streams(&below.values()[..rows * stage.inputs], target, stage.outputs),
        }
        if stage.activation == Activation::Tanh {
            target.iter_mut().for_each(|value| *value = value.tanh());
        }
    }

    /// One image of the network's input, for a first stage that moves a window.
    pub(super) fn load_image<'a>(&self, input: Values<'_>, row: usize, image: &'a mut Vec<f32>) -> &'a [f32] {
        let channels = self.image_channels().expect("the first stage moves a window");
        let image = sized(image, self.inputs);
        frames::load(self.arch, input, row, channels, image);
        image
    }
}
