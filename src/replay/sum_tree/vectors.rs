//! One step of a descent, four siblings at a time (AVX2): the sums of a group are added up in registers and all compared
//! with the target at once, so that nothing is left for a branch to guess.

use std::arch::x86_64::__m256i;

use pulp::cast;
use pulp::x86::V3;

use super::siblings::{Siblings, choose_carefully};
use crate::segment::system::load_four;
use crate::sync::AtomicU64;

/// Siblings in one register.
const LANES: usize = 4;
/// Siblings that are compared with the target together; larger groups are passed in blocks of so many.
const BLOCK: usize = 16;

/// The instructions, which only a processor that has them can name.
#[derive(Clone, Copy)]
pub(super) struct Vectors(pub(super) V3);

impl Siblings for Vectors {
    #[inline(always)]
    fn choose<const K: usize>(self, group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
        let group = &group[..K];
        let found = match K {
            4 => self.locate::<1>(group, mask, target),
            8 => self.locate::<2>(group, mask, target),
            16 => self.locate::<4>(group, mask, target),
            _ => {
                let found = self.pass_blocks::<K>(group, mask, target);
                found.and_then(|(first, rest)| self.locate::<4>(&group[first..], mask, rest).map(|(child, rest)| (first + child, rest)))
            }
        };
        found.or_else(|| choose_carefully(group, mask, target))
    }

    #[inline(always)]
    fn rank(self, prefixes: &[u64; 16], target: u64) -> usize {
        let target = self.broadcast(target);
        let (rows, _) = prefixes.as_chunks::<LANES>();
        let reached = (0..4).fold(1 << 15, |reached, row| reached | self.above(cast(rows[row]), target) << (row * LANES));
        reached.trailing_zeros() as usize
    }
}

impl Vectors {
    #[inline(always)]
    fn broadcast(self, word: u64) -> __m256i {
        self.0.avx._mm256_set1_epi64x(word.cast_signed())
    }

    /// A bit for each lane of `sums` that is larger than that of `target`.
    #[inline(always)]
    fn above(self, sums: __m256i, target: __m256i) -> u32 {
        let larger = self.0.avx2._mm256_cmpgt_epi64(sums, target);
        self.0.avx._mm256_movemask_pd(self.0.avx._mm256_castsi256_pd(larger)).cast_unsigned()
    }

    /// Whether any lane has its sign bit set.
    #[inline(always)]
    fn any_negative(self, signs: __m256i) -> bool {
        self.0.avx._mm256_movemask_pd(self.0.avx._mm256_castsi256_pd(signs)) != 0
    }

    /// Each lane plus those before it.
    #[inline(always)]
    fn prefixes(self, sums: __m256i) -> __m256i {
        let avx2 = self.0.avx2;
        let pairs = avx2._mm256_add_epi64(sums, avx2._mm256_slli_si256::<8>(sums));
        // The lower half moved into the upper one, and its last lane into both lanes there.
        let lower = avx2._mm256_permute2x128_si256::<0x08>(pairs, pairs);
        avx2._mm256_add_epi64(pairs, avx2._mm256_unpackhi_epi64(lower, lower))
    }

    /// The child of the first `ROWS` times four on which `target` falls, and what is left of the target; `None` if it
    /// lies behind them all or a sum is negative for a moment.
    #[inline(always)]
    fn locate<const ROWS: usize>(self, group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
        let (avx, avx2) = (self.0.avx, self.0.avx2);
        let (rows, _) = group[..ROWS * LANES].as_chunks::<LANES>();
        let (mask, wanted) = (self.broadcast(mask), self.broadcast(target));
        let (mut before, mut signs) = (avx._mm256_setzero_si256(), avx._mm256_setzero_si256());
        // The sum before each child, which is where the rest of the target is looked up.
        let mut passed = [0; BLOCK + 1];
        let mut reached = 1 << (ROWS * LANES);
        for row in 0..ROWS {
            let sums = avx2._mm256_and_si256(load_four(self.0, &rows[row]), mask);
            signs = avx2._mm256_or_si256(signs, sums);
            let prefixes = avx2._mm256_add_epi64(self.prefixes(sums), before);
            before = avx2._mm256_permute4x64_epi64::<0b11_11_11_11>(prefixes);
            passed[row * LANES + 1..][..LANES].copy_from_slice(&cast::<_, [u64; LANES]>(prefixes));
            reached |= self.above(prefixes, wanted) << (row * LANES);
        }
        let child = reached.trailing_zeros() as usize;
        let is_here = child < ROWS * LANES && !self.any_negative(signs);
        is_here.then(|| (child, target.wrapping_sub(passed[child])))
    }

    /// The first child behind the whole blocks that `target` passes, the last excluded, and what is left of the target
    /// there; `None` if a sum is negative for a moment.
    #[inline(always)]
    fn pass_blocks<const K: usize>(self, group: &[AtomicU64], mask: u64, target: u64) -> Option<(usize, u64)> {
        let avx2 = self.0.avx2;
        let mask = self.broadcast(mask);
        let mut signs = self.broadcast(0);
        let (blocks, _) = group.as_chunks::<BLOCK>();
        let (mut block, mut passed, mut prefix) = (0, 0, 0u64);
        for siblings in &blocks[..K / BLOCK - 1] {
            let (rows, _) = siblings.as_chunks::<LANES>();
            let mut block_sums = self.broadcast(0);
            for row in rows {
                let sums = avx2._mm256_and_si256(load_four(self.0, row), mask);
                signs = avx2._mm256_or_si256(signs, sums);
                block_sums = avx2._mm256_add_epi64(block_sums, sums);
            }
            let sums: [u64; LANES] = cast(self.prefixes(block_sums));
            prefix = prefix.wrapping_add(sums[LANES - 1]);
            let is_passed = prefix <= target;
            block += usize::from(is_passed);
            passed = if is_passed { prefix } else { passed };
        }
        (!self.any_negative(signs)).then(|| (block * BLOCK, target - passed))
    }
}
