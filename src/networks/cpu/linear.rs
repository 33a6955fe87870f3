//! One layer forward and backward, each by the product that suits its shape.
//!
//! Wide layers go to `faer`, which reaches about nine tenths of the machine's arithmetic limit at 64 rows;
//! narrow ones to [`super::narrow`].

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::Arch;

use super::elementwise::{activate as activate_all, add_bias, add_bias_relu, column_sums, mask_gradient};
use super::narrow::{Contract, Epilogue, Expand, MAXIMUM_NARROW, Outer, Side};

/// Runs `$body` with the constant `$constant` equal to `$value`, a number of columns from 1 to [`MAXIMUM_NARROW`].
macro_rules! with_narrow {
    ($value:expr, $constant:ident => $body:expr) => {
        with_narrow!(@cases $value, $constant, $body, 1 2 3 4)
    };
    (@cases $value:expr, $constant:ident, $body:expr, $($case:literal)*) => {
        match $value {
            $($case => { const $constant: usize = $case; $body })*
            other => unreachable!("{other} columns are not narrow"),
        }
    };
}

/// The parameters of one layer.
#[derive(Clone, Copy)]
pub(super) struct Linear<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// `[outputs, inputs]`.
    pub(super) weight: &'a [f32],
    /// `[inputs, outputs]` for the first layer if [`Self::wants_transposed`], else empty.
    pub(super) transposed_weight: &'a [f32],
    pub(super) bias: &'a [f32],
}

impl Linear<'_> {
    /// Whether a first layer of so many columns is worth keeping transposed.
    pub(super) fn wants_transposed(inputs: usize) -> bool {
        inputs <= MAXIMUM_NARROW
    }

    /// `output[rows, outputs] = input · weightᵀ + bias`, then ReLU if `activate`.
    pub(super) fn forward(&self, arch: Arch, input: &[f32], output: &mut [f32], activate: bool) {
        let bias = self.bias;
        if !self.transposed_weight.is_empty() {
            return with_narrow!(self.inputs, NARROW => arch.dispatch(Expand::<NARROW> {
                input,
                matrix: self.transposed_weight,
                epilogue: if activate { Epilogue::BiasRelu(bias) } else { Epilogue::Bias(bias) },
                output,
                wide: self.outputs,
            }));
        }
        if self.outputs <= MAXIMUM_NARROW {
            with_narrow!(self.outputs, NARROW => arch.dispatch(Contract::<NARROW> {
                input,
                matrix: self.weight,
                bias: Some(bias),
                output: &mut *output,
                wide: self.inputs,
            }));
            if activate {
                arch.dispatch(|| activate_all(output));
            }
            return;
        }
        let rows = output.len() / self.outputs;
        product(MatRef::from_row_major_slice(input, rows, self.inputs), self.matrix().transpose(), output);
        if activate {
            arch.dispatch(|| add_bias_relu(output, bias));
        } else {
            arch.dispatch(|| add_bias(output, bias));
        }
    }

    /// `weight_gradient[outputs, inputs] = output_gradientᵀ · input`, `bias_gradient` = column sums of
    /// `output_gradient`.
    pub(super) fn parameter_gradient(
        &self,
        arch: Arch,
        output_gradient: &[f32],
        input: &[f32],
        weight_gradient: &mut [f32],
        bias_gradient: &mut [f32],
    ) {
        if self.inputs <= MAXIMUM_NARROW {
            return with_narrow!(self.inputs, NARROW => arch.dispatch(Outer::<NARROW> {
                left: output_gradient,
                right: input,
                side: Side::Input { bias: bias_gradient },
                weight: weight_gradient,
                wide: self.outputs,
            }));
        }
        arch.dispatch(|| column_sums(output_gradient, bias_gradient));
        if self.outputs <= MAXIMUM_NARROW {
            return with_narrow!(self.outputs, NARROW => arch.dispatch(Outer::<NARROW> {
                left: input,
                right: output_gradient,
                side: Side::Output,
                weight: weight_gradient,
                wide: self.inputs,
            }));
        }
        let rows = output_gradient.len() / self.outputs;
        let left = MatRef::from_row_major_slice(output_gradient, rows, self.outputs).transpose();
        product(left, MatRef::from_row_major_slice(input, rows, self.inputs), weight_gradient);
    }

    /// `input_gradient[rows, inputs] = output_gradient · weight`, masked by the ReLU that produced the input if
    /// `activation` is given.
    pub(super) fn input_gradient(&self, arch: Arch, output_gradient: &[f32], input_gradient: &mut [f32], activation: Option<&[f32]>) {
        if self.outputs <= MAXIMUM_NARROW
            && let Some(activation) = activation
        {
            return with_narrow!(self.outputs, NARROW => arch.dispatch(Expand::<NARROW> {
                input: output_gradient,
                matrix: self.weight,
                epilogue: Epilogue::Mask(activation),
                output: input_gradient,
                wide: self.inputs,
            }));
        }
        if !self.transposed_weight.is_empty() {
            with_narrow!(self.inputs, NARROW => arch.dispatch(Contract::<NARROW> {
                input: output_gradient,
                matrix: self.transposed_weight,
                bias: None,
                output: &mut *input_gradient,
                wide: self.outputs,
            }));
        } else {
            let rows = output_gradient.len() / self.outputs;
            let left = MatRef::from_row_major_slice(output_gradient, rows, self.outputs);
            product(left, self.matrix(), input_gradient);
        }
        if let Some(activation) = activation {
            arch.dispatch(|| mask_gradient(input_gradient, activation));
        }
    }

    fn matrix(&self) -> MatRef<'_, f32> {
        MatRef::from_row_major_slice(self.weight, self.outputs, self.inputs)
    }
}

/// `target = left · right`, on the calling thread.
fn product(left: MatRef<'_, f32>, right: MatRef<'_, f32>, target: &mut [f32]) {
    matmul(MatMut::from_row_major_slice_mut(target, left.nrows(), right.ncols()), Accum::Replace, left, right, 1.0, Par::Seq);
}
