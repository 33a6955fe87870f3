//! What can be wrong with a file of weights.

use std::io;
use std::path::PathBuf;

use safetensors::SafeTensorError;

use super::weights::{METADATA_KEY, NETWORK};
use crate::networks::NetworkError;

/// Why a weights file cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file could not be written; what was there before is untouched.
    #[error("cannot save weights to `{}`: {source}; check that the folder exists, is writable and has room", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The weights cannot be encoded.
    #[error("cannot encode weights for `{}`: {message}", path.display())]
    Encode {
        /// Which file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// There is no such file.
    #[error("there is no `{}`: name the folder of a run or a file of weights; `shoal train CartPole-v1` makes both", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read weights from `{}`: {source}; check that the file is readable and its disk there", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any weights file.
    #[error("`{}` has {bytes} bytes; a weights file has at most {limit}: is it the right file?", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Largest size read.
        limit: u64,
    },
    /// The file is damaged, truncated or something else altogether.
    #[error(
        "`{}` is no complete file of weights ({source}): name the folder of a run, or another file of its folder `weights`",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What safetensors said.
        source: SafeTensorError,
    },
    /// A safetensors file of another program.
    #[error("`{}` is a safetensors file without the metadata entry `{METADATA_KEY}`: it was not saved by this program", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The metadata cannot be understood.
    #[error("the metadata of `{}` cannot be read ({source}); use another file", path.display())]
    Metadata {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file was saved by another version of the program.
    #[error("`{}` has weights format {found}, and this program reads format {expected}; use the program that saved it", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format that is understood.
        expected: u32,
    },
    /// A shape that no network can have.
    #[error("network `{NETWORK}` in `{}`: {source}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: NetworkError,
    },
    /// The tensors do not fit the shapes in the metadata.
    #[error("tensor `{tensor}` in `{}` is {found}, where {expected} is expected; use another file", path.display())]
    Tensor {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        tensor: String,
        /// What it is.
        found: String,
        /// What its network asks for.
        expected: String,
    },
    /// A parameter is infinite or not a number.
    #[error(
        "tensor `{tensor}` in `{}` has the value {value} at index {index}; parameters must be finite: use what was saved before",
        path.display()
    )]
    NotFinite {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        tensor: String,
        /// Index in the tensor.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The network of a policy is missing.
    #[error("`{}` holds no policy: name the folder of a run, or another file of its folder `weights`", path.display())]
    NoPolicy {
        /// Which file.
        path: PathBuf,
    },
    /// The scaling of the observations is not that of the network's input.
    #[error("`{}` scales observations of {found} elements for a network with {expected} inputs; use another file", path.display())]
    Scaling {
        /// Which file.
        path: PathBuf,
        /// Elements that are scaled; of means or of deviations, whichever is wrong.
        found: usize,
        /// Inputs of the network.
        expected: usize,
    },
    /// A policy that does not say what it plays.
    #[error("the metadata of the policy `{}` does not name its {field}; use another file", path.display())]
    Unnamed {
        /// Which file.
        path: PathBuf,
        /// What is missing.
        field: &'static str,
    },
}
