//! Reads whole transitions: the fields in the row, and the frames that it names.

use super::batch::Rows;
use super::frames::FrameStore;
use super::name::Name;
use super::row;
use super::schema::Schema;
use super::store::RowStore;
use crate::segment::Segment;
use crate::sync::Ordering;

/// Why a slot gave no transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// There is none yet, or it is being written.
    Changing,
    /// A frame of this generation's transition has been overwritten: it will never be whole again.
    FrameGone(u64),
}

/// Reads transitions.
pub struct Reader<'a> {
    pub(super) store: RowStore<'a>,
    pub(super) frames: Option<FrameStore<'a>>,
    schema: Schema,
}

impl<'a> Reader<'a> {
    /// A reader of the transitions in `segment`, whose rows follow `schema`.
    pub fn new(segment: &'a Segment, schema: Schema) -> Self {
        Self { store: RowStore::of(segment), frames: FrameStore::of(segment), schema }
    }

    /// The store.
    pub fn store(&self) -> RowStore<'a> {
        self.store
    }

    /// Fields of a transition.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Ask the processor early for the frames that the row in `slot` names now; reading finds out whether they are
    /// the right ones.
    #[inline]
    pub fn prefetch_frames(&self, slot: usize) {
        let Some(frames) = self.frames else { return };
        for field in self.schema.fields().iter().filter(|field| field.stack > 0) {
            for word in &self.store.row(slot)[field.lane / 2..][..field.stack] {
                if let Some(name) = Name::from_bits(word.load(Ordering::Relaxed)) {
                    frames.prefetch(name);
                }
            }
        }
    }

    /// Copy the transition in `slot` into row `at` of `rows`, and return its generation. `names` is scratch memory.
    ///
    /// # Errors
    /// Why there is no whole transition; the content of the row means nothing then.
    #[inline]
    pub fn read<C: AsMut<[u8]>>(&self, slot: usize, rows: &mut Rows<'_, C>, at: usize, names: &mut Vec<u64>) -> Result<u64, Unreadable> {
        names.clear();
        let generation = self.store.read(slot, |words| {
            for (field, column) in self.schema.fields().iter().zip(rows.columns.iter_mut()) {
                if field.stack == 0 {
                    let size_bytes = field.size_bytes();
                    row::load(field, words, &mut column.as_mut()[at * size_bytes..][..size_bytes]);
                } else {
                    names.extend(words[field.lane / 2..][..field.stack].iter().map(|word| word.load(Ordering::Relaxed)));
                }
            }
        });
        let generation = generation.ok_or(Unreadable::Changing)?;
        if !names.is_empty() && !self.read_frames(rows, at, names) {
            return Err(Unreadable::FrameGone(generation));
        }
        Ok(generation)
    }

    /// Whether every frame that the row with these words names is still there.
    pub(super) fn has_its_frames(&self, words: &[u64]) -> bool {
        let Some(frames) = self.frames else { return true };
        let stacked = self.schema.fields().iter().filter(|field| field.stack > 0);
        let mut names = stacked.flat_map(|field| &words[field.lane / 2..][..field.stack]);
        names.all(|&name| Name::from_bits(name).is_some_and(|name| frames.holds(name)))
    }

    fn read_frames<C: AsMut<[u8]>>(&self, rows: &mut Rows<'_, C>, at: usize, names: &[u64]) -> bool {
        let Some(frames) = self.frames else { return false };
        let mut names = names.iter();
        self.schema.fields().iter().zip(rows.columns.iter_mut()).filter(|(field, _)| field.stack > 0).all(|(field, column)| {
            let stacked = &mut column.as_mut()[at * field.size_bytes()..][..field.size_bytes()];
            let mut frames_of_field = stacked.chunks_exact_mut(field.frame_bytes().max(1));
            frames_of_field.all(|frame| names.next().and_then(|&name| Name::from_bits(name)).is_some_and(|name| frames.read(name, frame)))
        })
    }
}
