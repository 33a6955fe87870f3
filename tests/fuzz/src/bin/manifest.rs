//! Gives `shoal_fuzz::manifest` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|manifest: &[u8]| shoal_fuzz::manifest::read(manifest));
