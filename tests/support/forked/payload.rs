//! Transitions that carry their own identity and checksum, over fields of every element type and of odd lengths.

use shoal::replay::{Batch, Element, Field, Priority, Schema, StagingArea};

const FLOATS: usize = 7;
const BYTES: usize = 13;

/// The process that made a transition, which of its lives that was in, and the transition's number in that life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Number of the writer's life.
    pub life: u32,
    /// Number of the transition in that life.
    pub number: u32,
}

/// The schema of verifiable transitions.
pub struct Payload {
    schema: Schema,
}

impl Payload {
    /// Fields: life, number, floats, bytes, checksum.
    pub fn new() -> Self {
        Self {
            schema: Schema::new(vec![
                Field::new("life", Element::I32, 1),
                Field::new("floats", Element::F32, FLOATS),
                Field::new("number", Element::I32, 1),
                Field::new("bytes", Element::U8, BYTES),
                Field::new("checksum", Element::I32, 1),
            ]),
        }
    }

    /// The fields.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Stage the transition called `identity`. `priority` as in `RowWriter::commit`.
    pub fn stage(&self, area: StagingArea<'_>, identity: Identity, priority: Option<Priority>) {
        let (floats, bytes) = filler(identity);
        let mut writer = area.write(&self.schema);
        writer.i32(0, &[identity.life.cast_signed()]).f32(1, &floats).i32(2, &[identity.number.cast_signed()]);
        writer.u8(3, &bytes).i32(4, &[checksum(identity, &floats, &bytes).cast_signed()]);
        writer.commit(priority);
    }

    /// Identity of row `row`. Panics when the row is not one whole transition.
    pub fn verify(&self, batch: &Batch, row: usize) -> Identity {
        let integer = |field: usize| batch.column(field).as_i32()[row].cast_unsigned();
        let identity = Identity { life: integer(0), number: integer(2) };
        let floats = &batch.column(1).as_f32()[row * FLOATS..][..FLOATS];
        let bytes = &batch.column(3).as_u8()[row * BYTES..][..BYTES];
        let sum = checksum(identity, floats, bytes);
        assert_eq!(integer(4), sum, "a torn transition in slot {}: {identity:?} {floats:?} {bytes:?}", batch.slots[row]);
        assert_eq!((floats, bytes), (&filler(identity).0[..], &filler(identity).1[..]), "another transition's fields in {identity:?}");
        identity
    }
}

fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn filler(identity: Identity) -> ([f32; FLOATS], [u8; BYTES]) {
    let seed = u64::from(identity.life) << 32 | u64::from(identity.number);
    let floats = std::array::from_fn(|index| (mix(seed ^ (index as u64) << 60) >> 40) as f32);
    let bytes = std::array::from_fn(|index| (mix(seed.wrapping_mul(31) ^ (index as u64) << 59) & 0xff) as u8);
    (floats, bytes)
}

fn checksum(identity: Identity, floats: &[f32], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&identity.life.to_le_bytes());
    hasher.update(&identity.number.to_le_bytes());
    floats.iter().for_each(|value| hasher.update(&value.to_bits().to_le_bytes()));
    hasher.update(bytes);
    hasher.finalize()
}
