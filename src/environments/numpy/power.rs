//! Squares as NumPy computes them.
//!
//! NumPy evaluates `scalar ** 2` by calling the C library's `pow`, whose last bit is not always that of `scalar * scalar`
//! (about one value in a thousand). The standard library's `powf` calls the same function, but an optimiser that sees the
//! constant 2.0 rewrites the call into the product. [`black_box`] hides the constant from it.

use std::hint::black_box;

/// `np.float64(value) ** 2`.
pub(in crate::environments) fn square(value: f64) -> f64 {
    value.powf(black_box(2.0))
}

/// `np.float32(value) ** 2`.
pub(in crate::environments) fn square_f32(value: f32) -> f32 {
    value.powf(black_box(2.0))
}

#[cfg(test)]
mod tests {
    use super::{square, square_f32};

    #[test]
    fn squares_are_those_of_pow_and_not_products() {
        // Computed by NumPy 2.4: the product of each of these differs in its last bit.
        for (value, squared) in [(1.375222427821524, 1.8912367259833267), (3.937343092287157, 15.50267062638139)] {
            assert_eq!(square(value), squared);
            assert_ne!(value * value, squared);
        }
        let (value, squared) = (-3.209455_f32, 10.300602_f32);
        assert_eq!(square_f32(value), squared);
        assert_ne!(value * value, squared);
    }
}
