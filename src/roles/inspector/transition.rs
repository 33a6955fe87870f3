//! One transition of the replay, decoded by what the run says of its fields.

use std::time::Duration;

use serde::Serialize;

use super::InspectError;
use super::printable::printable;
use crate::replay::store::TransitionStore;
use crate::replay::{Batch, Column, Element, Schema, SumTree};
use crate::segment::processes::Role;
use crate::segment::{Description, Region, Segment};
use crate::sync::Ordering;

/// Looks before a transition counts as torn.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_micros(200);

/// A transition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transition {
    /// Slot in the store.
    pub slot: usize,
    /// How often the slot has been written.
    pub generation: u64,
    /// Who wrote it.
    pub owner: Owner,
    /// Its priority; absent when sampling is uniform, or while its leaf belongs to another generation.
    pub priority: Option<f64>,
    /// Its fields, in the order of the run's description.
    pub fields: Vec<FieldValues>,
}

/// Who wrote a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// Slot in the process table; the supervisor, who has none, is the largest number of 20 bits.
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
    /// Bytes.
    U8(Vec<u8>),
}

impl Transition {
    /// Decode the transition in `slot`.
    pub(super) fn read(segment: &Segment, slot: usize) -> Result<Self, InspectError> {
        let layout = segment.layout().parameters();
        if slot >= layout.capacity {
            return Err(InspectError::NoSuchSlot { slot, capacity: layout.capacity });
        }
        let schema = schema(&segment.description()?, layout.transition_words)?;
        let store = TransitionStore::new(segment.words(Region::Store), layout);
        let tree = (layout.fanout != 0).then(|| SumTree::new(segment.words(Region::Tree), layout.capacity, layout.fanout));
        let mut batch = Batch::new(&schema, 1);
        for _ in 0..ATTEMPTS {
            let word = store.word(slot);
            if word.is_empty() {
                return Err(InspectError::EmptySlot { slot, inserted: segment.control().inserted().load(Ordering::Relaxed) });
            }
            // A generation is claimed once, so the same one before and after means the same owner.
            if let Some(generation) = store.read(slot, &mut batch, 0).filter(|&generation| generation == word.generation()) {
                let priority = tree.as_ref().and_then(|tree| tree.priority(slot, generation)).map(|priority| priority.to_f64());
                let owner = Owner { slot: word.owner(), role: role_of(segment, word.owner()) };
                return Ok(Self { slot, generation, owner, priority, fields: values(&schema, &batch) });
            }
            std::thread::sleep(PAUSE);
        }
        Err(InspectError::Torn { slot, attempts: ATTEMPTS })
    }
}

/// The schema in `description`, once it is known to describe rows of exactly `stored_words`: every later access to a
/// row relies on that.
fn schema(description: &Description, stored_words: usize) -> Result<Schema, InspectError> {
    for (position, field) in description.fields.iter().enumerate() {
        let impossible = |problem| InspectError::ImpossibleField { position, problem };
        if ![Element::F32, Element::I32, Element::U8].iter().any(|element| element.name() == field.element) {
            return Err(impossible(format!("unknown element type `{}`", printable(&field.element))));
        }
        if field.length == 0 || field.length > 8 * stored_words {
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
        values: match batch.column(position) {
            Column::F32(values) => Values::F32(values.clone()),
            Column::I32(values) => Values::I32(values.clone()),
            Column::U8(values) => Values::U8(values.clone()),
        },
    };
    schema.fields().iter().enumerate().map(field).collect()
}
