//! Gives `shoal_fuzz::description` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| shoal_fuzz::description::read(content));
