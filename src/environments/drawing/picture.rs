//! A picture as plain bytes.

/// A picture: rows of pixels from the top, each pixel a byte of red, of green and of blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `height` x `width` x 3 bytes.
    pub bytes: Vec<u8>,
}

impl Picture {
    /// The pixel in that column and row.
    ///
    /// # Panics
    /// If it lies outside.
    pub fn pixel(&self, column: usize, row: usize) -> [u8; 3] {
        assert!(column < self.width && row < self.height, "({column}, {row}) is outside of {} x {}", self.width, self.height);
        let first = (row * self.width + column) * 3;
        [self.bytes[first], self.bytes[first + 1], self.bytes[first + 2]]
    }
}
