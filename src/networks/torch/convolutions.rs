//! Convolutions that follow each other on libtorch, forward and backward. Autograd records them, because tch does not
//! offer the operations that compute their gradients.
//!
//! A backward pass of autograd hands over to one of its threads and waits for it. On a GPU that takes longer than the
//! gradients of a small convolution. So convolutions that follow each other are one record, with the activations
//! between them, and are handed over once.

use tch::{Kind, TchError, Tensor};

use super::stage::{Parameters, Passed};
use crate::networks::specification::{Activation, Operation, Stage};

/// Convolutions with their parameters on the device, each with an activation after it.
#[derive(Default)]
pub(super) struct Convolutions {
    stages: Vec<(Stage, Parameters)>,
}

impl Convolutions {
    /// Append `stage`, whose parameters lie in `flat`, and whose gradients go to the same places in `gradient`.
    pub(super) fn push(&mut self, stage: Stage, flat: &Tensor, gradient: &Tensor) -> Result<(), TchError> {
        let mut parameters = Parameters::of(&stage, flat, gradient)?;
        for parameter in [&mut parameters.weight, &mut parameters.bias] {
            *parameter = parameter.f_set_requires_grad(true)?;
        }
        self.stages.push((stage, parameters));
        Ok(())
    }

    /// The forward pass; `learns` says whether [`Self::backward`] may follow.
    pub(super) fn forward(&self, below: Tensor, learns: bool) -> Result<Passed, TchError> {
        if !learns {
            return Ok(Passed { above: self.pass(below.shallow_clone())?, below, recorded: None });
        }
        let below = below.f_detach()?.f_set_requires_grad(true)?;
        let recorded = self.pass(below.shallow_clone())?;
        Ok(Passed { below, above: recorded.f_detach()?, recorded: Some(recorded) })
    }

    fn pass(&self, below: Tensor) -> Result<Tensor, TchError> {
        self.stages.iter().try_fold(below, |values, (stage, Parameters { weight, bias, .. })| {
            let mut above = match stage.operation {
                Operation::Convolution { window, transposed: false } => {
                    values.f_conv2d(weight, Some(bias), [window.stride as i64; 2], [0, 0], [1, 1], 1)?
                }
                Operation::Convolution { window, transposed: true } => {
                    values.f_conv_transpose2d(weight, Some(bias), [window.stride as i64; 2], [0, 0], [0, 0], 1, [1, 1])?
                }
                _ => unreachable!("only convolutions are recorded"),
            };
            match stage.activation {
                Activation::None => Ok(above),
                Activation::Relu => above.f_relu_(),
                Activation::Tanh => above.f_tanh_(),
            }
        })
    }

    /// Writes the gradients of the parameters, if `of_parameters`, and returns the gradient of the input, if
    /// `of_below`; `above` is the gradient of the output.
    pub(super) fn backward(
        &self,
        passed: &Passed,
        above: &Tensor,
        of_parameters: bool,
        of_below: bool,
    ) -> Result<Option<Tensor>, TchError> {
        let recorded = passed.recorded.as_ref().expect("the forward pass was made to learn");
        // The gradient of this sum is the vector-Jacobian product; tch does not take the vector itself.
        let loss = recorded.f_mul(above)?.f_sum(Kind::Float)?;
        let parameters = || self.stages.iter().map(|(_, parameters)| parameters).filter(move |_| of_parameters);
        let mut wanted: Vec<&Tensor> = parameters().flat_map(|of_one| [&of_one.weight, &of_one.bias]).collect();
        wanted.extend(of_below.then_some(&passed.below));
        let mut gradients = Tensor::f_run_backward(&[&loss], &wanted, false, false)?.into_iter();
        for target in parameters().flat_map(|of_one| [&of_one.weight_gradient, &of_one.bias_gradient]) {
            let gradient = gradients.next().expect("a gradient for each that was wanted");
            target.shallow_clone().f_copy_(&gradient)?;
        }
        Ok(gradients.next())
    }
}
