//! What can be wrong with a network before it computes anything.

use super::{Device, MlpSpec};

/// Why a network cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A layer without units.
    #[error("{layer} of the network has 0 units; every layer needs at least 1")]
    EmptyLayer {
        /// Which layer, in words.
        layer: String,
    },
    /// The parameters would not fit.
    #[error("{specification:?} has more than the {limit} parameters that a network may have; use smaller hidden layers")]
    TooManyParameters {
        /// What was asked for.
        specification: MlpSpec,
        /// Most parameters allowed.
        limit: usize,
    },
    /// A device name that is not understood.
    #[error("unknown device `{name}`; write `cpu` or `cuda:N`, for instance `cuda:0`")]
    UnknownDevice {
        /// What was written.
        name: String,
    },
    /// The native engine was asked to use a GPU.
    #[error("the native engine runs on `cpu` only, not on `{device}`; set network.engine to `torch` or `auto`, or learner.device to `cpu`")]
    EngineWithoutDevice {
        /// What was asked for.
        device: Device,
    },
    /// The binary was built without the feature `torch`.
    #[error(
        "the libtorch engine (device `{device}`) is not part of this build; rebuild with `--features torch`, or set network.engine to `cpu` and learner.device to `cpu`"
    )]
    TorchNotCompiled {
        /// What was asked for.
        device: Device,
    },
    /// No usable GPU at all.
    #[error(
        "device `{device}` needs CUDA, but libtorch reports none: either this libtorch is the CPU build (no libtorch_cuda.so in its lib folder; point LIBTORCH to a CUDA build and rebuild) or the NVIDIA driver does not answer (try `nvidia-smi`); `cpu` always works"
    )]
    NoCuda {
        /// What was asked for.
        device: Device,
    },
    /// Fewer GPUs than asked for.
    #[error("device `{device}` does not exist: libtorch sees {count} CUDA device(s), numbered from 0")]
    NoSuchDevice {
        /// What was asked for.
        device: Device,
        /// GPUs that exist.
        count: usize,
    },
    /// A number of threads that libtorch cannot use.
    #[error("machine.torch_threads is {threads}; libtorch takes 1 to {limit} threads")]
    Threads {
        /// What was asked for.
        threads: usize,
        /// Largest number allowed.
        limit: usize,
    },
    /// libtorch refused an operation while the network was built.
    #[error("libtorch could not build the network on `{device}`: {message}")]
    Torch {
        /// Where.
        device: Device,
        /// Its own words.
        message: String,
    },
}
