//! The fields of a transition (Reverb: signature) and where each lies in its row.
//!
//! A row is a sequence of 32-bit lanes. Fields of several lanes start on a 64-bit word, so that they are copied word by
//! word; fields of one lane are packed two to a word behind them.

use crate::segment::description::FieldDescription;

/// Element type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// 32-bit float.
    F32,
    /// 32-bit signed integer.
    I32,
    /// Byte.
    U8,
}

impl Element {
    /// Name as in the segment's description.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::U8 => "u8",
        }
    }

    fn lanes(self, length: usize) -> usize {
        match self {
            Self::F32 | Self::I32 => length,
            Self::U8 => length.div_ceil(4),
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
    /// Elements.
    pub length: usize,
    /// First lane in the row.
    pub(super) lane: usize,
}

impl Field {
    /// A field of `length` elements.
    pub fn new(name: &str, element: Element, length: usize) -> Self {
        Self { name: name.into(), element, length, lane: 0 }
    }
}

/// The fields of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<Field>,
    words: usize,
}

impl Schema {
    /// Lay out `fields`; their order is kept for readers, their place in the row is chosen here.
    pub fn new(mut fields: Vec<Field>) -> Self {
        let mut lane = 0;
        for wide in [true, false] {
            for field in &mut fields {
                let lanes = field.element.lanes(field.length);
                if (lanes > 1) == wide {
                    field.lane = lane;
                    lane += if wide { lanes.next_multiple_of(2) } else { lanes };
                }
            }
        }
        Self { fields, words: lane.div_ceil(2).max(1) }
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

    /// As written into the segment.
    pub fn describe(&self) -> Vec<FieldDescription> {
        self.fields
            .iter()
            .map(|field| FieldDescription { name: field.name.clone(), element: field.element.name().into(), length: field.length })
            .collect()
    }

    /// From the segment's description; `None` when an element type is unknown.
    pub fn from_description(fields: &[FieldDescription]) -> Option<Self> {
        let fields = fields.iter().map(|field| {
            let element = [Element::F32, Element::I32, Element::U8].into_iter().find(|element| element.name() == field.element)?;
            Some(Field::new(&field.name, element, field.length))
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
        ]);
        let lanes: Vec<usize> = schema.fields().iter().map(|field| field.lane).collect();
        assert_eq!(lanes, [0, 8, 4, 9]);
        assert_eq!(schema.words(), 5);
    }
}
