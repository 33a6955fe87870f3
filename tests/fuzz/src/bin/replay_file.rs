//! Gives `shoal_fuzz::replay_file` any input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| shoal_fuzz::replay_file::read(content));
