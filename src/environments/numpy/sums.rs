//! Sums as NumPy forms them: the order of the additions decides the last bits of a reward.

use std::ops::{Add, Mul};

/// Sums that NumPy keeps at a time.
const LANES: usize = 8;
/// NumPy splits longer arrays in two.
const LONGEST: usize = 128;

/// `numpy.sum(numpy.square(values))`, in the precision of the values.
///
/// # Panics
/// As [`sum`].
pub(in crate::environments) fn sum_of_squares<T: Copy + Default + Add<Output = T> + Mul<Output = T>>(values: &[T]) -> T {
    sum(values, |value| value * value)
}

/// `numpy.sum(of(values))` of a contiguous array.
///
/// Fewer than eight values are added one after another. Of more, every eighth goes to the same of eight sums, these are
/// added in pairs, and what is left over follows.
///
/// # Panics
/// If there are more than 128 values, which NumPy adds in yet another order.
pub(in crate::environments) fn sum<T: Copy + Default + Add<Output = T>>(values: &[T], of: impl Fn(T) -> T) -> T {
    assert!(values.len() <= LONGEST, "{} values are more than {LONGEST}", values.len());
    let (blocks, rest) = values.as_chunks::<LANES>();
    let start = blocks.split_first().map_or_else(T::default, |(first, others)| {
        let mut lanes = first.map(&of);
        for block in others {
            for (lane, &value) in lanes.iter_mut().zip(block) {
                *lane = *lane + of(value);
            }
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    });
    rest.iter().fold(start, |sum, &value| sum + of(value))
}

#[cfg(test)]
mod tests {
    use super::{sum, sum_of_squares};

    #[test]
    fn sums_equal_numpys_in_their_last_bit() {
        // Count, bits of the sum in single precision, bits of the sum of the squares of thirds in double precision. Computed by
        // NumPy 2.4; those of 8, 14, 17 and 128 values are not what adding one after another gives.
        for (count, single, double) in [
            (0, 0x0000_0000, 0x0000_0000_0000_0000),
            (3, 0x4104_9249, 0x400e_a858_2937_25c6),
            (7, 0x422a_db6e, 0x4047_6a85_8f35_fc87),
            (8, 0x424f_6db6, 0x404c_0f62_2d1b_4896),
            (14, 0x42ba_db6d, 0x405a_9f0e_872c_a03b),
            (17, 0x42fc_4925, 0x4062_5d3e_1b04_06fa),
            (84, 0x440e_edb6, 0x4082_d530_2f27_92e0),
            (128, 0x4460_2492, 0x408e_5fa3_1f64_deed),
        ] {
            let singles: Vec<f32> = (0..count).map(|index| (index * index * 31 % 97) as f32 / 7.0).collect();
            let doubles: Vec<f64> = singles.iter().map(|value| f64::from(*value) / 3.0).collect();
            assert_eq!(sum(&singles, |value| value).to_bits(), single, "{count} values");
            assert_eq!(sum_of_squares(&doubles).to_bits(), double, "squares of {count} values");
        }
    }
}
