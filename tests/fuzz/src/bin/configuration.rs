//! Gives `shoal_fuzz::configuration` anything at all.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| shoal_fuzz::configuration::read(text));
