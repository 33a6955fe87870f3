//! What learners report of the GPUs that they compute on, as one.

use std::collections::BTreeMap;

/// The newest of each GPU.
#[derive(Debug, Default)]
pub(crate) struct Gpus(BTreeMap<u32, (f64, u64)>);

impl Gpus {
    /// GPU number `index` was busy for that share of its newest moment, and so many bytes of its memory are taken.
    pub(crate) fn report(&mut self, index: u32, busy_share: f64, memory_bytes: u64) {
        self.0.insert(index, (busy_share, memory_bytes));
    }

    /// The mean share, and the bytes of all; `None` where nobody computes on any.
    pub(crate) fn total(&self) -> Option<(f64, u64)> {
        // Whoever inspects may read garbage.
        let (shares, bytes) = self.0.values().fold((0.0, 0_u64), |(shares, bytes), gpu| (shares + gpu.0, bytes.saturating_add(gpu.1)));
        (!self.0.is_empty()).then(|| (shares / self.0.len() as f64, bytes))
    }
}
