//! The screen of a console.

use super::Picture;

/// A screen in shades of grey, rows x columns; each of its pixels becomes a block of `high` rows and `wide` columns.
pub(in crate::environments) fn screen(shades: &[u8], [rows, columns]: [usize; 2], [high, wide]: [usize; 2]) -> Picture {
    let (width, height) = (columns * wide, rows * high);
    let mut bytes = Vec::with_capacity(height * width * 3);
    for row in shades.chunks_exact(columns) {
        let line: Vec<u8> = row.iter().flat_map(|&shade| std::iter::repeat_n(shade, wide * 3)).collect();
        (0..high).for_each(|_| bytes.extend_from_slice(&line));
    }
    Picture { width, height, bytes }
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn each_pixel_becomes_a_block_of_its_shade() {
        let shades = [0, 50, 100, 150, 200, 250];
        let picture = screen(&shades, [2, 3], [2, 4]);
        assert_eq!((picture.width, picture.height), (12, 4));
        for (row, column) in (0..4).flat_map(|row| (0..12).map(move |column| (row, column))) {
            assert_eq!(picture.pixel(column, row), [shades[row / 2 * 3 + column / 4]; 3], "row {row}, column {column}");
        }
    }
}
