//! The libtorch engine: the same networks through tch, on a CPU or an NVIDIA GPU.
//!
//! All parameters live in one flat tensor on the device; the leaves that autograd differentiates are views of it, so one copy moves
//! them all. The host keeps a flat copy too, which the optimizer changes.

use tch::{Kind, Tensor};

use super::specification::{Activation, Operation, Stage};
use super::work::Work;
use super::{Device, Head, Network, NetworkError, NetworkSpec, TensorSpec};
use crate::values::{BYTE_SCALE, ValueType, Values};

/// Most threads that libtorch is asked to use.
const MAXIMUM_THREADS: usize = 1024;

/// A network of the libtorch engine.
pub struct TorchNetwork {
    spec: NetworkSpec,
    stages: Vec<Stage>,
    work: Work,
    device: tch::Device,
    /// The parameters on the host.
    parameters: Vec<f32>,
    /// The parameters on the device.
    flat: Tensor,
    /// Views of `flat`, one per tensor of the specification.
    leaves: Vec<Tensor>,
    /// Input and output of the last forward pass.
    kept: Option<(Tensor, Tensor)>,
}

impl TorchNetwork {
    /// A network with all parameters zero on `device`; sets libtorch's operator threads for the whole process.
    ///
    /// Runs one forward and one backward pass, so that a device that does not work is found here.
    ///
    /// # Errors
    /// When `spec` is not valid, the device does not exist or libtorch cannot use it.
    pub fn new(spec: NetworkSpec, device: Device, threads: usize) -> Result<Self, NetworkError> {
        let stages = spec.stages()?;
        if !(1..=MAXIMUM_THREADS).contains(&threads) {
            return Err(NetworkError::Threads { threads, limit: MAXIMUM_THREADS });
        }
        let torch_device = find_device(device)?;
        tch::set_num_threads(threads as i32);
        let parameters = vec![0.0; spec.parameter_count()];
        let built = Tensor::f_from_slice(&parameters)
            .and_then(|flat| flat.f_to_device(torch_device))
            .and_then(|flat| Ok((leaves(&flat, &spec.tensors())?, flat)))
            .map(|(leaves, flat)| {
                let work = Work::of(&stages);
                Self { spec, stages, work, device: torch_device, parameters, flat, leaves, kept: None }
            });
        let refused = |error: tch::TchError| NetworkError::Torch { device, message: error.to_string() };
        let mut network = built.map_err(refused)?;
        network.rehearse().map_err(refused)?;
        Ok(network)
    }

    fn rehearse(&mut self) -> Result<(), tch::TchError> {
        let (inputs, outputs) = (self.spec.inputs(), self.spec.outputs());
        match self.spec.input.element {
            ValueType::F32 => self.try_forward(Values::F32(&vec![0.0; inputs]), 1, &mut vec![0.0; outputs])?,
            ValueType::U8 => self.try_forward(Values::U8(&vec![0; inputs]), 1, &mut vec![0.0; outputs])?,
        }
        let mut gradient = vec![0.0; self.parameters.len()];
        self.try_backward(&vec![0.0; outputs], Some(&mut gradient), None)
    }

    /// The input as a leaf on the device, and the output computed from it.
    fn run(&self, input: Values<'_>, rows: usize, wants_gradient: bool) -> Result<(Tensor, Tensor), tch::TchError> {
        let size: Vec<i64> = [rows].iter().chain(&self.spec.input.shape).map(|&length| length as i64).collect();
        let (leaf, mut values) = match input {
            Values::F32(values) => {
                let leaf =
                    Tensor::f_from_slice(values)?.f_view(size.as_slice())?.f_to_device(self.device)?.f_set_requires_grad(wants_gradient)?;
                (leaf.shallow_clone(), leaf)
            }
            // Bytes travel to the device as bytes, and have no gradient.
            Values::U8(values) => {
                let leaf = Tensor::f_from_slice(values)?.f_view(size.as_slice())?.f_to_device(self.device)?;
                let floats = leaf.f_to_kind(Kind::Float)?.f_mul_scalar(f64::from(BYTE_SCALE))?;
                (leaf, floats)
            }
        };
        let mut leaves = self.leaves.iter();
        for stage in &self.stages {
            values = self.run_stage(stage, &values, rows, &mut leaves)?;
            values = match stage.activation {
                Activation::None => values,
                Activation::Relu => values.f_relu_()?,
                Activation::Tanh => values.f_tanh()?,
            };
        }
        Ok((leaf, values.f_reshape([rows as i64, self.spec.outputs() as i64])?))
    }

    /// One stage without its activation; takes the tensors that it needs from `leaves`.
    fn run_stage<'a>(
        &self,
        stage: &Stage,
        below: &Tensor,
        rows: usize,
        leaves: &mut impl Iterator<Item = &'a Tensor>,
    ) -> Result<Tensor, tch::TchError> {
        let mut next = || leaves.next().expect("the leaves are the tensors of the stages");
        match stage.operation {
            Operation::Dense => match (&self.spec.head, stage.is_head) {
                (Head::Dueling { .. }, true) => side_by_side(below, [next(), next()], [next(), next()]),
                (Head::Named(heads), true) => {
                    let weights: Vec<&Tensor> = heads.iter().map(|_| next()).collect();
                    let biases: Vec<&Tensor> = heads.iter().map(|_| next()).collect();
                    side_by_side(below, weights, biases)
                }
                _ => below.f_linear(next(), Some(next())),
            },
            Operation::Convolution(window) => {
                let stride = [window.stride as i64; 2];
                below.f_conv2d(next(), Some(next()), stride, [0, 0], [1, 1], 1)
            }
            Operation::TransposedConvolution(window) => {
                let stride = [window.stride as i64; 2];
                below.f_conv_transpose2d(next(), Some(next()), stride, [0, 0], [0, 0], 1, [1, 1])
            }
            Operation::Flatten(_) => below.f_reshape([rows as i64, stage.outputs as i64]),
            Operation::Unflatten(shape) => below.f_reshape([rows, shape[0], shape[1], shape[2]].map(|length| length as i64)),
            Operation::Dueling => {
                let (value, advantage) = (below.f_narrow(1, 0, 1)?, below.f_narrow(1, 1, stage.outputs as i64)?);
                let mean = advantage.f_mean_dim(-1i64, true, Kind::Float)?;
                value.f_add(&advantage.f_sub(&mean)?)
            }
        }
    }

    fn try_forward(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
        let (input, result) = self.run(input, rows, true)?;
        copy_to_host(&result.f_detach()?, output)?;
        self.kept = Some((input, result));
        Ok(())
    }

    fn try_infer(&self, input: Values<'_>, rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
        let _guard = tch::no_grad_guard();
        copy_to_host(&self.run(input, rows, false)?.1, output)
    }

    fn try_backward(
        &mut self,
        output_gradient: &[f32],
        parameter_gradient: Option<&mut [f32]>,
        input_gradient: Option<&mut [f32]>,
    ) -> Result<(), tch::TchError> {
        let (input, output) = self.kept.take().expect("a backward pass needs a forward pass under the same parameters before it");
        assert_eq!(output_gradient.len(), output.numel(), "the output gradient is not as long as the output");
        assert!(input_gradient.is_none() || input.requires_grad(), "bytes have no gradient");
        let output_gradient = Tensor::f_from_slice(output_gradient)?.f_view_as(&output)?.f_to_device(self.device)?;
        // The gradient of this sum is the vector-Jacobian product; tch does not take the vector itself.
        let loss = output.f_mul(&output_gradient)?.f_sum(Kind::Float)?;
        let mut wanted: Vec<&Tensor> = if parameter_gradient.is_some() { self.leaves.iter().collect() } else { Vec::new() };
        wanted.extend(input_gradient.is_some().then_some(&input));
        let gradients = Tensor::f_run_backward(&[&loss], &wanted, false, false)?;
        let (of_parameters, of_input) = gradients.split_at(gradients.len() - usize::from(input_gradient.is_some()));
        if let Some(target) = parameter_gradient {
            let flattened = of_parameters.iter().map(|gradient| gradient.f_reshape([-1])).collect::<Result<Vec<_>, _>>()?;
            copy_to_host(&Tensor::f_cat(&flattened, 0)?, target)?;
        }
        if let (Some(target), [gradient]) = (input_gradient, of_input) {
            copy_to_host(gradient, target)?;
        }
        Ok(())
    }
}

impl Network for TorchNetwork {
    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update_parameters(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        self.kept = None;
        let _guard = tch::no_grad_guard();
        let copied = Tensor::f_from_slice(&self.parameters).and_then(|host| self.flat.f_copy_(&host));
        expect_device(copied);
    }

    fn infer(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) {
        self.check(input, rows, output);
        self.work.count_forward(rows);
        expect_device(self.try_infer(input, rows, output));
    }

    fn forward(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) {
        self.check(input, rows, output);
        self.work.count_forward(rows);
        expect_device(self.try_forward(input, rows, output));
    }

    fn backward(&mut self, output_gradient: &[f32], parameter_gradient: Option<&mut [f32]>, input_gradient: Option<&mut [f32]>) {
        let rows = output_gradient.len() / self.spec.outputs();
        self.work.count_backward(rows, parameter_gradient.is_some(), input_gradient.is_some());
        expect_device(self.try_backward(output_gradient, parameter_gradient, input_gradient));
    }
}

impl TorchNetwork {
    fn check(&self, input: Values<'_>, rows: usize, output: &[f32]) {
        let columns = self.spec.outputs();
        input.assert_rows(self.spec.input.element, rows, self.spec.inputs());
        assert_eq!(output.len(), rows * columns, "the output is not {rows} rows of {columns} columns");
    }
}

/// Several linear layers on the same input, their outputs in one row.
fn side_by_side<'a>(
    below: &Tensor,
    weights: impl IntoIterator<Item = &'a Tensor>,
    biases: impl IntoIterator<Item = &'a Tensor>,
) -> Result<Tensor, tch::TchError> {
    let heads = weights.into_iter().zip(biases).map(|(weight, bias)| below.f_linear(weight, Some(bias)));
    Tensor::f_cat(&heads.collect::<Result<Vec<_>, _>>()?, 1)
}

/// Views of `flat` that autograd treats as leaves: they share its memory, but not its history.
fn leaves(flat: &Tensor, tensors: &[TensorSpec]) -> Result<Vec<Tensor>, tch::TchError> {
    let leaf = |tensor: &TensorSpec| {
        let shape: Vec<i64> = tensor.shape.iter().map(|&length| length as i64).collect();
        flat.f_narrow(0, tensor.offset as i64, tensor.length() as i64)?.f_view(shape.as_slice())?.f_detach()?.f_set_requires_grad(true)
    };
    tensors.iter().map(leaf).collect()
}

fn copy_to_host(tensor: &Tensor, target: &mut [f32]) -> Result<(), tch::TchError> {
    assert_eq!(target.len(), tensor.numel(), "libtorch computed another number of values than asked for");
    tensor.f_to_device(tch::Device::Cpu)?.f_contiguous()?.f_copy_data(target, target.len())
}

fn find_device(device: Device) -> Result<tch::Device, NetworkError> {
    let Device::Cuda(index) = device else { return Ok(tch::Device::Cpu) };
    if !tch::Cuda::is_available() {
        return Err(NetworkError::NoCuda { device });
    }
    let count = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if index < count { Ok(tch::Device::Cuda(index)) } else { Err(NetworkError::NoSuchDevice { device, count }) }
}

/// A device that worked when the network was built and fails now leaves nothing to go on with: the process ends and is replaced.
fn expect_device<T>(result: Result<T, tch::TchError>) -> T {
    result.unwrap_or_else(|error| panic!("libtorch's device failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_its_name() {
        let spec = NetworkSpec::perceptron(2, &[], Head::Linear { outputs: 1 });
        let refused = TorchNetwork::new(spec.clone(), Device::Cuda(4096), 1).err().expect("no machine has 4,097 GPUs");
        assert!(matches!(refused, NetworkError::NoCuda { .. } | NetworkError::NoSuchDevice { .. }), "{refused}");
        assert!(refused.to_string().contains("cuda:4096"), "{refused}");
        let refused = TorchNetwork::new(spec, Device::Cpu, 0).err().expect("no operator runs on 0 threads");
        assert!(matches!(refused, NetworkError::Threads { threads: 0, .. }), "{refused}");
    }
}
