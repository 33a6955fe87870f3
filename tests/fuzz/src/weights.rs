//! A file of weights.

use shoal::checkpoint::PolicyWeights;

/// Load it.
pub fn read(content: &[u8]) {
    let _ = PolicyWeights::load(&super::file("weights.safetensors", content));
}
