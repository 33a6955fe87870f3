//! One stage of a network on libtorch, forth and back.
//!
//! Products and activations have gradients of one or two operations each, which are written down here: to record them and to hand them
//! to the threads of autograd takes longer than a small network needs to compute them. Convolutions alone are left to autograd, because
//! tch does not offer the operation that their gradients are.

use tch::{Kind, TchError, Tensor};

use crate::networks::specification::{Activation, Operation, Stage, Window};

/// A stage with its parameters on the device.
pub(super) struct TorchStage {
    stage: Stage,
    /// Of a stage that has any.
    parameters: Option<Parameters>,
}

/// Views of the flat tensors of all parameters, and of all their gradients.
struct Parameters {
    weight: Tensor,
    bias: Tensor,
    weight_gradient: Tensor,
    bias_gradient: Tensor,
}

/// What a stage keeps of a forward pass.
pub(super) struct Passed {
    below: Tensor,
    /// After the activation.
    pub(super) above: Tensor,
    /// Of a convolution: what it gave before the activation, with autograd's record of how.
    recorded: Option<Tensor>,
}

impl TorchStage {
    /// A stage whose parameters lie in `flat`, and whose gradients go to the same places in `gradient`.
    pub(super) fn new(stage: Stage, flat: &Tensor, gradient: &Tensor) -> Result<Self, TchError> {
        if stage.bias.is_empty() {
            return Ok(Self { stage, parameters: None });
        }
        let part = |of: &Tensor, range: &std::ops::Range<usize>, shape: &[i64]| {
            of.f_narrow(0, range.start as i64, range.len() as i64)?.f_view(shape)?.f_detach()
        };
        let is_recorded = matches!(stage.operation, Operation::Convolution(_) | Operation::TransposedConvolution(_));
        let shape: Vec<i64> = stage.weight_shape().iter().map(|&length| length as i64).collect();
        let biases = [stage.bias.len() as i64];
        let parameters = Parameters {
            weight: part(flat, &stage.weight, &shape)?.f_set_requires_grad(is_recorded)?,
            bias: part(flat, &stage.bias, &biases)?.f_set_requires_grad(is_recorded)?,
            weight_gradient: part(gradient, &stage.weight, &shape)?,
            bias_gradient: part(gradient, &stage.bias, &biases)?,
        };
        Ok(Self { stage, parameters: Some(parameters) })
    }

    /// What `rows` rows become. `learns` says whether [`Self::backward`] may follow.
    pub(super) fn forward(&self, mut below: Tensor, rows: usize, learns: bool) -> Result<Passed, TchError> {
        let (rows, mut recorded) = (rows as i64, None);
        let mut above = match self.stage.operation {
            Operation::Dense => below.f_linear(&self.parameters().weight, Some(&self.parameters().bias))?,
            Operation::Convolution(window) | Operation::TransposedConvolution(window) if learns => {
                below = below.f_detach()?.f_set_requires_grad(true)?;
                recorded.insert(self.convolve(&below, window)?).f_detach()?
            }
            Operation::Convolution(window) | Operation::TransposedConvolution(window) => self.convolve(&below, window)?,
            Operation::Flatten(_) => below.f_reshape([rows, self.stage.outputs as i64])?,
            Operation::Unflatten([channels, height, width]) => below.f_reshape([rows, channels as i64, height as i64, width as i64])?,
            Operation::Dueling => {
                let (value, advantage) = (below.f_narrow(1, 0, 1)?, below.f_narrow(1, 1, self.stage.outputs as i64)?);
                let mean = advantage.f_mean_dim(-1i64, true, Kind::Float)?;
                value.f_add(&advantage.f_sub(&mean)?)?
            }
        };
        match self.stage.activation {
            Activation::None => {}
            Activation::Relu => _ = above.f_relu_()?,
            Activation::Tanh => _ = above.f_tanh_()?,
        }
        Ok(Passed { below, above, recorded })
    }

    fn convolve(&self, below: &Tensor, window: Window) -> Result<Tensor, TchError> {
        let (Parameters { weight, bias, .. }, stride) = (self.parameters(), [window.stride as i64; 2]);
        match self.stage.operation {
            Operation::TransposedConvolution(_) => below.f_conv_transpose2d(weight, Some(bias), stride, [0, 0], [0, 0], 1, [1, 1]),
            _ => below.f_conv2d(weight, Some(bias), stride, [0, 0], [1, 1], 1),
        }
    }

    /// Writes the gradients of the parameters, if `of_parameters`, and returns that of what came in, if `of_below`; `above` is the gradient of
    /// what went out.
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
            Operation::Convolution(_) | Operation::TransposedConvolution(_) => {
                self.backward_as_recorded(&passed, &above, of_parameters, of_below)
            }
            Operation::Flatten(_) | Operation::Unflatten(_) => above.f_reshape(passed.below.size()).map(Some),
            Operation::Dueling => {
                let of_value = above.f_sum_dim_intlist(-1i64, true, Kind::Float)?;
                let of_advantage = above.f_sub(&above.f_mean_dim(-1i64, true, Kind::Float)?)?;
                Tensor::f_cat(&[of_value, of_advantage], 1).map(Some)
            }
        }
    }

    /// [`Self::backward`] by what autograd recorded.
    fn backward_as_recorded(
        &self,
        passed: &Passed,
        above: &Tensor,
        of_parameters: bool,
        of_below: bool,
    ) -> Result<Option<Tensor>, TchError> {
        let Parameters { weight, bias, weight_gradient, bias_gradient } = self.parameters();
        let recorded = passed.recorded.as_ref().expect("the forward pass was made to learn");
        // The gradient of this sum is the vector-Jacobian product; tch does not take the vector itself.
        let loss = recorded.f_mul(above)?.f_sum(Kind::Float)?;
        let mut wanted = if of_parameters { vec![weight, bias] } else { Vec::new() };
        wanted.extend(of_below.then_some(&passed.below));
        let mut gradients = Tensor::f_run_backward(&[&loss], &wanted, false, false)?.into_iter();
        if of_parameters {
            for target in [weight_gradient, bias_gradient] {
                let gradient = gradients.next().expect("a gradient for each that was wanted");
                target.shallow_clone().f_copy_(&gradient)?;
            }
        }
        Ok(gradients.next())
    }

    fn parameters(&self) -> &Parameters {
        self.parameters.as_ref().expect("products and convolutions have parameters")
    }
}
