//! The libtorch engine: the same networks through tch, on a CPU or an NVIDIA GPU.
//!
//! All parameters live in one flat tensor on the device and all gradients in another; the stages have views of both, so
//! one copy moves them all. The host keeps a flat copy of the parameters too, which the optimizer changes.

mod convolutions;
mod stage;

use tch::{Kind, Tensor};

use convolutions::Convolutions;
use stage::{Passed, TorchStage};

use super::specification::{Operation, Stage};
use super::work::Work;
use super::{Device, Network, NetworkError, NetworkSpec};
use crate::values::{BYTE_SCALE, ValueType, Values};

/// Most threads that libtorch is asked to use.
const MAXIMUM_THREADS: usize = 1024;

/// Words of libtorch for some failures, and what helps against each.
const REMEDIES: [(&str, &str); 3] = [
    (
        "out of memory",
        "What helps: fewer learners on this GPU (learner.count, learner.device), a smaller learner.batch_size, ending what else uses it.",
    ),
    (
        "no kernel image is available",
        "This libtorch was not built for this GPU: of CUDA 13 it needs Turing (compute capability 7.5) or newer. Set learner.device=cpu.",
    ),
    ("SUBLIBRARY_VERSION_MISMATCH", "Another cuDNN of this machine is loaded beside libtorch's own: take its folder off LD_LIBRARY_PATH."),
];

/// Loads libtorch, unless it is loaded already: any call does, and this is the smallest.
pub(super) fn load() {
    drop(Tensor::new());
}

/// A network of the libtorch engine.
pub struct TorchNetwork {
    spec: NetworkSpec,
    blocks: Vec<Block>,
    work: Work,
    device: tch::Device,
    /// Shape of a row as the first stage takes it: values, or an image.
    row: Vec<i64>,
    /// The parameters on the host.
    parameters: Vec<f32>,
    /// The parameters on the device.
    flat: Tensor,
    /// The gradients of the parameters on the device.
    gradient: Tensor,
    /// What the blocks keep of the last forward pass.
    kept: Option<Vec<Passed>>,
}

/// Stages with one common backward pass.
enum Block {
    One(TorchStage),
    Convolutions(Convolutions),
}

impl Block {
    fn forward(&self, below: Tensor, rows: usize, learns: bool) -> Result<Passed, tch::TchError> {
        match self {
            Self::One(stage) => stage.forward(below, rows),
            Self::Convolutions(convolutions) => convolutions.forward(below, learns),
        }
    }

    fn backward(&self, passed: Passed, above: Tensor, of_parameters: bool, of_below: bool) -> Result<Option<Tensor>, tch::TchError> {
        match self {
            Self::One(stage) => stage.backward(passed, above, of_parameters, of_below),
            Self::Convolutions(convolutions) => convolutions.backward(&passed, &above, of_parameters, of_below),
        }
    }
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
        let built = Tensor::f_from_slice(&parameters).and_then(|flat| flat.f_to_device(torch_device)).and_then(|flat| {
            let gradient = flat.f_zeros_like()?;
            let work = Work::of(&stages);
            // A flatten at the start changes nothing but the shape's name.
            let mut stages = stages.into_iter().skip_while(|stage| matches!(stage.operation, Operation::Flatten(_))).peekable();
            let is_image = stages.peek().is_some_and(is_convolution);
            let row = if is_image { spec.input.shape.clone() } else { vec![spec.inputs()] };
            let row = row.into_iter().map(|length| length as i64).collect();
            let blocks = blocks(stages, &flat, &gradient)?;
            Ok(Self { spec, blocks, work, device: torch_device, row, parameters, flat, gradient, kept: None })
        });
        let refused = |error: tch::TchError| NetworkError::Torch { device, message: explained(&error.to_string()) };
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

    /// The input on the device, as floats.
    fn take_in(&self, input: Values<'_>, rows: usize) -> Result<Tensor, tch::TchError> {
        let size: Vec<i64> = [rows as i64].into_iter().chain(self.row.iter().copied()).collect();
        match input {
            Values::F32(values) => Tensor::f_from_slice(values)?.f_view(size.as_slice())?.f_to_device(self.device),
            // Bytes travel to the device as bytes.
            Values::U8(values) => {
                let bytes = Tensor::f_from_slice(values)?.f_view(size.as_slice())?.f_to_device(self.device)?;
                bytes.f_to_kind(Kind::Float)?.f_mul_scalar_(f64::from(BYTE_SCALE))
            }
        }
    }

    fn try_forward(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
        let (mut values, mut kept) = (self.take_in(input, rows)?, Vec::with_capacity(self.blocks.len()));
        for block in &self.blocks {
            let passed = block.forward(values, rows, true)?;
            values = passed.above.shallow_clone();
            kept.push(passed);
        }
        copy_to_host(&values, output)?;
        self.kept = Some(kept);
        Ok(())
    }

    fn try_infer(&self, input: Values<'_>, rows: usize, output: &mut [f32]) -> Result<(), tch::TchError> {
        let _guard = tch::no_grad_guard();
        let input = self.take_in(input, rows)?;
        let result = self.blocks.iter().try_fold(input, |values, block| block.forward(values, rows, false).map(|passed| passed.above))?;
        copy_to_host(&result, output)
    }

    fn try_backward(
        &mut self,
        output_gradient: &[f32],
        parameter_gradient: Option<&mut [f32]>,
        input_gradient: Option<&mut [f32]>,
    ) -> Result<(), tch::TchError> {
        let kept = self.kept.take().expect("a backward pass needs a forward pass under the same parameters before it");
        let output = &kept.last().expect("a network has stages").above;
        assert_eq!(output_gradient.len(), output.numel(), "the output gradient is not as long as the output");
        assert!(input_gradient.is_none() || self.spec.input.element == ValueType::F32, "bytes have no gradient");
        if parameter_gradient.is_none() && input_gradient.is_none() {
            return Ok(());
        }
        let mut gradient = Some(Tensor::f_from_slice(output_gradient)?.f_view_as(output)?.f_to_device(self.device)?);
        // Each block frees its memory before the next allocates, so that the same memory is used
        // while it is in the caches.
        for (index, (block, passed)) in self.blocks.iter().zip(kept).enumerate().rev() {
            let above = gradient.take().expect("what is below is asked for its gradient");
            gradient = block.backward(passed, above, parameter_gradient.is_some(), index > 0 || input_gradient.is_some())?;
        }
        if let Some(target) = parameter_gradient {
            copy_to_host(&self.gradient, target)?;
        }
        if let (Some(target), Some(gradient)) = (input_gradient, gradient) {
            copy_to_host(&gradient, target)?;
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

fn is_convolution(stage: &Stage) -> bool {
    matches!(stage.operation, Operation::Convolution { .. })
}

/// The stages as blocks: convolutions that follow each other are one block.
fn blocks(stages: impl Iterator<Item = Stage>, flat: &Tensor, gradient: &Tensor) -> Result<Vec<Block>, tch::TchError> {
    let mut blocks = Vec::new();
    for stage in stages {
        if !is_convolution(&stage) {
            blocks.push(Block::One(TorchStage::new(stage, flat, gradient)?));
            continue;
        }
        if !matches!(blocks.last(), Some(Block::Convolutions(_))) {
            blocks.push(Block::Convolutions(Convolutions::default()));
        }
        if let Some(Block::Convolutions(convolutions)) = blocks.last_mut() {
            convolutions.push(stage, flat, gradient)?;
        }
    }
    Ok(blocks)
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

/// A device that worked when the network was built and fails now leaves nothing to go on with: the
/// process ends and is replaced.
fn expect_device<T>(result: Result<T, tch::TchError>) -> T {
    result.unwrap_or_else(|error| panic!("libtorch's device failed: {}", explained(&error.to_string())))
}

/// libtorch's words without the frames of its stack and, if it is known, what helps, in a line of its own.
fn explained(words: &str) -> String {
    let said = words.split("\nException raised from").next().unwrap_or(words).trim_end();
    let remedy = REMEDIES.iter().find(|(reason, _)| said.contains(*reason));
    remedy.map_or_else(|| said.to_owned(), |(_, remedy)| format!("{said}\n{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::Head;

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_its_name() {
        let spec = NetworkSpec::perceptron(2, &[], Head::Linear { outputs: 1 });
        let refused = TorchNetwork::new(spec.clone(), Device::Cuda(4096), 1).err().expect("no machine has 4,097 GPUs");
        assert!(matches!(refused, NetworkError::NoCuda { .. } | NetworkError::NoSuchDevice { .. }), "{refused}");
        assert!(refused.to_string().contains("cuda:4096"), "{refused}");
        let refused = TorchNetwork::new(spec, Device::Cpu, 0).err().expect("no operator runs on 0 threads");
        assert!(matches!(refused, NetworkError::Threads { threads: 0, .. }), "{refused}");
    }

    #[test]
    fn what_libtorch_says_loses_its_stack_and_gains_what_helps() {
        let stack = "Exception raised from malloc at CUDACachingAllocator.cpp:1 (most recent call first):\nframe #0: c10::Error::Error\n";
        let said = |words: &str| explained(&format!("Internal torch error: {words}\n{stack}"));
        assert_eq!(said("another failure\nin two lines"), "Internal torch error: another failure\nin two lines");
        for (words, helps) in [
            ("CUDA out of memory. Tried to allocate 2.00 GiB.", "learner.batch_size"),
            ("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`.\n", "learner.count"),
            ("CUDA error: no kernel image is available for execution on the device", "Turing"),
            ("cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "LD_LIBRARY_PATH"),
        ] {
            let said = said(words);
            let (kept, remedy) = said.rsplit_once('\n').expect("what helps has a line of its own");
            assert!(kept.ends_with(words.trim_end()) && remedy.contains(helps), "{said}");
        }
    }
}
