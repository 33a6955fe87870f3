//! The replay, read only: its rows, frames and priorities as they are now.

use super::frames::FrameStore;
use super::priority::Priority;
use super::reader::Reader;
use super::schema::Schema;
use super::store::RowStore;
use super::sum_tree::SumTree;
use crate::segment::Segment;
use crate::segment::control::Control;
use crate::sync::Ordering;

/// The replay, read only. Other processes may change it meanwhile.
pub struct ReplayView<'a> {
    pub(super) control: Control<'a>,
    pub(super) reader: Reader<'a>,
    pub(super) tree: Option<SumTree<'a>>,
    /// Most transitions that one operation may move.
    pub(super) chunk: usize,
}

impl<'a> ReplayView<'a> {
    /// The replay in `segment`, whose rows follow `schema`.
    ///
    /// # Panics
    /// When the rows of the segment have no room for the schema.
    pub fn new(segment: &'a Segment, schema: Schema) -> Self {
        let sizes = segment.layout().sizes();
        let room = sizes.row_words;
        assert!(schema.words() <= room, "a row takes {} words and the segment has room for {room}", schema.words());
        Self { control: segment.control(), reader: Reader::new(segment, schema), tree: SumTree::of(segment), chunk: sizes.chunk() }
    }

    /// Fields of a transition.
    pub fn schema(&self) -> &Schema {
        self.reader.schema()
    }

    /// The store.
    pub fn store(&self) -> RowStore<'a> {
        self.reader.store
    }

    /// The frame store; `None` when no field is made of frames.
    pub fn frames(&self) -> Option<FrameStore<'a>> {
        self.reader.frames
    }

    /// Reads single transitions.
    pub fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// The tree; `None` when sampling is uniform.
    pub fn tree(&self) -> Option<&SumTree<'a>> {
        self.tree.as_ref()
    }

    /// Transitions in the replay.
    pub fn len(&self) -> usize {
        let inserted = self.control.inserted().load(Ordering::Relaxed);
        usize::try_from(inserted).unwrap_or(usize::MAX).min(self.store().capacity())
    }

    /// Slots that may hold a transition: those that were ever claimed. More than [`Self::len`] if a claim was never
    /// filled, because the process that made it was killed before it had named the slot.
    pub fn claimed_slots(&self) -> usize {
        let claimed = self.control.claimed().load(Ordering::Relaxed);
        usize::try_from(claimed).unwrap_or(usize::MAX).min(self.store().capacity())
    }

    /// Whether nothing was inserted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tag in the leaf of `slot`, which [`super::Replay::update_named`] takes in place of a generation; `None` if
    /// the leaf has no owner, or there is no tree.
    pub fn leaf_tag(&self, slot: usize) -> Option<u64> {
        Some(self.tree.as_ref()?.tag(slot)).filter(|&tag| tag != SumTree::UNOWNED_TAG)
    }

    /// Whether the leaf of `slot` belongs to this generation.
    pub fn is_current(&self, slot: usize, generation: u64) -> bool {
        !SumTree::is_unowned(generation) && self.tree.as_ref().is_some_and(|tree| tree.priority(slot, generation).is_some())
    }

    /// The largest priority so far, at least one. New transitions get it, so that each is drawn soon. With less than
    /// one, transitions from before the first update would hardly ever be drawn again.
    pub(super) fn largest_priority(&self) -> Priority {
        Priority::from_bits(self.control.largest_priority().load(Ordering::Relaxed)).max(Priority::ONE)
    }
}
