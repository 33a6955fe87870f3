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

    /// Bytes of the largest picture that is shown or recorded: 640 x 480 pixels.
    pub const LARGEST_SHOWN_BYTES: usize = 640 * 480 * 3;

    /// The picture, shrunk until it has at most `most_bytes`: squares of pixels become their mean.
    pub fn within(self, most_bytes: usize) -> Self {
        let fits = |&side: &usize| (self.width / side) * (self.height / side) * 3 <= most_bytes;
        match (1..=self.width.max(self.height)).find(fits) {
            None | Some(1) => self,
            Some(side) => self.shrunk(side),
        }
    }

    fn shrunk(&self, side: usize) -> Self {
        let (width, height) = (self.width / side, self.height / side);
        let mut bytes = Vec::with_capacity(width * height * 3);
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            for channel in 0..3 {
                let of_row = |row: usize| {
                    (0..side).map(move |across| usize::from(self.bytes[(row * self.width + column * side + across) * 3 + channel]))
                };
                let sum: usize = (0..side).flat_map(|down| of_row(row * side + down)).sum();
                bytes.push(u8::try_from(sum / (side * side)).unwrap_or(u8::MAX));
            }
        }
        Self { width, height, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_is_too_large_shows_means_of_squares() {
        let bytes = (0..4 * 6).flat_map(|pixel| [pixel, 100, 255]).collect();
        let picture = Picture { width: 6, height: 4, bytes };
        assert_eq!(picture.clone().within(6 * 4 * 3), picture);
        let small = picture.clone().within(6 * 4 * 3 - 1);
        assert_eq!((small.width, small.height, small.pixel(0, 0)), (3, 2, [(1 + 6 + 7) / 4, 100, 255]));
        assert_eq!(picture.within(3).width, 1);
    }
}
