//! Function approximators: one trait, a native engine for CPUs and one through libtorch.
//!
//! An algorithm writes its loss by hand: it calls [`Network::forward`], computes the gradient of the loss with respect
//! to the output, and gives it to [`Network::backward`]. Parameters and gradients are flat `f32` slices, so that the
//! parameter board, the gradient exchange, [`Adam`] and checkpoints never depend on what computed them.

mod adam;
mod cpu;
mod device;
mod error;
mod scaling;
mod specification;
#[cfg(feature = "torch")]
mod torch;
mod work;

pub(crate) use adam::norm_and_scale;
pub use adam::{Adam, AdamSettings, clip_norm, polyak};
pub use cpu::CpuNetwork;
pub use device::Device;
pub use error::NetworkError;
pub use scaling::InputScaling;
pub use specification::{Head, InputSpec, Layer, MAXIMUM_PARAMETERS, MAXIMUM_VALUES, NamedHead, NetworkSpec, TensorSpec};
#[cfg(feature = "torch")]
pub use torch::TorchNetwork;
pub use work::{measure_products_per_s, take_products};

use crate::config::schema::Engine;
use crate::values::Values;

/// One network with one set of parameters.
///
/// All matrices are row-major: an input has `rows × inputs` elements of the type that the specification names, an
/// output has `rows × outputs` elements of `f32`. Images lie as PyTorch lays them: channel after channel, each row by
/// row of pixels. `rows` may change from call to call; buffers grow to the largest number seen and are then reused.
///
/// # Panics
/// Every method panics on a slice of the wrong length or type. The libtorch engine also panics when its device fails
/// after it was built (out of memory, for instance): a process whose device failed can only be replaced.
pub trait Network: Send {
    /// Shape of the network.
    fn spec(&self) -> &NetworkSpec;

    /// All parameters, in the order of [`NetworkSpec::tensors`]. With a network on a GPU, this is the copy on the host.
    fn parameters(&self) -> &[f32];

    /// Replaces all parameters.
    fn set_parameters(&mut self, parameters: &[f32]) {
        self.update_parameters(&mut |current| current.copy_from_slice(parameters));
    }

    /// Lets `change` modify the parameters in place: an optimizer step or Polyak averaging.
    fn update_parameters(&mut self, change: &mut dyn FnMut(&mut [f32]));

    /// Computes `output` for `input` and keeps nothing: what the last [`Self::forward`] kept stays valid.
    fn infer(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]);

    /// Computes `output` for `input` and keeps what [`Self::backward`] needs.
    fn forward(&mut self, input: Values<'_>, rows: usize, output: &mut [f32]);

    /// Gradients of the last [`Self::forward`], given the gradient of a loss with respect to its output
    /// (`rows × outputs`).
    ///
    /// Overwrites `parameter_gradient` (all parameters) and `input_gradient` (`rows × inputs`), if they are
    /// given; a gradient that is not is not computed. Each `forward` may be followed by one `backward`,
    /// before the parameters change.
    ///
    /// # Panics
    /// Without a `forward` since the last `backward` or the last change of the parameters, and when the gradient of
    /// bytes is wanted.
    fn backward(&mut self, output_gradient: &[f32], parameter_gradient: Option<&mut [f32]>, input_gradient: Option<&mut [f32]>);
}

/// Builds a network with all parameters zero; see [`NetworkSpec::initialise`].
///
/// [`Engine::Auto`] takes the native engine on a CPU and libtorch on a GPU. `threads` are those of
/// libtorch's operators, a setting of the whole process; the native engine runs on the calling thread,
/// because processes are what scales here.
///
/// # Errors
/// When the shape is impossible, the engine is not compiled in or cannot use the device, or the device does not exist.
pub fn build(spec: NetworkSpec, engine: Engine, device: Device, threads: usize) -> Result<Box<dyn Network>, NetworkError> {
    match (engine, device) {
        (Engine::Auto | Engine::Cpu, Device::Cpu) => Ok(Box::new(CpuNetwork::new(spec)?)),
        (Engine::Cpu, Device::Cuda(_)) => Err(NetworkError::EngineWithoutDevice { device }),
        (Engine::Auto | Engine::Torch, _) => build_torch(spec, device, threads),
    }
}

/// Builds a network for acting: on the CPU, with the engine that starts fastest and takes the least memory.
///
/// # Errors
/// When the shape is impossible.
pub fn build_for_acting(spec: NetworkSpec) -> Result<Box<dyn Network>, NetworkError> {
    build(spec, Engine::Cpu, Device::Cpu, 1)
}

/// Refuse an engine that [`build`] would not find in this build of the library.
///
/// # Errors
/// [`NetworkError::TorchNotCompiled`].
pub fn check_is_built(engine: Engine, device: Device) -> Result<(), NetworkError> {
    match (engine, device) {
        (Engine::Torch, _) | (Engine::Auto, Device::Cuda(_)) if !cfg!(feature = "torch") => Err(NetworkError::TorchNotCompiled { device }),
        _ => Ok(()),
    }
}

/// Loads libtorch, so that processes that are forked afterwards have it and share its memory. (Otherwise it is loaded
/// when it first computes, or with the program.) Does nothing in a build without libtorch.
///
/// Ends the program if libtorch is not found any more, as the system's loader does.
pub fn load_libtorch() {
    #[cfg(feature = "torch")]
    torch::load();
}

#[cfg(feature = "torch")]
fn build_torch(spec: NetworkSpec, device: Device, threads: usize) -> Result<Box<dyn Network>, NetworkError> {
    Ok(Box::new(TorchNetwork::new(spec, device, threads)?))
}

#[cfg(not(feature = "torch"))]
fn build_torch(_spec: NetworkSpec, device: Device, _threads: usize) -> Result<Box<dyn Network>, NetworkError> {
    Err(NetworkError::TorchNotCompiled { device })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> NetworkSpec {
        NetworkSpec::perceptron(3, &[8], Head::Linear { outputs: 2 })
    }

    #[test]
    fn the_native_engine_serves_cpus_only() {
        assert!(build(spec(), Engine::Auto, Device::Cpu, 1).is_ok());
        assert!(build(spec(), Engine::Cpu, Device::Cpu, 1).is_ok());
        let refused = build(spec(), Engine::Cpu, Device::Cuda(1), 1).err().expect("the native engine has no GPU");
        assert!(refused.to_string().contains("cuda:1"), "{refused}");
    }

    #[cfg(not(feature = "torch"))]
    #[test]
    fn libtorch_is_refused_when_it_is_not_compiled_in() {
        for (engine, device) in [(Engine::Torch, Device::Cpu), (Engine::Auto, Device::Cuda(0))] {
            let refused = build(spec(), engine, device, 1).err().expect("this build has no libtorch");
            assert!(matches!(refused, NetworkError::TorchNotCompiled { .. }), "{refused}");
            assert_eq!(check_is_built(engine, device).unwrap_err().to_string(), refused.to_string());
        }
    }
}
