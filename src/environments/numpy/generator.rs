//! NumPy's default random generator: PCG64 seeded through [`SeedSequence`], with NumPy's conversion to real numbers.

use rand::Rng;
use rand_pcg::Lcg128Xsl64;

use super::seed_sequence::SeedSequence;

/// Distance between two neighbouring values of [`Generator::uniform`] on the unit interval: 53 bits fit a double.
const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

/// Equal to `numpy.random.Generator(numpy.random.PCG64(seed))`, value for value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    pub(in crate::environments) bits: Lcg128Xsl64,
}

impl Generator {
    /// Start from a seed, as `gymnasium.utils.seeding.np_random(seed)`.
    pub fn from_seed(seed: u64) -> Self {
        let words: [u64; 4] = SeedSequence::new(seed).generate_state();
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Self { bits: Lcg128Xsl64::new(wide(words[0], words[1]), wide(words[2], words[3])) }
    }

    /// Start from a seed that the operating system chose.
    pub fn from_operating_system() -> Self {
        Self::from_seed(rand::random())
    }

    /// `uniform(low, high)`: `low` included, `high` not.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// `floor(count * random())`: one of the indices below `count`, which has to be small beside 2^53.
    pub(in crate::environments) fn index(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    /// `random()`: 0 included, 1 not.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits.next_u64() >> 11) as f64 * UNIT
    }
}
