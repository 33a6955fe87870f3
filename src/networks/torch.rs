//! The libtorch engine: the same networks through tch, on a CPU or an NVIDIA GPU.
//!
//! All parameters live in one flat tensor on the device; the leaves that autograd differentiates are views of it, so one copy moves
//! them all. The host keeps a flat copy too, which the optimizer changes.

use tch::{Kind, Tensor};

use super::{Device, MlpSpec, Network, NetworkError, TensorSpec};

/// Most threads that libtorch is asked to use.
const MAXIMUM_THREADS: usize = 1024;

/// A network of the libtorch engine.
pub struct TorchNetwork {
    spec: MlpSpec,
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
    pub fn new(spec: MlpSpec, device: Device, threads: usize) -> Result<Self, NetworkError> {
        spec.validate()?;
        if !(1..=MAXIMUM_THREADS).contains(&threads) {
            return Err(NetworkError::Threads { threads, limit: MAXIMUM_THREADS });
        }
        let torch_device = find_device(device)?;
        tch::set_num_threads(threads as i32);
        let parameters = vec![0.0; spec.parameter_count()];
        let built = Tensor::f_from_slice(&parameters)
            .and_then(|flat| flat.f_to_device(torch_device))
            .and_then(|flat| Ok((leaves(&flat, &spec.tensors())?, flat)))
            .map(|(leaves, flat)| Self { spec, device: torch_device, parameters, flat, leaves, kept: None });
        let refused = |error: tch::TchError| NetworkError::Torch { device, message: error.to_string() };
        let mut network = built.map_err(refused)?;
        network.rehearse().map_err(refused)?;
        Ok(network)
    }

    fn rehearse(&mut self) -> Result<(), tch::TchError> {
        let (inputs, outputs) = (self.spec.inputs, self.spec.outputs);
        self.try_forward(&vec![0.0; inputs], 1, &mut vec![0.0; outputs])?;
        let mut gradient = vec![0.0; self.parameters.len()];
        self.try_backward(&vec![0.0; outputs], Some(&mut gradient), None)
    }

    /// The input as a leaf on the device, and the output computed from it.
    fn run(&self, input: &[f32], rows: usize, input_needs_gradient: bool) -> Result<(Tensor, Tensor), tch::TchError> {
        let size = [rows as i64, self.spec.inputs as i64];
        let input = Tensor::f_from_slice(input)?.f_view(size)?.f_to_device(self.device)?.f_set_requires_grad(input_needs_gradient)?;
        let mut hidden = input.shallow_clone();
        let (layers, head) = self.leaves.split_at(2 * self.spec.hidden.len());
        for layer in layers.chunks_exact(2) {
            hidden = hidden.f_linear(&layer[0], Some(&layer[1]))?.f_relu_()?;
        }
        let output = match head {
            [value_weight, advantage_weight, value_bias, advantage_bias] => {
                let value = hidden.f_linear(value_weight, Some(value_bias))?;
                let advantage = hidden.f_linear(advantage_weight, Some(advantage_bias))?;
                let mean = advantage.f_mean_dim(-1i64, true, Kind::Float)?;
                value.f_add(&advantage.f_sub(&mean)?)?
            }
            [weight, bias] => hidden.f_linear(weight, Some(bias))?,
            _ => unreachable!("a head has two tensors, or four with dueling streams"),
        };
        Ok((input, output))
    }

    fn try_forward(&mut self, input: &[f32], rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
        let (input, result) = self.run(input, rows, true)?;
        copy_to_host(&result.f_detach()?, output)?;
        self.kept = Some((input, result));
        Ok(())
    }

    fn try_infer(&self, input: &[f32], rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
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
    fn spec(&self) -> &MlpSpec {
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

    fn infer(&mut self, input: &[f32], rows: usize, output: &mut [f32]) {
        self.check(input, rows, output);
        expect_device(self.try_infer(input, rows, output));
    }

    fn forward(&mut self, input: &[f32], rows: usize, output: &mut [f32]) {
        self.check(input, rows, output);
        expect_device(self.try_forward(input, rows, output));
    }

    fn backward(&mut self, output_gradient: &[f32], parameter_gradient: Option<&mut [f32]>, input_gradient: Option<&mut [f32]>) {
        expect_device(self.try_backward(output_gradient, parameter_gradient, input_gradient));
    }
}

impl TorchNetwork {
    fn check(&self, input: &[f32], rows: usize, output: &[f32]) {
        assert_eq!(input.len(), rows * self.spec.inputs, "the input is not {rows} rows of {} columns", self.spec.inputs);
        assert_eq!(output.len(), rows * self.spec.outputs, "the output is not {rows} rows of {} columns", self.spec.outputs);
    }
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
        let spec = MlpSpec { inputs: 2, hidden: vec![], outputs: 1, dueling: false };
        let refused = TorchNetwork::new(spec.clone(), Device::Cuda(4096), 1).err().expect("no machine has 4,097 GPUs");
        assert!(matches!(refused, NetworkError::NoCuda { .. } | NetworkError::NoSuchDevice { .. }), "{refused}");
        assert!(refused.to_string().contains("cuda:4096"), "{refused}");
        let refused = TorchNetwork::new(spec, Device::Cpu, 0).err().expect("no operator runs on 0 threads");
        assert!(matches!(refused, NetworkError::Threads { threads: 0, .. }), "{refused}");
    }
}
