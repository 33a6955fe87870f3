//! Reads the description in a segment.

use shoal::replay::Schema;
use shoal::segment::{Region, Segment};
use shoal::sync::Ordering;

thread_local! {
    static SEGMENT: Segment = super::segment();
}

/// Read `content` as a description.
pub fn read(content: &[u8]) {
    SEGMENT.with(|segment| {
        let words = segment.words(Region::Description);
        let mut bytes = content.chunks(8);
        for word in words {
            let mut value = [0; 8];
            let part = bytes.next().unwrap_or_default();
            value[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
        if let Ok(description) = segment.description() {
            let _ = Schema::from_description(&description.fields);
        }
    });
}
