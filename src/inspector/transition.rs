//! One transition of the replay, decoded by the fields in the run's description.

use std::time::Duration;

use serde::Serialize;

use super::InspectError;
use super::printable::printable;
use crate::replay::{Batch, Column, Element, Reader, Schema, SumTree, Unreadable};
use crate::segment::processes::Role;
use crate::segment::{Description, Segment, SegmentSizes};
use crate::sync::Ordering;

/// Looks after which a transition counts as torn.
const ATTEMPTS: u32 = 50;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_micros(200);
/// Dimensions of an impossible shape that an error shows.
const SHOWN_DIMENSIONS: usize = 8;

/// A transition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transition {
    /// Slot in the store.
    pub slot: usize,
    /// How often the slot has been written.
    pub generation: u64,
    /// Who wrote it.
    pub owner: Owner,
    /// Priority; absent if sampling is uniform, or while the leaf belongs to another generation.
    pub priority: Option<f64>,
    /// Fields, in the order of the run's description.
    pub fields: Vec<FieldValues>,
}

/// Who wrote a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// Slot in the process table. The supervisor, which has no slot, is the largest number of 20 bits.
    pub slot: usize,
    /// What the process in that slot does now.
    pub role: Option<Role>,
}

/// The values of one field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldValues {
    /// Name.
    pub name: String,
    /// Element type.
    pub element: &'static str,
    /// Lengths of its dimensions; images are rows and columns last.
    pub shape: Vec<usize>,
    /// Frames that are stacked in it, as far as the run says: 0 if they are not kept as frames.
    #[serde(skip)]
    pub stack: usize,
    /// Values; in JSON, those that are not finite are null.
    pub values: Values,
}

/// Values of one element type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// Bytes and truth values.
    U8(Vec<u8>),
    /// Floats of the other sizes.
    F64(Vec<f64>),
    /// Signed integers of the other sizes.
    I64(Vec<i64>),
    /// Unsigned integers of the other sizes.
    U64(Vec<u64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::U8(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `count` values from `first` on, as people read them.
    pub(super) fn part(&self, first: usize, count: usize) -> String {
        let range = first..first + count;
        match self {
            Self::F32(values) => format!("{:?}", &values[range]),
            Self::I32(values) => format!("{:?}", &values[range]),
            Self::U8(values) => format!("{:?}", &values[range]),
            Self::F64(values) => format!("{:?}", &values[range]),
            Self::I64(values) => format!("{:?}", &values[range]),
            Self::U64(values) => format!("{:?}", &values[range]),
        }
    }

    /// The values, if they are 32-bit floats.
    pub(super) fn floats(&self) -> Option<&[f32]> {
        if let Self::F32(values) = self { Some(values) } else { None }
    }

    /// The values, if they are 32-bit signed integers.
    pub(super) fn integers(&self) -> Option<&[i32]> {
        if let Self::I32(values) = self { Some(values) } else { None }
    }
}

impl Transition {
    /// Decodes the transition in `slot`.
    pub(super) fn read(segment: &Segment, slot: usize) -> Result<Self, InspectError> {
        let sizes = segment.layout().sizes();
        if slot >= sizes.capacity {
            return Err(InspectError::NoSuchSlot { slot, capacity: sizes.capacity });
        }
        let reader = Reader::new(segment, schema(&segment.description()?, sizes)?);
        let (schema, store) = (reader.schema(), reader.store());
        let tree = SumTree::of(segment);
        let mut batch = Batch::new(schema, 1);
        let mut names = Vec::new();
        for _ in 0..ATTEMPTS {
            let word = store.word(slot);
            if word.is_empty() {
                return Err(InspectError::EmptySlot { slot, inserted: segment.control().inserted().load(Ordering::Relaxed) });
            }
            // Each generation of a slot is claimed once, so one generation before and after the read means one owner.
            let read = reader.read(slot, &mut batch.as_rows(), 0, &mut names);
            if let Err(Unreadable::FrameGone(generation)) = read {
                return Err(InspectError::FrameGone { slot, generation });
            }
            if let Some(generation) = read.ok().filter(|&generation| generation == word.generation()) {
                let priority = tree.as_ref().and_then(|tree| tree.priority(slot, generation)).map(|priority| priority.to_f64());
                let owner = Owner { slot: word.owner(), role: role_of(segment, word.owner()) };
                return Ok(Self { slot, generation, owner, priority, fields: values(schema, &batch) });
            }
            std::thread::sleep(PAUSE);
        }
        Err(InspectError::Torn { slot, attempts: ATTEMPTS })
    }
}

/// The schema in `description`, after checking that its rows have exactly the words that are stored, and its frames the
/// bytes: every later access to a row relies on that.
fn schema(description: &Description, sizes: &SegmentSizes) -> Result<Schema, InspectError> {
    let stored_words = sizes.row_words;
    for (position, field) in description.fields.iter().enumerate() {
        let impossible = |problem| InspectError::ImpossibleField { position, problem };
        let Some(element) = Element::from_name(&field.element) else {
            return Err(impossible(format!("unknown element type `{}`", printable(&field.element))));
        };
        // A row holds the names of its frames, a word each, and all of these frames are stored at once.
        if field.stack > stored_words.min(sizes.frames) {
            return Err(impossible(format!("{} frames in a row of {stored_words} words, of {} frames", field.stack, sizes.frames)));
        }
        let room = if field.stack == 0 { 8 * stored_words } else { field.stack.saturating_mul(sizes.frame_bytes) };
        let fits = field.length.checked_mul(element.size_bytes()).is_some_and(|size_bytes| (1..=room).contains(&size_bytes));
        if !field.is_shaped() {
            let shown = &field.shape[..field.shape.len().min(SHOWN_DIMENSIONS)];
            return Err(impossible(format!("{} elements of shape {shown:?}", field.length)));
        }
        let frames_fit = field.stack == 0 || field.length * element.size_bytes() == room && field.length.is_multiple_of(field.stack);
        if !fits || !frames_fit {
            return Err(impossible(format!("{} elements in a row of {} bytes", field.length, 8 * stored_words)));
        }
    }
    let schema = Schema::from_description(&description.fields).unwrap_or_else(|| Schema::new(Vec::new()));
    if schema.words() != stored_words {
        return Err(InspectError::SchemaMismatch { described_words: schema.words(), stored_words });
    }
    Ok(schema)
}

fn role_of(segment: &Segment, slot: usize) -> Option<Role> {
    let table = segment.processes();
    (slot < table.len()).then(|| table.slot(slot).role()).flatten().map(|(role, _)| role)
}

fn values(schema: &Schema, batch: &Batch) -> Vec<FieldValues> {
    let field = |(position, field): (usize, &crate::replay::Field)| FieldValues {
        name: printable(&field.name),
        element: field.element.name(),
        shape: field.shape.clone(),
        stack: field.stack,
        values: numbers(batch.column(position)),
    };
    schema.fields().iter().enumerate().map(field).collect()
}

fn numbers(column: &Column) -> Values {
    let bytes = column.bytes();
    match column.element() {
        Element::F32 => Values::F32(column.as_f32().to_vec()),
        Element::I32 => Values::I32(column.as_i32().to_vec()),
        Element::U8 | Element::Bool => Values::U8(bytes.to_vec()),
        Element::F16 => Values::F64(each(bytes, |value| f64::from(half::f16::from_le_bytes(value)))),
        Element::F64 => Values::F64(each(bytes, f64::from_le_bytes)),
        Element::I8 => Values::I64(each(bytes, |value| i8::from_le_bytes(value).into())),
        Element::I16 => Values::I64(each(bytes, |value| i16::from_le_bytes(value).into())),
        Element::I64 => Values::I64(each(bytes, i64::from_le_bytes)),
        Element::U16 => Values::U64(each(bytes, |value| u16::from_le_bytes(value).into())),
        Element::U32 => Values::U64(each(bytes, |value| u32::from_le_bytes(value).into())),
        Element::U64 => Values::U64(each(bytes, u64::from_le_bytes)),
    }
}

fn each<const SIZE: usize, T>(bytes: &[u8], value: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| value(chunk)).collect()
}
