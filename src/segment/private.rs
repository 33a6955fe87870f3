//! Words of one process alone, on huge pages where the kernel has them.

use super::SegmentError;
use super::mapping::Mapping;
use crate::sync::AtomicU64;

/// Words that are zero until they are written. Their pages are allocated by the first write.
pub struct PrivateWords(Mapping);

impl PrivateWords {
    /// At least `count` words.
    ///
    /// # Errors
    /// The system has no room for them.
    pub fn new(count: usize) -> Result<Self, SegmentError> {
        Mapping::private(count.max(1) * size_of::<AtomicU64>()).map(Self)
    }

    /// The words, the first of them on a cache line.
    pub fn get(&self) -> &[AtomicU64] {
        self.0.words(0, self.0.length_bytes() / size_of::<AtomicU64>())
    }
}
