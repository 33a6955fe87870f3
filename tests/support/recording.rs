//! Recordings of environments, column by column.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use safetensors::{Dtype, SafeTensors};

/// Flag of a row: the step terminated the episode.
pub const TERMINATED: u8 = 1;
/// The episode was cut off after the step.
pub const TRUNCATED: u8 = 2;
/// Flag of a row: it is a reset.
pub const RESET: u8 = 4;
/// Flag of a row: it is a reset with a seed.
pub const SEEDED: u8 = 8;

/// A column of a recording, converted from its little-endian bytes.
pub fn column<const BYTES: usize, T>(file: &SafeTensors<'_>, name: &str, dtype: Dtype, convert: fn([u8; BYTES]) -> T) -> Vec<T> {
    let tensor = file.tensor(name).unwrap_or_else(|error| panic!("column `{name}`: {error}"));
    assert_eq!(tensor.dtype(), dtype, "column `{name}`");
    let (values, rest) = tensor.data().as_chunks::<BYTES>();
    assert!(rest.is_empty(), "column `{name}` ends inside a value");
    values.iter().map(|bytes| convert(*bytes)).collect()
}
