//! The name of what lies in a slot: the slot and the generation it had there.

/// A slot and a generation, in one word. Generations count from 1, so no name is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    /// Which slot.
    pub slot: usize,
    /// How often it had been claimed.
    pub generation: u64,
}

const SLOT_BITS: u32 = 24;

impl Name {
    /// As one word.
    pub fn to_bits(self) -> u64 {
        self.slot as u64 | self.generation << SLOT_BITS
    }

    /// From one word; `None` from 0.
    pub fn from_bits(word: u64) -> Option<Self> {
        let slot = usize::try_from(word & ((1 << SLOT_BITS) - 1)).unwrap_or(0);
        (word != 0).then_some(Self { slot, generation: word >> SLOT_BITS })
    }
}
