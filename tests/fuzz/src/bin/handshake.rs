//! Gives `shoal_fuzz::handshake` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| shoal_fuzz::handshake::read(message));
