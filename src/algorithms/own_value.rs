//! The value's own network, where policy and value do not share one. Its output stands between those of the policy and the rest, so that a
//! row of outputs looks the same as from a network that both share.

use super::state::{StateReader, StateWriter};
use super::trained::Trained;
use crate::networks::Network;

/// A network under training with the value as its only output.
pub(super) struct OwnValue {
    network: Trained,
    /// Where the value is in a row of all outputs.
    column: usize,
    /// Columns of the policy's network.
    other_columns: usize,
    own: Vec<f32>,
    others: Vec<f32>,
    part: Vec<f32>,
}

impl OwnValue {
    /// Put the value of `network` at `column` among the `other_columns` of the policy's network.
    pub(super) fn new(network: Trained, column: usize, other_columns: usize) -> Self {
        Self { part: vec![0.0; network.len()], network, column, other_columns, own: Vec::new(), others: Vec::new() }
    }

    /// Parameters.
    pub(super) fn len(&self) -> usize {
        self.part.len()
    }

    /// Fill `outputs` row by row with what `of_others` gives from the policy's network and `of_own` from this one.
    pub(super) fn beside(
        &mut self,
        outputs: &mut [f32],
        of_others: impl FnOnce(&mut [f32]),
        of_own: impl FnOnce(&mut dyn Network, &mut [f32]),
    ) {
        self.make_room(outputs.len());
        of_others(&mut self.others);
        of_own(&mut *self.network.online, &mut self.own);
        let others = self.others.chunks_exact(self.other_columns);
        for ((row, others), own) in outputs.chunks_exact_mut(self.other_columns + 1).zip(others).zip(&self.own) {
            let (before, behind) = others.split_at(self.column);
            row[..self.column].copy_from_slice(before);
            row[self.column] = *own;
            row[self.column + 1..].copy_from_slice(behind);
        }
    }

    /// Add the gradient of the last forward pass to `gradient`, given that of all outputs. Returns that of the policy's network's outputs.
    pub(super) fn add_gradient(&mut self, output_gradient: &[f32], gradient: &mut [f32]) -> &[f32] {
        self.make_room(output_gradient.len());
        let others = self.others.chunks_exact_mut(self.other_columns);
        for ((row, others), own) in output_gradient.chunks_exact(self.other_columns + 1).zip(others).zip(&mut self.own) {
            let (before, behind) = others.split_at_mut(self.column);
            before.copy_from_slice(&row[..self.column]);
            *own = row[self.column];
            behind.copy_from_slice(&row[self.column + 1..]);
        }
        self.network.online.backward(&self.own, Some(&mut self.part), None);
        gradient.iter_mut().zip(&self.part).for_each(|(sum, part)| *sum += part);
        &self.others
    }

    /// One step against `gradient`, which was clipped with the policy's.
    pub(super) fn step(&mut self, gradient: &mut [f32], learning_rate: f32) {
        self.network.step(gradient, learning_rate);
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.network.save(writer);
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.network.restore(reader);
    }

    /// For as many rows as have `values` values in all columns.
    fn make_room(&mut self, values: usize) {
        let rows = values / (self.other_columns + 1);
        self.own.resize(rows, 0.0);
        self.others.resize(rows * self.other_columns, 0.0);
    }
}
