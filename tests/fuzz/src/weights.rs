//! Reads a file of weights.

use shoal::checkpoint::PolicyWeights;

/// Load a file with this `content`.
pub fn read(content: &[u8]) {
    let _ = PolicyWeights::load(&super::file("weights.safetensors", content));
}
