//! What learners report about the GPUs that they compute on, put together.

use std::collections::BTreeMap;

/// By number of the GPU, the newest busy share and the bytes of its memory that are taken.
#[derive(Debug, Default)]
pub(crate) struct Gpus(BTreeMap<u32, (f64, u64)>);

impl Gpus {
    /// Takes in that GPU number `index` was busy for `busy_share` of its newest moment and has `memory_bytes` taken.
    pub(crate) fn report(&mut self, index: u32, busy_share: f64, memory_bytes: u64) {
        self.0.insert(index, (busy_share, memory_bytes));
    }

    /// The mean busy share and the taken bytes of all GPUs; `None` without a GPU.
    pub(crate) fn total(&self) -> Option<(f64, u64)> {
        // The inspector may have read garbage from a damaged segment.
        let (shares, bytes) = self.0.values().fold((0.0, 0_u64), |(shares, bytes), gpu| (shares + gpu.0, bytes.saturating_add(gpu.1)));
        (!self.0.is_empty()).then(|| (shares / self.0.len() as f64, bytes))
    }
}
