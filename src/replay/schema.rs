//! The fields of a transition (Reverb: signature) and where each lies in its row.
//!
//! A row is a sequence of 32-bit lanes. Fields of several lanes start on a 64-bit word, so that they are copied word by
//! word; fields of one lane are packed two to a word behind them. A field of stacked frames holds no pixels but the
//! names of its frames, one word each (see `frames`).

use std::sync::Arc;

use crate::segment::description::FieldDescription;
use crate::segment::named_enum::named_enum;
use crate::values::ValueType;

named_enum! {
    /// Element type of a field, with its name in the segment's description.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Element {
        /// Truth value, one byte.
        Bool = "bool",
        /// 8-bit signed integer.
        I8 = "i8",
        /// Byte.
        U8 = "u8",
        /// 16-bit signed integer.
        I16 = "i16",
        /// 16-bit unsigned integer.
        U16 = "u16",
        /// 16-bit float.
        F16 = "f16",
        /// 32-bit signed integer.
        I32 = "i32",
        /// 32-bit unsigned integer.
        U32 = "u32",
        /// 32-bit float.
        F32 = "f32",
        /// 64-bit signed integer.
        I64 = "i64",
        /// 64-bit unsigned integer.
        U64 = "u64",
        /// 64-bit float.
        F64 = "f64",
    }
}

impl From<ValueType> for Element {
    fn from(value_type: ValueType) -> Self {
        match value_type {
            ValueType::F32 => Self::F32,
            ValueType::U8 => Self::U8,
        }
    }
}

impl Element {
    /// The element type called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        !matches!(self, Self::Bool | Self::F16 | Self::F32 | Self::F64)
    }

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// One field of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, unique in its schema.
    pub name: String,
    /// Element type.
    pub element: Element,
    /// Elements, as readers see them.
    pub length: usize,
    /// Lengths of the dimensions of these elements: a single one, unless set by [`Self::shaped`].
    pub shape: Vec<usize>,
    /// Frames stacked in it, each stored once; 0 for a field that lies in the row itself.
    pub stack: usize,
    /// First lane in the row.
    pub(super) lane: usize,
    /// Bytes of its values, kept because readers need them for every row.
    size_bytes: usize,
    /// Whether it starts on a word of its own.
    pub(super) is_wide: bool,
}

impl Field {
    /// A field of `length` elements.
    pub fn new(name: &str, element: Element, length: usize) -> Self {
        let size_bytes = length * element.size_bytes();
        Self { name: name.into(), element, length, shape: vec![length], stack: 0, lane: 0, size_bytes, is_wide: size_bytes > LANE_BYTES }
    }

    /// A field of `stack` frames of `frame_length` elements each.
    pub fn stacked(name: &str, element: Element, frame_length: usize, stack: usize) -> Self {
        Self { stack, is_wide: true, ..Self::new(name, element, frame_length * stack) }
    }

    /// The field with its elements in these dimensions.
    ///
    /// # Panics
    /// If the dimensions hold another number of elements.
    pub fn shaped(self, shape: &[usize]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), self.length, "elements of field `{}`", self.name);
        Self { shape: shape.to_vec(), ..self }
    }

    /// Bytes of the field's values, as readers see them.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Bytes of one of its frames; 0 when it has none.
    pub fn frame_bytes(&self) -> usize {
        self.size_bytes().checked_div(self.stack).unwrap_or(0)
    }

    /// Bytes that it takes in the row.
    pub(super) fn row_bytes(&self) -> usize {
        if self.stack == 0 { self.size_bytes() } else { 8 * self.stack }
    }
}

const LANE_BYTES: usize = 4;

/// The fields of a transition. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    fields: Arc<[Field]>,
    words: usize,
}

impl Schema {
    /// Lay out `fields`; their order is kept for readers, their place in the row is chosen here.
    pub fn new(mut fields: Vec<Field>) -> Self {
        let mut lane = 0;
        for wide in [true, false] {
            for field in &mut fields {
                let lanes = field.row_bytes().div_ceil(LANE_BYTES);
                if field.is_wide == wide {
                    field.lane = lane;
                    lane += if wide { lanes.next_multiple_of(2) } else { lanes };
                }
            }
        }
        Self { fields: fields.into(), words: lane.div_ceil(2).max(1) }
    }

    /// The fields, in the order given.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Position of the field called `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// 64-bit words of a row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Bytes of the largest frame; 0 when no field is made of frames.
    pub fn frame_bytes(&self) -> usize {
        self.fields.iter().map(Field::frame_bytes).max().unwrap_or(0)
    }

    /// As written into the segment.
    pub fn describe(&self) -> Vec<FieldDescription> {
        let describe = |field: &Field| FieldDescription {
            name: field.name.clone(),
            element: field.element.name().into(),
            length: field.length,
            shape: field.shape.clone(),
            stack: field.stack,
        };
        self.fields.iter().map(describe).collect()
    }

    /// From the segment's description; `None` when an element type is unknown.
    pub fn from_description(fields: &[FieldDescription]) -> Option<Self> {
        let fields = fields.iter().map(|field| {
            let element = Element::from_name(&field.element)?;
            let whole = field.stack == 0 || field.length.is_multiple_of(field.stack);
            (whole && field.is_shaped()).then(|| {
                let flat = match field.stack {
                    0 => Field::new(&field.name, element, field.length),
                    stack => Field::stacked(&field.name, element, field.length / stack, stack),
                };
                flat.shaped(&field.shape)
            })
        });
        Some(Self::new(fields.collect::<Option<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cartpole_transition_with_its_slot_word_fits_one_cache_line() {
        let schema = Schema::new(vec![
            Field::new("observation", Element::F32, 4),
            Field::new("action", Element::I32, 1),
            Field::new("reward", Element::F32, 1),
            Field::new("discount", Element::F32, 1),
            Field::new("flags", Element::I32, 1),
            Field::new("next_observation", Element::F32, 4),
        ]);
        assert_eq!(schema.words(), 6);
        let mut lanes: Vec<usize> = schema.fields().iter().flat_map(|field| field.lane..field.lane + field.length).collect();
        lanes.sort_unstable();
        assert_eq!(lanes, (0..12).collect::<Vec<_>>());
        assert_eq!(Schema::from_description(&schema.describe()), Some(schema));
    }

    #[test]
    fn wide_fields_start_on_words() {
        let schema = Schema::new(vec![
            Field::new("a", Element::F32, 3),
            Field::new("b", Element::U8, 3),
            Field::new("c", Element::U8, 9),
            Field::new("d", Element::F32, 1),
            Field::new("e", Element::F64, 1),
            Field::new("f", Element::F16, 2),
        ]);
        let lanes: Vec<usize> = schema.fields().iter().map(|field| field.lane).collect();
        assert_eq!(lanes, [0, 10, 4, 11, 8, 12]);
        assert_eq!(schema.words(), 7);
    }

    #[test]
    fn stacked_frames_take_a_word_each() {
        let schema = Schema::new(vec![Field::stacked("pixels", Element::U8, 84 * 84, 4), Field::new("reward", Element::F32, 1)]);
        assert_eq!((schema.words(), schema.frame_bytes(), schema.fields()[0].size_bytes()), (5, 84 * 84, 4 * 84 * 84));
        assert_eq!(Schema::from_description(&schema.describe()), Some(schema));
    }
}
