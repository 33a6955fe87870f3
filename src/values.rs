//! Rows of numbers as environments, replay and networks hand them to each other: floats, or bytes that stay bytes
//! until the first layer of a network.

use serde::{Deserialize, Serialize};

/// Type of the numbers of an observation, or of a network's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// A float of 32 bits, which a network takes as it is.
    F32,
    /// A byte, which a network takes divided by 255: 0 to 1.
    U8,
}

/// What a network multiplies a byte by.
pub const BYTE_SCALE: f32 = 1.0 / 255.0;

impl ValueType {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::U8 => "u8",
        }
    }

    /// Bytes of one number.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::U8 => 1,
        }
    }
}

/// A number of either type.
pub trait Value: Copy + Default + PartialEq + std::fmt::Debug + 'static {
    /// The type.
    const TYPE: ValueType;

    /// The numbers in `values`, which are of this type.
    ///
    /// # Panics
    /// If they are of the other type.
    fn of(values: ValuesMut<'_>) -> &mut [Self];
}

impl Value for f32 {
    const TYPE: ValueType = ValueType::F32;

    fn of(values: ValuesMut<'_>) -> &mut [Self] {
        match values {
            ValuesMut::F32(values) => values,
            ValuesMut::U8(_) => panic!("there are bytes where floats are wanted"),
        }
    }
}

impl Value for u8 {
    const TYPE: ValueType = ValueType::U8;

    fn of(values: ValuesMut<'_>) -> &mut [Self] {
        match values {
            ValuesMut::U8(values) => values,
            ValuesMut::F32(_) => panic!("there are floats where bytes are wanted"),
        }
    }
}

/// Numbers to be read, row after row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<'a> {
    /// Floats.
    F32(&'a [f32]),
    /// Bytes.
    U8(&'a [u8]),
}

impl<'a> Values<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::U8(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Type of the values.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::U8(_) => ValueType::U8,
        }
    }

    /// Row number `index`, where each row has `length` numbers.
    pub fn row(self, index: usize, length: usize) -> Self {
        let range = index * length..(index + 1) * length;
        match self {
            Self::F32(values) => Self::F32(&values[range]),
            Self::U8(values) => Self::U8(&values[range]),
        }
    }

    /// The first `length` numbers.
    pub fn first(self, length: usize) -> Self {
        self.row(0, length)
    }

    /// Bytes of the values, in the machine's order.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::U8(values) => values,
        }
    }

    /// Panics unless these are `rows` rows of `columns` numbers of type `value_type`.
    pub(crate) fn assert_rows(&self, value_type: ValueType, rows: usize, columns: usize) {
        assert_eq!(self.value_type(), value_type, "the input has another type of element than the network");
        assert_eq!(self.len(), rows * columns, "the input is not {rows} rows of {columns} columns");
    }

    /// The values, if they are floats.
    pub fn as_f32(self) -> Option<&'a [f32]> {
        match self {
            Self::F32(values) => Some(values),
            Self::U8(_) => None,
        }
    }
}

/// Numbers to be written, row after row.
#[derive(Debug, PartialEq)]
pub enum ValuesMut<'a> {
    /// Floats.
    F32(&'a mut [f32]),
    /// Bytes.
    U8(&'a mut [u8]),
}

impl ValuesMut<'_> {
    /// Borrow the numbers again, for a shorter time.
    pub fn reborrow(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F32(values) => ValuesMut::F32(values),
            Self::U8(values) => ValuesMut::U8(values),
        }
    }

    /// Become a copy of `values`.
    ///
    /// # Panics
    /// When `values` are of another type, or another number of them.
    pub fn copy_from(&mut self, values: Values<'_>) {
        match (self, values) {
            (Self::F32(to), Values::F32(from)) => to.copy_from_slice(from),
            (Self::U8(to), Values::U8(from)) => to.copy_from_slice(from),
            _ => panic!("bytes cannot be copied into floats, or floats into bytes"),
        }
    }
}

/// Numbers in memory of their own.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueBuffer {
    /// Floats.
    F32(Vec<f32>),
    /// Bytes.
    U8(Vec<u8>),
}

impl ValueBuffer {
    /// `length` zeros.
    pub fn zeros(value_type: ValueType, length: usize) -> Self {
        match value_type {
            ValueType::F32 => Self::F32(vec![0.0; length]),
            ValueType::U8 => Self::U8(vec![0; length]),
        }
    }

    /// Grow to at least `length` numbers; new ones are zero.
    pub fn grow(&mut self, length: usize) {
        match self {
            Self::F32(values) => values.resize(length.max(values.len()), 0.0),
            Self::U8(values) => values.resize(length.max(values.len()), 0),
        }
    }

    /// All numbers, to be read.
    pub fn values(&self) -> Values<'_> {
        match self {
            Self::F32(values) => Values::F32(values),
            Self::U8(values) => Values::U8(values),
        }
    }

    /// All numbers, to be written.
    pub fn values_mut(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F32(values) => ValuesMut::F32(values),
            Self::U8(values) => ValuesMut::U8(values),
        }
    }

    /// Row number `index`, to be written, where each row has `length` numbers.
    pub fn row_mut(&mut self, index: usize, length: usize) -> ValuesMut<'_> {
        let range = index * length..(index + 1) * length;
        match self {
            Self::F32(values) => ValuesMut::F32(&mut values[range]),
            Self::U8(values) => ValuesMut::U8(&mut values[range]),
        }
    }
}

macro_rules! from_slices {
    ($($number:ty, $variant:ident);*) => {$(
        impl<'a> From<&'a [$number]> for Values<'a> {
            fn from(values: &'a [$number]) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a> From<&'a Vec<$number>> for Values<'a> {
            fn from(values: &'a Vec<$number>) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a, const N: usize> From<&'a [$number; N]> for Values<'a> {
            fn from(values: &'a [$number; N]) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a> From<&'a mut [$number]> for ValuesMut<'a> {
            fn from(values: &'a mut [$number]) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a> From<&'a mut Vec<$number>> for ValuesMut<'a> {
            fn from(values: &'a mut Vec<$number>) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a, const N: usize> From<&'a mut [$number; N]> for ValuesMut<'a> {
            fn from(values: &'a mut [$number; N]) -> Self {
                Self::$variant(values)
            }
        }
    )*};
}

from_slices!(f32, F32; u8, U8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_either_type_are_read_and_written_in_place() {
        for value_type in [ValueType::F32, ValueType::U8] {
            let mut buffer = ValueBuffer::zeros(value_type, 6);
            let row = ValueBuffer::zeros(value_type, 3);
            buffer.row_mut(1, 3).copy_from(row.values());
            assert_eq!((buffer.values().row(1, 3), buffer.values().len()), (row.values(), 6));
            assert_eq!(buffer.values().bytes().len(), 6 * value_type.size_bytes());
            assert_eq!(buffer.values().value_type(), value_type);
        }
        let mut bytes = ValueBuffer::U8(vec![1, 2, 3, 4]);
        u8::of(bytes.row_mut(1, 2)).copy_from_slice(&[7, 8]);
        assert_eq!(bytes.values().row(1, 2), Values::U8(&[7, 8]));
        assert_eq!(bytes.values().as_f32(), None);
    }
}
