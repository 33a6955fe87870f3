//! The values of one field, row after row, in this process's own memory.

use super::schema::{Element, Field};
use crate::values::Values;

/// The values of one field, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    element: Element,
    /// Whole words, so that elements of every size are aligned.
    words: Vec<u64>,
    length_bytes: usize,
}

impl Column {
    /// Zeros for `rows` rows of `field`.
    pub fn new(field: &Field, rows: usize) -> Self {
        let length_bytes = field.size_bytes() * rows;
        Self { element: field.element, words: vec![0; length_bytes.div_ceil(8)], length_bytes }
    }

    /// Element type.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The values' bytes, in the machine's order.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length_bytes]
    }

    /// The values' bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length_bytes]
    }

    /// The values, if they are 32-bit floats.
    pub fn as_f32(&self) -> &[f32] {
        if self.element == Element::F32 { bytemuck::cast_slice(self.bytes()) } else { &[] }
    }

    /// The values, if they are 32-bit floats, to be changed.
    pub fn as_f32_mut(&mut self) -> &mut [f32] {
        if self.element == Element::F32 { bytemuck::cast_slice_mut(self.bytes_mut()) } else { &mut [] }
    }

    /// The values, if they are 32-bit signed integers.
    pub fn as_i32(&self) -> &[i32] {
        if self.element == Element::I32 { bytemuck::cast_slice(self.bytes()) } else { &[] }
    }

    /// The values, if they are 32-bit signed integers, to be changed.
    pub fn as_i32_mut(&mut self) -> &mut [i32] {
        if self.element == Element::I32 { bytemuck::cast_slice_mut(self.bytes_mut()) } else { &mut [] }
    }

    /// The values, if they are bytes.
    pub fn as_u8(&self) -> &[u8] {
        if self.element == Element::U8 { self.bytes() } else { &[] }
    }

    /// The values as a network takes them.
    ///
    /// # Panics
    /// When they are neither 32-bit floats nor bytes.
    pub fn as_values(&self) -> Values<'_> {
        match self.element {
            Element::F32 => Values::F32(self.as_f32()),
            Element::U8 => Values::U8(self.as_u8()),
            other => panic!("values of type {} are not what networks take", other.name()),
        }
    }

    /// Become a copy of a part of `from`, which holds values of the same field.
    pub(super) fn replace(&mut self, from: &Self, range_bytes: std::ops::Range<usize>) {
        self.element = from.element;
        self.length_bytes = range_bytes.len();
        self.words.resize(self.length_bytes.div_ceil(8), 0);
        self.bytes_mut().copy_from_slice(&from.bytes()[range_bytes]);
    }
}

impl AsMut<[u8]> for Column {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}
