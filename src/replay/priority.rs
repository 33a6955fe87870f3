//! Priorities in fixed point, as the tree keeps them.

/// Bits after the point.
const FRACTION_BITS: u32 = 20;
/// Bits of a priority.
pub(super) const PRIORITY_BITS: u32 = 39;
/// Largest priority, about 524,288.
const LARGEST: u64 = (1 << PRIORITY_BITS) - 1;

/// A priority: 19 bits before the point and 20 after it. Zero is never sampled.
///
/// Integers make the tree exact: sums commute, so the root equals the sum of the leaves whatever order processes
/// update it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub(super) u64);

impl Priority {
    /// The smallest priority that can be sampled.
    pub const SMALLEST: Self = Self(1);
    /// The priority of a transition that cannot be drawn any more.
    pub const NEVER: Self = Self(0);
    /// The largest priority. Only values above it become it: just below it, 32-bit floats lie further apart than
    /// priorities.
    pub const LARGEST: Self = Self(LARGEST);
    /// One.
    pub const ONE: Self = Self(1 << FRACTION_BITS);

    /// The nearest priority to `value`; values out of range become the smallest or largest. `None` for NaN, infinite
    /// and negative values, which never enter the tree.
    pub fn from_f32(value: f32) -> Option<Self> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        // Rounds as `round` does, which would be a call: the bits of an `f32` behind the point are exact in an `f64`,
        // also with the half added. The value is finite and not negative, and the cast saturates.
        let fixed = (f64::from(value) * f64::from(1u32 << FRACTION_BITS) + 0.5) as u64;
        Some(Self(fixed.clamp(1, LARGEST)))
    }

    /// `(|error| + epsilon) ^ alpha` (Schaul et al. 2016, equation 1, proportional variant).
    pub fn from_error(error: f32, epsilon: f32, alpha: f32) -> Option<Self> {
        Self::from_f32((error.abs() + epsilon).powf(alpha))
    }

    /// As a float.
    // 39 bits fit an f64.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << FRACTION_BITS)
    }

    /// A sum of priorities, as a float.
    pub fn sum_to_f64(sum: u64) -> f64 {
        sum as f64 / f64::from(1u32 << FRACTION_BITS)
    }

    /// The sum that a float stands for, rounded down; what is negative or NaN is zero.
    // The cast saturates.
    pub fn sum_from_f64(sum: f64) -> u64 {
        (sum * f64::from(1u32 << FRACTION_BITS)) as u64
    }

    /// The priority in a word of a segment, which may hold anything: at most the largest.
    pub fn from_word(word: u64) -> Self {
        Self(word.min(LARGEST))
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits & LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_priority_is_refused() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, -1e-30] {
            assert_eq!(Priority::from_f32(value), None, "{value}");
        }
    }

    #[test]
    fn values_are_rounded_to_the_nearest_priority() {
        let scale = f64::from(1u32 << FRACTION_BITS);
        for bits in (0..0x4900_0000u32).step_by(4_099) {
            let value = f32::from_bits(bits);
            let nearest = (f64::from(value) * scale).round().max(1.0);
            assert_eq!(Priority::from_f32(value).unwrap().to_f64() * scale, nearest, "{value}");
        }
    }

    #[test]
    fn values_out_of_range_become_the_nearest_priority() {
        assert_eq!(Priority::from_f32(0.0), Some(Priority::SMALLEST));
        assert_eq!(Priority::from_f32(1.0), Some(Priority::ONE));
        assert_eq!(Priority::from_f32(f32::MAX), Some(Priority(LARGEST)));
        assert!((Priority::from_f32(12.75).unwrap().to_f64() - 12.75).abs() < 1e-6);
    }

    #[test]
    fn a_priority_is_the_size_of_the_error_plus_epsilon_to_the_power_of_alpha() {
        for (error, epsilon, alpha, expected) in
            [(3.0, 1.0, 0.5, 2.0), (-3.0, 1.0, 0.5, 2.0), (0.0, 0.25, 0.5, 0.5), (-1.5, 0.5, 1.0, 2.0), (7.0, 1.0, 0.0, 1.0)]
        {
            let priority = Priority::from_error(error, epsilon, alpha).unwrap().to_f64();
            assert!((priority - expected).abs() < 1e-6, "(|{error}| + {epsilon}) ^ {alpha} = {expected}, not {priority}");
        }
        assert_eq!(Priority::from_error(f32::NAN, 1.0, 0.5), None);
    }
}
