//! Gives `shoal_fuzz::header` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, &[u8])| shoal_fuzz::header::read(input));
