//! A network for the value alone, if policy and value do not share one (`network.separate_value`). Its output is put
//! between the policy's outputs and the rest, so that a row of outputs looks as if one network had computed all of it.

use super::state::{StateReader, StateWriter};
use super::trained::Trained;
use crate::networks::Network;

/// A network under training whose only output is the value of a state.
pub(super) struct ValueNetwork {
    network: Trained,
    /// Place of the value in a row of all outputs.
    column: usize,
    /// Columns of the policy network's output.
    policy_columns: usize,
    /// The value of each row, or its gradient.
    values: Vec<f32>,
    /// The policy network's output, or its gradient.
    policy_outputs: Vec<f32>,
}

impl ValueNetwork {
    /// Put the value of `network` at `column` among the `policy_columns` of the policy network's output.
    pub(super) fn new(network: Trained, column: usize, policy_columns: usize) -> Self {
        Self { network, column, policy_columns, values: Vec::new(), policy_outputs: Vec::new() }
    }

    /// Number of parameters.
    pub(super) fn len(&self) -> usize {
        self.network.len()
    }

    /// The network, and what a pass over so many rows has to fill before [`Self::merge`]: the policy network's outputs
    /// and the values.
    pub(super) fn begin_pass(&mut self, rows: usize) -> (&mut dyn Network, &mut [f32], &mut [f32]) {
        self.make_room(rows);
        (&mut *self.network.online, &mut self.policy_outputs, &mut self.values)
    }

    /// Fill the rows of `outputs` with the policy network's outputs and the values.
    pub(super) fn merge(&self, outputs: &mut [f32]) {
        let policy_rows = self.policy_outputs.chunks_exact(self.policy_columns);
        for ((row, policy_row), value) in outputs.chunks_exact_mut(self.policy_columns + 1).zip(policy_rows).zip(&self.values) {
            let (before, behind) = policy_row.split_at(self.column);
            row[..self.column].copy_from_slice(before);
            row[self.column] = *value;
            row[self.column + 1..].copy_from_slice(behind);
        }
    }

    /// As [`Trained::add_gradient`], given the gradient of all outputs. Returns that of the policy network's outputs.
    pub(super) fn add_gradient(&mut self, output_gradient: &[f32], gradient: &mut [f32], is_first: bool) -> &[f32] {
        self.make_room(output_gradient.len() / (self.policy_columns + 1));
        let policy_rows = self.policy_outputs.chunks_exact_mut(self.policy_columns);
        for ((row, policy_row), value) in output_gradient.chunks_exact(self.policy_columns + 1).zip(policy_rows).zip(&mut self.values) {
            let (before, behind) = policy_row.split_at_mut(self.column);
            before.copy_from_slice(&row[..self.column]);
            *value = row[self.column];
            behind.copy_from_slice(&row[self.column + 1..]);
        }
        self.network.add_gradient(&self.values, gradient, is_first);
        &self.policy_outputs
    }

    /// As [`Trained::step_by`], where `factors` also clip the policy's gradient.
    pub(super) fn step(&mut self, gradient: &[f32], factors: [f32; 2], learning_rate: f32) {
        self.network.step_by(gradient, factors, learning_rate);
    }

    pub(super) fn save(&self, writer: &mut StateWriter<'_>) {
        self.network.save(writer);
    }

    pub(super) fn restore(&mut self, reader: &mut StateReader<'_>) {
        self.network.restore(reader);
    }

    /// Make the buffers as long as so many rows need.
    fn make_room(&mut self, rows: usize) {
        self.values.resize(rows, 0.0);
        self.policy_outputs.resize(rows * self.policy_columns, 0.0);
    }
}
