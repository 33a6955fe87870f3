//! Gives `shoal_fuzz::configuration` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| shoal_fuzz::configuration::read(text));
