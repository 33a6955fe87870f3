//! Learning from a batch in blocks of rows that fit the processor's caches.
//!
//! The gradient of a sum is the sum of gradients, so a batch may be cut between any two rows. Activations of all
//! networks for a few dozen rows stay in the second-level cache between the forward and the backward pass; those of a
//! whole batch do not, and the loops between the matrix products then wait for memory. docs/performance.md says how
//! much faster that is.

use super::{Halved, Learning, Random, Statistics};
use crate::metrics::Share;
use crate::replay::Batch;

/// Rows of a block. More gives larger products, fewer stay in faster caches: measured best on
/// processors with 1 MiB per core.
const BLOCK_ROWS: usize = 256;

/// Another [`Learning`], which gets each batch in blocks.
pub(super) struct Blockwise {
    inner: Box<dyn Learning>,
    block: Option<Batch>,
    part: Vec<f32>,
    errors: Vec<f32>,
}

impl Blockwise {
    pub(super) fn new(inner: Box<dyn Learning>) -> Self {
        Self { inner, block: None, part: Vec::new(), errors: Vec::new() }
    }
}

impl Learning for Blockwise {
    fn published(&mut self) -> &[f32] {
        self.inner.published()
    }

    fn prepare(&mut self, batch: &mut Batch) {
        self.inner.prepare(batch);
    }

    fn schedule(&mut self, env_steps: u64) {
        self.inner.schedule(env_steps);
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        self.errors.clear();
        self.part.resize(gradient.len(), 0.0);
        let block = self.block.get_or_insert_with(|| batch.clone());
        let mut total: Option<Share> = None;
        for first in (0..batch.rows()).step_by(BLOCK_ROWS) {
            block.copy_rows(batch, first..batch.rows().min(first + BLOCK_ROWS));
            let target = if first == 0 { &mut *gradient } else { &mut self.part };
            let part = self.inner.gradient(block, random, target);
            match &mut total {
                None => total = Some(part),
                Some(total) => total.merge(&part),
            }
            self.errors.extend_from_slice(self.inner.errors());
            if first > 0 {
                gradient.iter_mut().zip(&self.part).for_each(|(sum, value)| *sum += value);
            }
        }
        total.expect("a batch has rows")
    }

    fn errors(&self) -> &[f32] {
        &self.errors
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        self.inner.apply(gradient, total, learning_rate)
    }

    fn save(&self, state: &mut [f32]) {
        self.inner.save(state);
    }

    fn restore(&mut self, state: &[f32]) {
        self.inner.restore(state);
    }

    fn normalise_with(&mut self, statistics: &Statistics) {
        self.inner.normalise_with(statistics);
    }

    fn halved(&mut self) -> Option<&mut dyn Halved> {
        self.inner.halved()
    }
}
