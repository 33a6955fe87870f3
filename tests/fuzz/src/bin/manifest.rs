//! The manifest of a checkpoint, with the sum that belongs to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::checkpoint::RunCheckpoint;

fuzz_target!(|manifest: &[u8]| {
    shoal_fuzz::file("manifest.json", manifest);
    shoal_fuzz::file("manifest.crc32c", format!("{:08x}", crc32c::crc32c(manifest)).as_bytes());
    let _ = RunCheckpoint::open(shoal_fuzz::folder());
});
