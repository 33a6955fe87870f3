//! One stage of a network on libtorch, forward and backward.
//!
//! The gradients of products and activations are one or two operations each, which are written down here: recording
//! them and handing them to autograd's threads would take longer than a small network needs to compute them.
//! Convolutions are left to autograd ([`super::convolutions`]).

use tch::{Kind, TchError, Tensor};

use crate::networks::specification::{Activation, Operation, Stage};

/// A stage with its parameters on the device.
pub(super) struct TorchStage {
    stage: Stage,
    /// Parameters, if the stage has any.
    parameters: Option<Parameters>,
}

/// Views of the flat tensors of all parameters, and of all their gradients.
pub(super) struct Parameters {
    pub(super) weight: Tensor,
    pub(super) bias: Tensor,
    pub(super) weight_gradient: Tensor,
    pub(super) bias_gradient: Tensor,
}

impl Parameters {
    /// The parameters of a stage, which lie in `flat`, and whose gradients go to the same places in `gradient`.
    pub(super) fn of(stage: &Stage, flat: &Tensor, gradient: &Tensor) -> Result<Self, TchError> {
        let part = |of: &Tensor, range: &std::ops::Range<usize>, shape: &[i64]| {
            of.f_narrow(0, range.start as i64, range.len() as i64)?.f_view(shape)?.f_detach()
        };
        let shape: Vec<i64> = stage.weight_shape().iter().map(|&length| length as i64).collect();
        let biases = [stage.bias.len() as i64];
        Ok(Self {
            weight: part(flat, &stage.weight, &shape)?,
            bias: part(flat, &stage.bias, &biases)?,
            weight_gradient: part(gradient, &stage.weight, &shape)?,
            bias_gradient: part(gradient, &stage.bias, &biases)?,
        })
    }
}

/// What one or several stages keep of a forward pass.
pub(super) struct Passed {
    pub(super) below: Tensor,
    /// After the activation.
    pub(super) above: Tensor,
    /// For convolutions: `above` with autograd's record of how it was computed.
    pub(super) recorded: Option<Tensor>,
}

impl TorchStage {
    /// A stage whose parameters lie in `flat`, and whose gradients go to the same places in `gradient`.
    pub(super) fn new(stage: Stage, flat: &Tensor, gradient: &Tensor) -> Result<Self, TchError> {
        let parameters = if stage.bias.is_empty() { None } else { Some(Parameters::of(&stage, flat, gradient)?) };
        Ok(Self { stage, parameters })
    }

    /// The forward pass of `rows` rows.
    pub(super) fn forward(&self, below: Tensor, rows: usize) -> Result<Passed, TchError> {
        let rows = rows as i64;
        let mut above = match self.stage.operation {
            Operation::Dense => below.f_linear(&self.parameters().weight, Some(&self.parameters().bias))?,
            Operation::Flatten(_) => below.f_reshape([rows, self.stage.outputs as i64])?,
            Operation::Unflatten([channels, height, width]) => below.f_reshape([rows, channels as i64, height as i64, width as i64])?,
            Operation::Dueling => {
                let (value, advantage) = (below.f_narrow(1, 0, 1)?, below.f_narrow(1, 1, self.stage.outputs as i64)?);
                let mean = advantage.f_mean_dim(-1i64, true, Kind::Float)?;
                value.f_add(&advantage.f_sub(&mean)?)?
            }
            Operation::Convolution { .. } => unreachable!("convolutions are recorded"),
        };
        match self.stage.activation {
            Activation::None => {}
            Activation::Relu => _ = above.f_relu_()?,
            Activation::Tanh => _ = above.f_tanh_()?,
        }
        Ok(Passed { below, above, recorded: None })
    }

    /// Writes the gradients of the parameters, if `of_parameters`, and returns the gradient of the input, if
    /// `of_below`; `above` is the gradient of the output.
    pub(super) fn backward(&self, passed: Passed, above: Tensor, of_parameters: bool, of_below: bool) -> Result<Option<Tensor>, TchError> {
        match self.stage.activation {
            Activation::None => {}
            Activation::Relu => _ = passed.above.f_threshold_backward_grad_input(&above, &above, 0.0)?,
            Activation::Tanh => _ = Tensor::f_tanh_backward_grad_input(&above, &above, &passed.above)?,
        }
        match self.stage.operation {
            Operation::Dense => {
                let Parameters { weight, weight_gradient, bias_gradient, .. } = self.parameters();
                if of_parameters {
                    _ = above.f_transpose(0, 1)?.f_mm_out(weight_gradient, &passed.below)?;
                    _ = above.f_sum_intlist_out(bias_gradient, 0i64, false, Kind::Float)?;
                }
                of_below.then(|| above.f_mm(weight)).transpose()
            }
            Operation::Convolution { .. } => unreachable!("convolutions are recorded"),
            Operation::Flatten(_) | Operation::Unflatten(_) => above.f_reshape(passed.below.size()).map(Some),
            Operation::Dueling => {
                let of_value = above.f_sum_dim_intlist(-1i64, true, Kind::Float)?;
                let of_advantage = above.f_sub(&above.f_mean_dim(-1i64, true, Kind::Float)?)?;
                Tensor::f_cat(&[of_value, of_advantage], 1).map(Some)
            }
        }
    }

    fn parameters(&self) -> &Parameters {
        self.parameters.as_ref().expect("products have parameters")
    }
}
