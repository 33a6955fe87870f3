//! A batch of transitions: one contiguous column per field, filled in place and reused.

use std::ops::Range;

use super::schema::{Element, Field, Schema};
use crate::segment::view::{high, load_bytes, load_f32, low};
use crate::sync::{AtomicU64, Ordering};

/// The values of one field, row after row.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// Bytes.
    U8(Vec<u8>),
}

impl Column {
    fn new(element: Element, length: usize) -> Self {
        match element {
            Element::F32 => Self::F32(vec![0.0; length]),
            Element::I32 => Self::I32(vec![0; length]),
            Element::U8 => Self::U8(vec![0; length]),
        }
    }

    /// The values, if they are floats.
    pub fn as_f32(&self) -> &[f32] {
        if let Self::F32(values) = self { values } else { &[] }
    }

    /// The values, if they are floats, to be changed.
    pub fn as_f32_mut(&mut self) -> &mut [f32] {
        if let Self::F32(values) = self { values } else { &mut [] }
    }

    /// The values, if they are integers.
    pub fn as_i32(&self) -> &[i32] {
        if let Self::I32(values) = self { values } else { &[] }
    }

    /// The values, if they are bytes.
    pub fn as_u8(&self) -> &[u8] {
        if let Self::U8(values) = self { values } else { &[] }
    }
}

/// A batch of `rows` transitions and what their sampling says of them.
#[derive(Debug, Clone)]
pub struct Batch {
    fields: Vec<Field>,
    columns: Vec<Column>,
    /// Slot of each transition.
    pub slots: Vec<usize>,
    /// Generation of each transition: with its slot, its name.
    pub generations: Vec<u64>,
    /// Importance weight of each transition, `(N P(i)) ^ -beta` (Schaul et al. 2016), not yet divided by the largest.
    pub weights: Vec<f32>,
    /// The largest of the weights.
    pub largest_weight: f32,
}

impl Batch {
    /// Room for `rows` transitions.
    pub fn new(schema: &Schema, rows: usize) -> Self {
        Self {
            fields: schema.fields().to_vec(),
            columns: schema.fields().iter().map(|field| Column::new(field.element, field.length * rows)).collect(),
            slots: vec![0; rows],
            generations: vec![0; rows],
            weights: vec![1.0; rows],
            largest_weight: 1.0,
        }
    }

    /// Number of transitions.
    pub fn rows(&self) -> usize {
        self.slots.len()
    }

    /// Column of field number `field` of the schema.
    pub fn column(&self, field: usize) -> &Column {
        &self.columns[field]
    }

    /// Column of field number `field` of the schema, to be changed.
    pub fn column_mut(&mut self, field: usize) -> &mut Column {
        &mut self.columns[field]
    }

    /// Become a copy of some rows of a batch of the same schema; the largest weight stays that of the whole batch.
    pub fn copy_rows(&mut self, from: &Self, rows: Range<usize>) {
        for ((field, target), source) in self.fields.iter().zip(&mut self.columns).zip(&from.columns) {
            let values = rows.start * field.length..rows.end * field.length;
            match (target, source) {
                (Column::F32(target), Column::F32(source)) => replace(target, &source[values]),
                (Column::I32(target), Column::I32(source)) => replace(target, &source[values]),
                (Column::U8(target), Column::U8(source)) => replace(target, &source[values]),
                _ => unreachable!("both batches have one schema"),
            }
        }
        replace(&mut self.slots, &from.slots[rows.clone()]);
        replace(&mut self.generations, &from.generations[rows.clone()]);
        replace(&mut self.weights, &from.weights[rows]);
        self.largest_weight = from.largest_weight;
    }

    /// Copy the row at `words` into row number `row`. What it holds may be torn until the caller has checked.
    pub(super) fn load_row(&mut self, row: usize, words: &[AtomicU64]) {
        for (field, column) in self.fields.iter().zip(&mut self.columns) {
            let range = row * field.length..(row + 1) * field.length;
            let from = &words[field.lane / 2..];
            if field.lane % 2 == 1 || field.length == 1 && field.element != Element::U8 {
                load_scalar(field, column, range, from);
                continue;
            }
            match column {
                Column::F32(values) => load_f32(from, &mut values[range]),
                Column::U8(values) => load_bytes(from, &mut values[range]),
                Column::I32(values) => {
                    for (pair, word) in values[range].chunks_mut(2).zip(from) {
                        let bits = word.load(Ordering::Relaxed);
                        for (value, lane) in pair.iter_mut().zip([low(bits), high(bits)]) {
                            *value = lane.cast_signed();
                        }
                    }
                }
            }
        }
    }
}

fn replace<T: Copy>(target: &mut Vec<T>, source: &[T]) {
    target.clear();
    target.extend_from_slice(source);
}

fn load_scalar(field: &Field, column: &mut Column, range: std::ops::Range<usize>, words: &[AtomicU64]) {
    let word = words[0].load(Ordering::Relaxed);
    let lane = if field.lane % 2 == 1 { high(word) } else { low(word) };
    match column {
        Column::F32(values) => values[range.start] = f32::from_bits(lane),
        Column::I32(values) => values[range.start] = lane.cast_signed(),
        Column::U8(values) => values[range].copy_from_slice(&lane.to_le_bytes()[..field.length]),
    }
}
