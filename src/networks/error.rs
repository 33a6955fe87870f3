//! What can be wrong with a network before it computes anything.

use super::{Device, NetworkSpec};

/// Why a network cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A layer, or a setting of one, that is zero.
    #[error("{layer} of the network has a 0, or nothing to compute; every number of a layer is at least 1")]
    EmptyLayer {
        /// Which layer, in words.
        layer: String,
    },
    /// The parameters would not fit.
    #[error(
        "the network {specification} has more than the {limit} parameters that one may have; use smaller layers \
         (network.hidden, network.convolutions)"
    )]
    TooManyParameters {
        /// The network that was asked for.
        specification: Box<NetworkSpec>,
        /// Most parameters allowed.
        limit: usize,
    },
    /// One row would not fit.
    #[error("{layer} of the network has more than the {limit} values that one row may have; use smaller layers or frames")]
    TooManyValues {
        /// Which layer, in words.
        layer: String,
        /// Most values allowed.
        limit: usize,
    },
    /// A kernel that has no place.
    #[error(
        "{layer} of the network has a kernel of {kernel}x{kernel} pixels, but only {height}x{width} reach it; use a kernel of at most \
         {most}, fewer convolutions or smaller strides (network.convolutions), or larger frames", most = height.min(width)
    )]
    KernelTooLarge {
        /// Which layer, in words.
        layer: String,
        /// Height and width of the kernel.
        kernel: usize,
        /// Height of the image.
        height: usize,
        /// Width of the image.
        width: usize,
    },
    /// A kernel without an image.
    #[error(
        "{layer} of the network needs an image of 3 dimensions (channels, height, width), but {found} reach it; set \
         network.convolutions to [], or {remedy}"
    )]
    NotAnImage {
        /// Which layer, in words.
        layer: String,
        /// The shape that reaches it, in words.
        found: String,
        /// What to do to keep the convolutions.
        remedy: &'static str,
    },
    /// A dense layer on something that is not flat.
    #[error("{layer} of the network needs one row of values, but {found} reach it; put a flatten layer before it")]
    NotFlat {
        /// Which layer, in words.
        layer: String,
        /// The shape that reaches it, in words.
        found: String,
    },
    /// An image of another size.
    #[error("{layer} of the network needs {expected} values, but {found} reach it; change the shape or the layer before")]
    OtherLength {
        /// Which layer, in words.
        layer: String,
        /// Values that reach it.
        found: usize,
        /// Values of the image.
        expected: usize,
    },
    /// An activation that follows nothing.
    #[error("{layer} of the network follows no layer with parameters, or another activation; remove it")]
    NothingToActivate {
        /// Which layer, in words.
        layer: String,
    },
    /// A head with a name that tensors cannot have.
    #[error("`{name}` cannot name a head; names are unique, of the letters a to z, digits and `_`, and not `layers`")]
    HeadName {
        /// The name.
        name: String,
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
        /// The device that was asked for.
        device: Device,
    },
    /// The binary was built without the feature `torch`.
    #[error(
        "the libtorch engine (device `{device}`) is not part of this build; rebuild with the feature `torch` of the crate `shoal` \
         (`--features torch`; a crate of your own: docs/own.md), or set network.engine to `cpu` and learner.device to `cpu`"
    )]
    TorchNotCompiled {
        /// The device that was asked for.
        device: Device,
    },
    /// No usable GPU at all.
    #[error(
        "device `{device}` needs CUDA, but libtorch reports none: either this libtorch is the CPU build (no libtorch_cuda.so in its lib \
         folder: for the Python package, install a PyTorch with CUDA; otherwise fetch one with `cargo xtask setup --cuda`, or point \
         LIBTORCH to one, and build anew), or CUDA_VISIBLE_DEVICES hides every GPU, or the NVIDIA driver does not answer (try \
         `nvidia-smi`) or is too old for it (libtorch's warning above says so); `cpu` always works"
    )]
    NoCuda {
        /// The device that was asked for.
        device: Device,
    },
    /// Fewer GPUs than asked for.
    #[error(
        "device `{device}` does not exist: libtorch sees {count} CUDA device(s), numbered from 0; choose one of them, or let \
         CUDA_VISIBLE_DEVICES name more, if it is set"
    )]
    NoSuchDevice {
        /// The device that was asked for.
        device: Device,
        /// GPUs that exist.
        count: usize,
    },
    /// A number of threads that libtorch cannot use.
    #[error("machine.torch_threads is {threads}; libtorch takes 1 to {limit} threads")]
    Threads {
        /// The number that was asked for.
        threads: usize,
        /// Largest number allowed.
        limit: usize,
    },
    /// libtorch refused an operation while the network was built.
    #[error("libtorch could not build the network on `{device}`: {message}")]
    Torch {
        /// The device to compute on.
        device: Device,
        /// libtorch's own words.
        message: String,
    },
}

impl NetworkError {
    /// Whether the error is about the convolutions, whatever the other layers are.
    pub fn is_about_convolutions(&self) -> bool {
        matches!(self, Self::KernelTooLarge { .. } | Self::NotAnImage { .. })
    }
}
