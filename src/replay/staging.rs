//! Staging areas: where an actor writes rows before they enter the store (PAL's lazy writing).
//!
//! An area belongs to one process, so writing into it needs no synchronisation. It lies in the segment, so that the
//! rows a killed actor had completed are still there for the supervisor. It is also the log of a flush under
//! way: each staged row names the slot it was going to before that slot is touched.
//!
//! ```text
//! | committed, flushed | destination, priority, row | destination, priority, row | ...
//! ```

use super::Priority;
use super::name::Name;
use super::row;
use super::schema::{Element, Field, Schema};
use crate::segment::shared_words::{high, low};
use crate::segment::{Region, Segment};
use crate::sync::{AtomicU64, Ordering};

const HEADER_WORDS: usize = 8;
/// Stands for "as urgent as the most urgent so far".
const LARGEST_SO_FAR: u64 = u64::MAX;

/// One process's staging area.
#[derive(Clone, Copy)]
pub struct StagingArea<'a> {
    words: &'a [AtomicU64],
    capacity: usize,
    stride: usize,
}

impl<'a> StagingArea<'a> {
    /// The area in `segment` of the process in `slot`.
    ///
    /// # Panics
    /// If that slot has no staging area.
    pub fn of(segment: &'a Segment, slot: usize) -> Self {
        let sizes = segment.layout().sizes();
        assert!(slot < sizes.stagers, "slot {slot} is none of the {} that stage", sizes.stagers);
        let length = sizes.staging_area_words();
        let words = &segment.words(Region::Staging)[slot * length..][..length];
        Self { words, capacity: sizes.staged_rows, stride: sizes.staged_words() }
    }

    /// Rows that fit.
    pub fn capacity(self) -> usize {
        self.capacity
    }

    /// Number of rows that are written completely, and how many of them are in the store already.
    pub fn progress(self) -> (usize, usize) {
        // Acquire: the supervisor reads a dead actor's rows through this word.
        let word = self.words[0].load(Ordering::Acquire);
        (low(word) as usize, high(word) as usize)
    }

    /// Note the progress. An area whose rows are all in the store becomes empty.
    pub(super) fn set_progress(self, committed: usize, flushed: usize) {
        let (committed, flushed) = if flushed == committed { (0, 0) } else { (committed, flushed) };
        // One word for both, so that no death falls between them. Release: whoever sees a row committed sees it.
        self.words[0].store(committed as u64 | (flushed as u64) << 32, Ordering::Release);
    }

    /// Rows not yet in the store.
    pub fn pending(self) -> usize {
        let (committed, flushed) = self.progress();
        committed.saturating_sub(flushed)
    }

    /// Whether the next row needs a flush first.
    pub fn is_full(self) -> bool {
        self.progress().0 >= self.capacity
    }

    fn staged(self, index: usize) -> &'a [AtomicU64] {
        &self.words[HEADER_WORDS + index * self.stride..][..self.stride]
    }

    pub(super) fn row(self, index: usize) -> &'a [AtomicU64] {
        &self.staged(index)[2..]
    }

    pub(super) fn destination(self, index: usize) -> Option<Name> {
        Name::from_bits(self.staged(index)[0].load(Ordering::Relaxed))
    }

    pub(super) fn set_destination(self, index: usize, destination: Option<Name>) {
        let word = destination.map_or(0, Name::to_bits);
        // Release: the supervisor must find the destination of any slot that it finds claimed by a dead process.
        self.staged(index)[0].store(word, Ordering::Release);
    }

    /// Priority of a staged row; `None` for "as urgent as the most urgent so far".
    pub(super) fn priority(self, index: usize) -> Option<Priority> {
        let word = self.staged(index)[1].load(Ordering::Relaxed);
        (word != LARGEST_SO_FAR).then(|| Priority::from_bits(word))
    }

    /// Begin to write a row.
    ///
    /// # Panics
    /// If the area is full: flush first.
    pub fn write<'s>(self, schema: &'s Schema) -> RowWriter<'a, 's> {
        let (committed, _) = self.progress();
        assert!(committed < self.capacity, "the staging area holds {} rows; flush first", self.capacity);
        self.set_destination(committed, None);
        RowWriter { area: self, schema, index: committed }
    }
}

/// A row being written; it counts once committed.
pub struct RowWriter<'a, 's> {
    area: StagingArea<'a>,
    schema: &'s Schema,
    index: usize,
}

impl RowWriter<'_, '_> {
    /// Write a field of floats.
    pub fn f32(&mut self, field: usize, values: &[f32]) -> &mut Self {
        self.typed(field, Element::F32, bytemuck::cast_slice(values))
    }

    /// Write a field of integers.
    pub fn i32(&mut self, field: usize, values: &[i32]) -> &mut Self {
        self.typed(field, Element::I32, bytemuck::cast_slice(values))
    }

    /// Write a field of bytes.
    pub fn u8(&mut self, field: usize, values: &[u8]) -> &mut Self {
        self.typed(field, Element::U8, values)
    }

    /// Write a field of floats or integers, given as their bits.
    pub fn lanes(&mut self, field: usize, values: &[u32]) -> &mut Self {
        self.bytes(field, bytemuck::cast_slice(values))
    }

    /// Write a field of any type, given as the bytes of its values in the machine's order.
    pub fn bytes(&mut self, field: usize, values: &[u8]) -> &mut Self {
        let field = &self.schema.fields()[field];
        assert!(field.stack == 0, "field `{}` is made of frames", field.name);
        row::store(field, self.area.row(self.index), values);
        self
    }

    /// Write a field of any type, given as its bytes in a row: its values, or the names of its frames.
    pub fn part(&mut self, field: usize, bytes: &[u8]) -> &mut Self {
        row::store(&self.schema.fields()[field], self.area.row(self.index), bytes);
        self
    }

    /// Name the frames of a stacked field, oldest first.
    pub fn frames(&mut self, field: usize, frames: &[Name]) -> &mut Self {
        let field = &self.schema.fields()[field];
        assert_eq!(field.stack, frames.len(), "frames of field `{}`", field.name);
        for (word, frame) in self.area.row(self.index)[field.lane / 2..].iter().zip(frames) {
            word.store(frame.to_bits(), Ordering::Relaxed);
        }
        self
    }

    fn typed(&mut self, field: usize, element: Element, values: &[u8]) -> &mut Self {
        let Field { name, element: declared, .. } = &self.schema.fields()[field];
        assert_eq!(*declared, element, "field `{name}`");
        self.bytes(field, values)
    }

    /// Count the row as complete, with its priority or "as urgent as the most urgent so far".
    pub fn commit(self, priority: Option<Priority>) {
        let word = priority.map_or(LARGEST_SO_FAR, |priority| priority.0);
        self.area.staged(self.index)[1].store(word, Ordering::Relaxed);
        let (_, flushed) = self.area.progress();
        self.area.set_progress(self.index + 1, flushed);
    }
}
