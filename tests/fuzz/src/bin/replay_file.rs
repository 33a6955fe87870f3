//! The file of a saved replay, with the sum that belongs to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::checkpoint::ReplayFile;
use shoal_fuzz::{file, schema, segment};

fuzz_target!(|content: &[u8]| {
    let mut whole = content.to_vec();
    whole.extend(crc32c::crc32c(content).to_le_bytes());
    if let Ok(file) = ReplayFile::open(&file("replay.shoal", &whole)) {
        let _ = file.fill(&segment(), schema());
    }
});
