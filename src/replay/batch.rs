//! A batch of transitions: one contiguous column per field, filled in place and reused.

use std::ops::Range;

use super::column::Column;
use super::schema::Schema;

/// A batch of `rows` transitions and what their sampling says of them.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: Schema,
    columns: Vec<Column>,
    /// Slot of each transition.
    pub slots: Vec<usize>,
    /// Generation of each transition: with its slot, its name.
    pub generations: Vec<u64>,
    /// Importance weight of each transition, `(N P(i)) ^ -beta` (Schaul et al. 2016), not yet divided by the largest.
    pub weights: Vec<f32>,
    /// The largest of the weights.
    pub largest_weight: f32,
    /// Number of the batch among those of its learner, from 1 on, if `Learning::prepare` numbers batches; otherwise 0.
    pub(crate) number: u64,
    /// Number of transitions that the rate limiter counts once the batch is drawn.
    counted: usize,
    /// Names of transitions that have lost a frame and were met while a [`super::Sampler`] drew the batch, which may
    /// not change the replay. The process that writes the batch's priorities back takes them out of the tree.
    pub(super) vanished: Vec<(usize, u64)>,
}

impl Batch {
    /// Room for `rows` transitions.
    pub fn new(schema: &Schema, rows: usize) -> Self {
        Self {
            schema: schema.clone(),
            columns: schema.fields().iter().map(|field| Column::new(field, rows)).collect(),
            slots: vec![0; rows],
            generations: vec![0; rows],
            weights: vec![1.0; rows],
            largest_weight: 1.0,
            number: 0,
            counted: rows,
            vanished: Vec::new(),
        }
    }

    /// The batch, counting as `counted` transitions for the rate limiter, however many it has.
    pub fn counting_as(self, counted: usize) -> Self {
        Self { counted, ..self }
    }

    /// Number of transitions that the rate limiter counts.
    pub fn counted(&self) -> usize {
        self.counted
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
        for ((field, target), source) in self.schema.fields().iter().zip(&mut self.columns).zip(&from.columns) {
            let size_bytes = field.size_bytes();
            target.replace(source, rows.start * size_bytes..rows.end * size_bytes);
        }
        replace(&mut self.slots, &from.slots[rows.clone()]);
        replace(&mut self.generations, &from.generations[rows.clone()]);
        replace(&mut self.weights, &from.weights[rows]);
        self.largest_weight = from.largest_weight;
        self.number = 0;
    }

    /// Name the transition that was copied into row `at`; its importance weight is one.
    pub(super) fn set_name(&mut self, at: usize, slot: usize, generation: u64) {
        self.slots[at] = slot;
        self.generations[at] = generation;
        self.weights[at] = 1.0;
    }

    /// The parts of the batch, to be filled.
    pub fn as_rows(&mut self) -> Rows<'_, Column> {
        Rows { columns: &mut self.columns, slots: &mut self.slots, generations: &mut self.generations, weights: &mut self.weights }
    }
}

fn replace<T: Copy>(target: &mut Vec<T>, source: &[T]) {
    target.clear();
    target.extend_from_slice(source);
}

/// Where a batch is written to: this process's own memory, whoever provides it.
#[derive(Debug)]
pub struct Rows<'b, C> {
    /// Per field of the schema, the bytes of its values, row after row.
    pub columns: &'b mut [C],
    /// Slot of each transition.
    pub slots: &'b mut [usize],
    /// Generation of each transition.
    pub generations: &'b mut [u64],
    /// Importance weight of each transition.
    pub weights: &'b mut [f32],
}

impl<C: AsMut<[u8]>> Rows<'_, C> {
    /// Panics unless every part has room for the same number of rows of `schema`.
    pub(super) fn check(&mut self, schema: &Schema) {
        let rows = self.slots.len();
        assert_eq!((self.generations.len(), self.weights.len()), (rows, rows), "rows of a batch");
        assert_eq!(self.columns.len(), schema.fields().len(), "columns of a batch");
        for (field, column) in schema.fields().iter().zip(self.columns.iter_mut()) {
            assert_eq!(column.as_mut().len(), rows * field.size_bytes(), "bytes of field `{}`", field.name);
        }
    }
}
