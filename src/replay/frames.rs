//! The frame store: each image once, named by the transitions that show it.
//!
//! An Atari transition shows eight frames, and each frame is shown by up to eight transitions. A row therefore holds
//! names (slot and generation), and the frames lie in a ring of their own, written under the same protocol as
//! transitions. A frame is published before the transition that names it is staged, so a committed transition never
//! names half a frame; a frame whose writer died before that is named by nobody. Once a frame has been overwritten, the
//! transitions that show it are drawn no more.

use super::name::Name;
use super::store::RowStore;
use crate::segment::shared_words::{load_bytes, store_bytes};
use crate::segment::{Region, Segment};
use crate::sync::{AtomicU64, Ordering};

/// The frames of all stacked fields.
#[derive(Clone, Copy)]
pub struct FrameStore<'a> {
    pub(super) slots: RowStore<'a>,
    claimed: &'a AtomicU64,
}

impl<'a> FrameStore<'a> {
    /// The frames in `segment`; `None` when no field is made of frames.
    pub fn of(segment: &'a Segment) -> Option<Self> {
        let sizes = segment.layout().sizes();
        let slots = RowStore::of_slots(segment.words(Region::Frames), sizes.frame_slot_words(), sizes.frames);
        (sizes.frames > 0).then(|| Self { slots, claimed: segment.control().claimed_frames() })
    }

    /// Number of frames that fit.
    pub fn capacity(self) -> usize {
        self.slots.capacity()
    }

    /// Frames written so far: the number of the next one.
    pub fn written(self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Store a frame for `owner` and return its name. To be called inside an operation, so that the process is
    /// repaired after if it dies.
    pub(super) fn write(self, frame: &[u8], owner: usize) -> Name {
        loop {
            let ticket = self.claimed.fetch_add(1, Ordering::Relaxed);
            let slot = self.slots.slot_of(ticket);
            // A slot that another process is writing is left to it.
            if let Some(generation) = self.slots.claim(slot, owner, |_| ()) {
                store_bytes(self.slots.row(slot), frame);
                self.slots.publish(slot, generation, owner);
                return Name { slot, generation };
            }
        }
    }

    /// Ask the processor for a frame early.
    #[inline]
    pub(super) fn prefetch(self, name: Name) {
        if name.slot < self.slots.capacity() {
            self.slots.prefetch(name.slot);
        }
    }

    /// Copy a frame; `false` when it has been overwritten.
    #[inline]
    pub(super) fn read(self, name: Name, frame: &mut [u8]) -> bool {
        name.slot < self.slots.capacity() && self.slots.read(name.slot, |words| load_bytes(words, frame)) == Some(name.generation)
    }

    /// Whether a frame is there.
    pub fn holds(self, name: Name) -> bool {
        name.slot < self.slots.capacity() && self.slots.read(name.slot, |_| ()) == Some(name.generation)
    }

    /// Give up what `owner` was writing when it died.
    pub(super) fn abandon_unfinished(self, owner: usize) {
        for slot in 0..self.slots.capacity() {
            let word = self.slots.word(slot);
            if word.is_writing() && word.owner() == owner {
                self.slots.abandon(slot, word.generation(), owner);
            }
        }
    }
}
