//! Reads the file of a saved replay, with its right checksum.

use shoal::checkpoint::ReplayFile;

/// Fill a replay from a file with this `content`.
pub fn read(content: &[u8]) {
    let mut whole = content.to_vec();
    whole.extend(crc32c::crc32c(content).to_le_bytes());
    if let Ok(file) = ReplayFile::open(&super::file("replay.shoal", &whole)) {
        let _ = file.fill(&super::segment(), super::schema());
    }
}
