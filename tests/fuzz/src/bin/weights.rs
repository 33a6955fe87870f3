//! A file of weights.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::checkpoint::Weights;

fuzz_target!(|content: &[u8]| {
    let _ = Weights::load(&shoal_fuzz::file("weights.safetensors", content));
});
