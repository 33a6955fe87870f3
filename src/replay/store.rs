//! The store: one row per slot, guarded by a slot word.
//!
//! A slot word is `{generation: 40 bits | state: 4 | owner: 20}`. A writer claims a slot by compare-and-swap
//! (generation raised, state WRITING), copies the row and publishes it (state READY, Release). A reader takes the
//! word (Acquire), copies, and takes the word again: unchanged means that the copy is one whole row of that
//! generation. A writer that meets a slot which another process is writing passes it over, so nobody waits for
//! anybody.

use super::sum_tree::SumTree;
use crate::segment::shared_words::copy_words;
use crate::segment::system::prefetch;
use crate::segment::{Region, Segment};
use crate::sync::{AtomicU64, Ordering, fence};

const OWNER_BITS: u32 = 20;
const STATE_BITS: u32 = 4;
const EMPTY: u64 = 0;
const WRITING: u64 = 1;
const READY: u64 = 2;

/// Owner in the word of a slot that no process wrote: it was loaded from a file, or emptied.
pub(super) const NOBODY: usize = (1 << OWNER_BITS) - 1;

/// Words in a cache line.
const WORDS_PER_LINE: usize = 8;
/// Most cache lines of a row that are asked for early. A uniform batch of 256 of Atari took 1,204 us with none, 1,106
/// with two, 1,103 with four, 1,201 with eight (`cargo bench --no-default-features --bench replay_processes`).
const LINES_AHEAD: usize = 4;

/// A slot word, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotWord(u64);

impl SlotWord {
    fn new(generation: u64, state: u64, owner: usize) -> Self {
        Self(generation << (OWNER_BITS + STATE_BITS) | state << OWNER_BITS | owner as u64)
    }

    /// Counts how often the slot has been claimed or emptied.
    pub fn generation(self) -> u64 {
        self.0 >> (OWNER_BITS + STATE_BITS)
    }

    fn state(self) -> u64 {
        self.0 >> OWNER_BITS & ((1 << STATE_BITS) - 1)
    }

    /// Process slot of the process that claimed it last.
    pub fn owner(self) -> usize {
        usize::try_from(self.0 & ((1 << OWNER_BITS) - 1)).unwrap_or(0)
    }

    /// Whether it holds a whole row.
    pub fn is_ready(self) -> bool {
        self.state() == READY
    }

    /// Whether somebody is writing it.
    pub fn is_writing(self) -> bool {
        self.state() == WRITING
    }

    /// Whether nothing is there.
    pub fn is_empty(self) -> bool {
        self.state() == EMPTY
    }
}

/// Rows, or frames, each in a slot of its own.
#[derive(Clone, Copy)]
pub struct RowStore<'a> {
    words: &'a [AtomicU64],
    stride: usize,
    capacity: usize,
}

impl<'a> RowStore<'a> {
    /// The store in `segment`.
    pub fn of(segment: &'a Segment) -> Self {
        let sizes = segment.layout().sizes();
        Self::of_slots(segment.words(Region::Store), sizes.slot_words(), sizes.capacity)
    }

    /// `capacity` slots of `stride` words each, slot words included.
    pub(super) fn of_slots(words: &'a [AtomicU64], stride: usize, capacity: usize) -> Self {
        Self { words, stride, capacity }
    }

    /// The generation that comes after `generation`: the next one whose tag in the tree is not the tag of empty leaves.
    fn next_generation(generation: u64) -> u64 {
        let next = generation + 1;
        next + u64::from(SumTree::tag_of(next) == SumTree::UNOWNED_TAG)
    }

    /// Number of slots.
    pub fn capacity(self) -> usize {
        self.capacity
    }

    /// The slot of the claim with the number `ticket`: slots are written in turn.
    pub(super) fn slot_of(self, ticket: u64) -> usize {
        usize::try_from(ticket % self.capacity as u64).unwrap_or(0)
    }

    /// All slots, from the one that will be written next: the oldest row first.
    pub(super) fn oldest_first(self, claimed: u64) -> impl Iterator<Item = usize> + use<> {
        let next = self.slot_of(claimed);
        (next..self.capacity).chain(0..next)
    }

    fn slot(self, slot: usize) -> &'a [AtomicU64] {
        &self.words[slot * self.stride..][..self.stride]
    }

    /// The slot word now.
    pub fn word(self, slot: usize) -> SlotWord {
        // Acquire: pairs with the Release of `publish`.
        SlotWord(self.slot(slot)[0].load(Ordering::Acquire))
    }

    /// Ask the processor for the row early, or for the beginning of a long one: it foresees the rest by itself.
    pub fn prefetch(self, slot: usize) {
        for line in self.slot(slot).iter().step_by(WORDS_PER_LINE).take(LINES_AHEAD) {
            prefetch(line);
        }
    }

    /// Claim `slot` for `owner`, if nobody is writing it; returns the new generation. `announce` is called with that
    /// generation before the claim.
    pub(super) fn claim(self, slot: usize, owner: usize, announce: impl FnOnce(u64)) -> Option<u64> {
        let old = self.word(slot);
        if old.is_writing() {
            return None;
        }
        let generation = Self::next_generation(old.generation());
        announce(generation);
        let new = SlotWord::new(generation, WRITING, owner);
        // Acquire and Release: the announcement comes before the claim, and the row's stores after it.
        let claimed = self.slot(slot)[0].compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // A reader that sees any store of the new row must find the slot word changed: the fence orders the claim
        // before the row's Relaxed stores.
        fence(Ordering::Release);
        claimed.then_some(generation)
    }

    /// Copy a staged row into a claimed slot.
    pub(super) fn write(self, slot: usize, row: &[AtomicU64]) {
        copy_words(&self.row(slot)[..row.len()], row);
    }

    /// The words behind the slot word: for the process that claimed the slot to write, and for all others to read as
    /// [`Self::read`] does.
    pub(super) fn row(self, slot: usize) -> &'a [AtomicU64] {
        &self.slot(slot)[1..]
    }

    /// Mark a claimed slot as whole, so that it can be read.
    pub(super) fn publish(self, slot: usize, generation: u64, owner: usize) {
        self.slot(slot)[0].store(SlotWord::new(generation, READY, owner).0, Ordering::Release);
    }

    /// Mark a claimed slot as empty: its row will not be finished.
    pub(super) fn abandon(self, slot: usize, generation: u64, owner: usize) {
        self.slot(slot)[0].store(SlotWord::new(generation, EMPTY, owner).0, Ordering::Release);
    }

    /// Empty a slot, so that the name of what was in it means nothing any more. Only while nobody writes.
    pub(super) fn empty(self, slot: usize) {
        let generation = Self::next_generation(self.word(slot).generation());
        self.slot(slot)[0].store(SlotWord::new(generation, EMPTY, NOBODY).0, Ordering::Release);
    }

    /// Let `copy` copy from the words of the row in `slot` and return the row's generation; `None` when there is no
    /// whole row or it changed meanwhile, and then what was copied means nothing.
    #[inline]
    pub(super) fn read(self, slot: usize, copy: impl FnOnce(&'a [AtomicU64])) -> Option<u64> {
        let before = self.word(slot);
        if !before.is_ready() {
            return None;
        }
        copy(&self.slot(slot)[1..]);
        // Acquire fence: the word is taken again only after the row has been read.
        fence(Ordering::Acquire);
        let after = SlotWord(self.slot(slot)[0].load(Ordering::Relaxed));
        (after == before).then(|| before.generation())
    }
}
