//! NumPy's `SeedSequence`: turns one integer into well-mixed initial states.
//!
//! Gymnasium seeds an environment through it, so equal episodes need an equal sequence. It also derives independent seeds for
//! many environments from one: neighbouring seeds must not share episodes, which `seed + index` would do.
//! The algorithm is M. E. O'Neill's `seed_seq_fe`, as fixed by NumPy's compatibility promise.

const POOL_WORDS: usize = 4;
/// 64 bits of seed, padded to the pool, and one word of the spawn key.
const MAX_ENTROPY_WORDS: usize = POOL_WORDS + 1;
const XOR_SHIFT: u32 = 16;

/// Mixed entropy, equal to `numpy.random.SeedSequence(seed)` or `SeedSequence(seed, spawn_key=(index,))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedSequence {
    pool: [u32; POOL_WORDS],
}

impl SeedSequence {
    /// `SeedSequence(seed)`.
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        // A zero word and a missing word are mixed alike, so the number of significant words does not matter here.
        Self::mix_entropy(&words)
    }

    /// `SeedSequence(seed, spawn_key=(index,))`: one of many independent children of a seed.
    pub fn child(seed: u64, index: u32) -> Self {
        // The seed is padded to the pool size, so that no seed of another length can collide with a child.
        let words: [u32; MAX_ENTROPY_WORDS] = [seed as u32, (seed >> 32) as u32, 0, 0, index];
        Self::mix_entropy(&words)
    }

    /// `generate_state(N, dtype=np.uint64)`.
    pub fn generate_state<const N: usize>(&self) -> [u64; N] {
        let mut hash = Hash { constant: 0x8b51_f9dd, multiplier: 0x58f3_8ded };
        let mut words = self.pool.iter().cycle();
        let mut next_word = || hash.apply(*words.next().expect("a cycle over a pool that is not empty does not end"));
        std::array::from_fn(|_| {
            let low = u64::from(next_word());
            low | u64::from(next_word()) << 32
        })
    }

    fn mix_entropy(entropy: &[u32]) -> Self {
        let mut hash = Hash { constant: 0x43b0_d7e5, multiplier: 0x931e_8875 };
        let mut pool: [u32; POOL_WORDS] = std::array::from_fn(|index| hash.apply(entropy.get(index).copied().unwrap_or(0)));
        for source in 0..POOL_WORDS {
            for target in (0..POOL_WORDS).filter(|target| *target != source) {
                pool[target] = mix(pool[target], hash.apply(pool[source]));
            }
        }
        for &word in entropy.iter().skip(POOL_WORDS) {
            for target in &mut pool {
                *target = mix(*target, hash.apply(word));
            }
        }
        Self { pool }
    }
}

/// The seed of child `index`: `SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0]`.
pub fn derive_seed(seed: u64, index: u32) -> u64 {
    let [derived] = SeedSequence::child(seed, index).generate_state();
    derived
}

/// A multiplicative hash whose constant changes with every word.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn apply(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let word = word.wrapping_mul(self.constant);
        word ^ word >> XOR_SHIFT
    }
}

fn mix(target: u32, source: u32) -> u32 {
    let mixed = target.wrapping_mul(0xca01_f9dd).wrapping_sub(source.wrapping_mul(0x4973_f715));
    mixed ^ mixed >> XOR_SHIFT
}
