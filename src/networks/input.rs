//! What a network is given: rows of floats, or of bytes that become floats on their way into the first layer.

use super::InputElement;

/// The elements of an input, row after row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// Floats, which enter as they are.
    F32(&'a [f32]),
    /// Bytes, which enter as their 255th part.
    U8(&'a [u8]),
}

/// What a byte is multiplied by.
pub(super) const BYTE_SCALE: f32 = 1.0 / 255.0;

impl Input<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::U8(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Type of the elements.
    pub fn element(&self) -> InputElement {
        match self {
            Self::F32(_) => InputElement::F32,
            Self::U8(_) => InputElement::U8,
        }
    }

    /// Panics unless these are `rows` rows of `columns` elements of the type `element`.
    pub(super) fn check(&self, element: InputElement, rows: usize, columns: usize) {
        assert_eq!(self.element(), element, "the input has another type of element than the network");
        assert_eq!(self.len(), rows * columns, "the input is not {rows} rows of {columns} columns");
    }
}

impl<'a> From<&'a [f32]> for Input<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a Vec<f32>> for Input<'a> {
    fn from(values: &'a Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Input<'a> {
    fn from(values: &'a [f32; N]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [u8]> for Input<'a> {
    fn from(values: &'a [u8]) -> Self {
        Self::U8(values)
    }
}

impl<'a> From<&'a Vec<u8>> for Input<'a> {
    fn from(values: &'a Vec<u8>) -> Self {
        Self::U8(values)
    }
}
