//! Reads the content of a replay row by row, and puts it back: what a saved replay is made of.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::schema::Schema;
use super::store::{NOBODY, RowStore};
use super::view::ReplayView;
use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};

/// A walk over frames leaps beyond what was overwritten by their store divided by this, at most.
const LEAPS_PER_STORE: u64 = 16;

/// What is saved of a slot beside its words: a transition's, with its priority, or a frame's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Which slot.
    pub slot: u64,
    /// How often it had been claimed.
    pub generation: u64,
    /// Priority, in the tree's fixed point; 0 for transitions that cannot be drawn, and for frames; [`Record::TAKEN`]
    /// for rows that were taken.
    pub priority: u64,
}

impl Record {
    /// Priority of a row that was taken, larger than every other.
    pub const TAKEN: u64 = u64::MAX;
}

/// What a priority of zero means in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroPriority {
    /// A process is inserting or overwriting the transition at this moment. Nothing would ever raise its priority in
    /// a saved replay, so it is saved with that of a new transition.
    Unfinished,
    /// A learner has taken the row: rows are taken once. A row that is being inserted counts as taken.
    Taken,
    /// As [`Self::Taken`], and nobody reads rows again that were taken: they are left out.
    TakenForGood,
}

/// The counts of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The insert cursor.
    pub claimed: u64,
    /// Transitions ever inserted.
    pub inserted: u64,
    /// Transitions ever drawn.
    pub sampled: u64,
    /// The largest priority so far, in the tree's fixed point.
    pub largest_priority: u64,
    /// Frames ever written.
    pub frames: u64,
}

impl ReplayView<'_> {
    /// Hand every whole row to `take`, with its words. Other processes may write meanwhile: a row that changes while
    /// it is read is left out, and a row whose priority is zero is treated as `zero` says.
    ///
    /// # Errors
    /// The first error of `take`, which ends the walk.
    pub fn for_each_row<E>(&self, zero: ZeroPriority, mut take: impl FnMut(Record, &[u64]) -> Result<(), E>) -> Result<(), E> {
        // Oldest first, as other processes overwrite them.
        let slots = self.store().oldest_first(self.control.claimed().load(Ordering::Relaxed));
        for_each(self.store(), slots, self.schema().words(), |mut record, words| {
            if let Some(tree) = self.tree() {
                let slot = usize::try_from(record.slot).unwrap_or(usize::MAX);
                record.priority = tree.priority(slot, record.generation).map_or(0, |priority| priority.0);
                // A transition that has lost a frame keeps its zero.
                if zero == ZeroPriority::Unfinished && record.priority == 0 && self.reader().has_its_frames(words) {
                    record.priority = self.largest_priority().0;
                }
            }
            if zero == ZeroPriority::Taken && usize::try_from(record.slot).is_ok_and(|slot| self.leaf_tag(slot).is_none()) {
                record.priority = Record::TAKEN;
            }
            if zero == ZeroPriority::TakenForGood && record.priority == 0 {
                return Ok(());
            }
            take(record, words)
        })
    }

    /// Hand whole frames to `take`, with their words, the oldest first. If other processes overwrite them faster than
    /// `take` takes them, the walk leaps ahead of them, again and again, and finds blocks of frames that are old. Without
    /// leaps it would find new ones alone, which no row names that was read before.
    ///
    /// # Errors
    /// As [`Self::for_each_row`].
    pub fn for_each_frame<E>(&self, take: impl FnMut(Record, &[u64]) -> Result<(), E>) -> Result<(), E> {
        let Some(frames) = self.frames() else { return Ok(()) };
        let (first, capacity) = (frames.written(), frames.capacity() as u64);
        // How far from the first slot the next one is, and how far ahead of the others the next leap goes. Leaps get
        // longer, and blocks with them: between two frames of a transition are those of all other environments.
        let (mut place, mut lead) = (0, 1);
        let slots = std::iter::from_fn(|| {
            let overwritten = frames.written().saturating_sub(first);
            if place < overwritten {
                place = overwritten + lead;
                lead = (2 * lead).min(capacity / LEAPS_PER_STORE);
            }
            let slot = (place < capacity).then(|| frames.slots.slot_of(first + place));
            place += 1;
            slot
        });
        for_each(frames.slots, slots, frames.slots.row(0).len(), take)
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        let control = self.control;
        let count = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Counts {
            claimed: count(control.claimed()),
            inserted: count(control.inserted()),
            sampled: count(control.sampled()),
            largest_priority: count(control.largest_priority()),
            frames: count(control.claimed_frames()),
        }
    }

    /// Whether the replay is being emptied, or was after it had the counts `earlier`: nothing else lowers a count. An
    /// emptying is missed if by now all counts are as high as before.
    pub fn was_emptied_since(&self, earlier: &Counts) -> bool {
        // Acquire: whoever has emptied the replay had reset the counts before.
        let is_being_emptied = self.control.clearing().load(Ordering::Acquire) != 0;
        let four = |counts: &Counts| [counts.claimed, counts.inserted, counts.sampled, counts.largest_priority];
        is_being_emptied || four(&self.counts()).into_iter().zip(four(earlier)).any(|(now, before)| now < before)
    }
}

/// A replay that nobody else uses yet, to be filled with what was saved.
pub struct Restoring<'a> {
    view: ReplayView<'a>,
    transitions: Refilled<'a>,
    frames: Option<Refilled<'a>>,
}

impl<'a> Restoring<'a> {
    /// The replay in `segment`, whose rows follow `schema`.
    pub fn new(segment: &'a Segment, schema: Schema) -> Self {
        let view = ReplayView::new(segment, schema);
        let frames = view.frames().map(|frames| Refilled::new(frames.slots));
        Self { transitions: Refilled::new(view.store()), frames, view }
    }

    /// Put a transition back, to be followed by [`Self::put_counts`] once all are back. `false` if this replay has no
    /// such slot.
    pub fn put_transition(&mut self, record: &Record, words: &[u64]) -> bool {
        let placed = self.transitions.put(record, words);
        // The leaf of a row that was taken has no owner, as that of an empty slot.
        if placed
            && record.priority != Record::TAKEN
            && let (Some(tree), Ok(slot)) = (self.view.tree(), usize::try_from(record.slot))
        {
            tree.place(slot, record.generation, record.priority);
        }
        placed
    }

    /// Put a frame back. `false` if this replay has no such slot.
    pub fn put_frame(&mut self, record: &Record, words: &[u64]) -> bool {
        self.frames.as_mut().is_some_and(|frames| frames.put(record, words))
    }

    /// Once all frames are back, look for transitions that have lost one: frames are saved behind transitions, and other
    /// processes may have overwritten some meanwhile. Such a transition can never be drawn, and its priority becomes 0.
    /// Returns how many there are. If no transition has all its frames, the replay is emptied: no counts are to be put
    /// back then.
    pub fn give_up_incomplete(&self) -> u64 {
        let Self { view, transitions, frames: Some(_) } = self else { return 0 };
        let filled = 0..usize::try_from(transitions.filled).unwrap_or(usize::MAX);
        let mut lost = 0;
        let looked: Result<(), Infallible> = for_each(transitions.slots, filled.clone(), view.schema().words(), |record, words| {
            if view.reader().has_its_frames(words) {
                return Ok(());
            }
            lost += 1;
            // The leaf of a row that was taken stays without an owner.
            if let (Some(tree), Ok(slot)) = (view.tree(), usize::try_from(record.slot))
                && view.leaf_tag(slot).is_some()
            {
                tree.place(slot, record.generation, 0);
            }
            Ok(())
        });
        let Ok(()) = looked;
        if lost == transitions.placed {
            filled.for_each(|slot| transitions.slots.empty(slot));
            if let Some(tree) = view.tree() {
                tree.empty();
            }
        }
        lost
    }

    /// Put the counts back and compute the sums of the tree.
    pub fn put_counts(&self, counts: &Counts) {
        let control = self.view.control;
        for (word, value) in [
            // While the replay was saved, other processes may have filled slots that the counts do not include.
            (control.claimed(), counts.claimed.max(self.transitions.filled)),
            (control.inserted(), counts.inserted.max(self.transitions.placed)),
            (control.sampled(), counts.sampled),
            (control.largest_priority(), counts.largest_priority),
            (control.claimed_frames(), counts.frames),
        ] {
            word.store(value, Ordering::Relaxed);
        }
        self.transitions.outdate_names(counts.claimed);
        if let Some(frames) = &self.frames {
            frames.outdate_names(counts.frames);
        }
        if let Some(tree) = self.view.tree() {
            tree.rebuild();
        }
    }
}

/// A store that is filled again.
struct Refilled<'a> {
    slots: RowStore<'a>,
    /// One more than the number of the last slot that was filled.
    filled: u64,
    /// How many slots were filled.
    placed: u64,
    /// The newest generation that was put back.
    newest: u64,
}

impl<'a> Refilled<'a> {
    fn new(slots: RowStore<'a>) -> Self {
        Self { slots, filled: 0, placed: 0, newest: 0 }
    }

    fn put(&mut self, record: &Record, words: &[u64]) -> bool {
        let slots = self.slots;
        let Some(slot) = usize::try_from(record.slot).ok().filter(|&slot| slot < slots.capacity()) else { return false };
        slots.row(slot).iter().zip(words).for_each(|(to, &from)| to.store(from, Ordering::Relaxed));
        slots.publish(slot, record.generation, NOBODY);
        self.filled = self.filled.max(record.slot + 1);
        self.placed += 1;
        self.newest = self.newest.max(record.generation);
        true
    }

    /// Let the slots that stayed empty go on behind all that was put back. A program, or of frames a row, may still
    /// name what was there before the replay was emptied, or before somebody began to overwrite it: that must not
    /// become the name of something else.
    fn outdate_names(&self, claimed: u64) {
        // In the first lap of a replay that was never emptied, slots that nobody has claimed have no names yet. They
        // are left alone, since their memory may not be allocated before it is written.
        let named = if self.newest > 1 { u64::MAX } else { claimed };
        let named = usize::try_from(named).unwrap_or(usize::MAX).min(self.slots.capacity());
        for slot in 0..named {
            let word = self.slots.word(slot);
            if word.is_empty() && word.generation() < self.newest {
                self.slots.abandon(slot, self.newest, NOBODY);
            }
        }
    }
}

/// Hand every whole slot of `store` to `take`, in the order of `slots`.
fn for_each<E>(
    store: RowStore<'_>,
    slots: impl Iterator<Item = usize>,
    words: usize,
    mut take: impl FnMut(Record, &[u64]) -> Result<(), E>,
) -> Result<(), E> {
    let mut row = vec![0; words];
    for slot in slots {
        let copy = |from: &[AtomicU64]| {
            row.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        };
        if let Some(generation) = store.read(slot, copy) {
            take(Record { slot: slot as u64, generation, priority: 0 }, &row)?;
        }
    }
    Ok(())
}
