//! Normally distributed numbers as NumPy draws them: the ziggurat algorithm with 256 strips.
//!
//! Source: G. Marsaglia, W. W. Tsang, "The Ziggurat Method for Generating Random Variables", 2000. One 64-bit number gives the
//! strip, the sign and the place within the strip, shared out as NumPy does it.

mod tables;

use rand::Rng;

use super::generator::Generator;
use tables::{HEIGHTS, THRESHOLDS, WIDTHS};

/// Where the tail begins.
const TAIL: f64 = 3.654_152_885_361_009;
const TAIL_INVERSE: f64 = 0.273_661_237_329_758_3;
/// A random number's lowest byte chooses the strip, the next bit the sign, and these bits the place within the strip.
const PLACE_BITS: u32 = 52;
const STRIP_BITS: u32 = 8;

impl Generator {
    /// `standard_normal()`: mean 0, standard deviation 1.
    pub fn standard_normal(&mut self) -> f64 {
        loop {
            let random = self.bits.next_u64();
            let strip = (random & 0xff) as usize;
            let negative = random >> STRIP_BITS & 1 == 1;
            let place = random >> (STRIP_BITS + 1) & ((1 << PLACE_BITS) - 1);
            let magnitude = place as f64 * f64::from_bits(WIDTHS[strip]);
            let value = if negative { -magnitude } else { magnitude };
            // Inside the part of the strip that lies wholly under the curve: 99 of 100 times.
            if place < THRESHOLDS[strip] {
                return value;
            }
            if strip == 0 {
                // NumPy takes the sign of the tail from the place.
                let magnitude = self.beyond_tail();
                return if place >> STRIP_BITS & 1 == 1 { -magnitude } else { magnitude };
            }
            let (above, below) = (f64::from_bits(HEIGHTS[strip - 1]), f64::from_bits(HEIGHTS[strip]));
            if (above - below) * self.unit() + below < (-0.5 * value * value).exp() {
                return value;
            }
        }
    }

    /// A number from the tail, by rejection from an exponential distribution. `1 - unit` avoids the logarithm of zero.
    fn beyond_tail(&mut self) -> f64 {
        loop {
            let beyond = -TAIL_INVERSE * (-self.unit()).ln_1p();
            let bound = -(-self.unit()).ln_1p();
            if bound + bound > beyond * beyond {
                return TAIL + beyond;
            }
        }
    }
}
