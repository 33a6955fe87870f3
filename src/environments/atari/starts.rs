//! The random numbers of a game: the emulator's seed, and how many frames a game waits at its start.

use rand::Rng;

use crate::environments::{Generator, SeedSequence};

/// Random numbers equal to those of Gymnasium's Atari environments: `numpy.random.Generator(PCG64(...))`, from which
/// `AtariPreprocessing` takes one number between 1 and `noop_max` for each game.
#[derive(Debug)]
pub(super) struct Starts {
    generator: Generator,
    /// The upper half of the last 64 bits, which NumPy keeps for the next number.
    upper: Option<u32>,
}

impl Starts {
    /// The random numbers of a seed and the seed of the emulator, as `AtariEnv.seed_game` derives them.
    pub(super) fn from_seed(seed: u64) -> (Self, i32) {
        let [words] = SeedSequence::new(seed).generate_state::<1>();
        let (own, emulator) = (words as u32, (words >> 32) as u32);
        (Self { generator: Generator::from_seed(own.into()), upper: None }, emulator as i32)
    }

    /// `integers(1, most + 1)`, or 0 where `most` is 0.
    pub(super) fn draw(&mut self, most: u32) -> u32 {
        if most <= 1 {
            return most;
        }
        // Lemire's method: the upper half of a product, and another try where the lower half would favour some numbers.
        loop {
            let product = u64::from(self.next()) * u64::from(most);
            if product as u32 >= most.wrapping_neg() % most {
                return 1 + (product >> 32) as u32;
            }
        }
    }

    fn next(&mut self) -> u32 {
        self.upper.take().unwrap_or_else(|| {
            let bits = self.generator.bits.next_u64();
            self.upper = Some((bits >> 32) as u32);
            bits as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NumPy 2.4.6: `a, b = SeedSequence(seed).generate_state(2)`, then the emulator's seed is `int32(b)`, and the numbers are
    /// `Generator(PCG64(SeedSequence(int(a)))).integers(1, 31)`.
    #[test]
    fn numbers_are_those_of_numpy() {
        for (seed, emulator, expected) in NUMPY {
            let (mut starts, of_the_emulator) = Starts::from_seed(seed);
            assert_eq!((of_the_emulator, std::array::from_fn(|_| starts.draw(30))), (emulator, expected), "seed {seed}");
        }
    }

    const NUMPY: [(u64, i32, [u32; 12]); 7] = [
        (0, -617_818_137, [22, 1, 1, 30, 12, 24, 3, 3, 20, 9, 29, 13]),
        (1, 1_731_038_949, [5, 23, 30, 5, 2, 13, 13, 8, 1, 9, 30, 30]),
        (7, -355_404_031, [14, 17, 29, 5, 8, 5, 9, 19, 17, 5, 21, 7]),
        (1 << 31, -645_895_332, [8, 16, 28, 14, 9, 13, 1, 15, 29, 9, 7, 27]),
        ((1 << 32) + 5, -104_768_554, [3, 13, 21, 8, 4, 18, 22, 11, 15, 6, 12, 27]),
        ((1 << 63) + 11, -1_836_877_957, [3, 15, 28, 24, 21, 14, 1, 10, 20, 30, 28, 10]),
        (u64::MAX, -1_363_369_647, [14, 15, 24, 3, 7, 22, 8, 8, 29, 6, 4, 7]),
    ];

    #[test]
    fn no_waiting_and_a_single_frame_use_up_no_number() {
        let (mut starts, _) = Starts::from_seed(3);
        let (mut untouched, _) = Starts::from_seed(3);
        assert_eq!((starts.draw(0), starts.draw(1)), (0, 1));
        assert_eq!(starts.draw(30), untouched.draw(30));
    }
}
