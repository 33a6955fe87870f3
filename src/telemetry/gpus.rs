//! What learners report about the GPUs that they compute on, put together.

use std::collections::BTreeMap;

/// What one GPU did in its newest moment, or several did, put together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuLoad {
    /// Share of the moment in which it computed, mean over the GPUs.
    pub(crate) busy_share: f64,
    /// Bytes that are taken of its memory, of all GPUs together.
    pub(crate) memory_bytes: u64,
}

/// The newest load of every GPU, by its number.
#[derive(Debug, Default)]
pub(crate) struct Gpus(BTreeMap<u32, GpuLoad>);

impl Gpus {
    /// Takes in that GPU number `index` was busy for `busy_share` of its newest moment and has `memory_bytes` taken.
    pub(crate) fn report(&mut self, index: u32, busy_share: f64, memory_bytes: u64) {
        self.0.insert(index, GpuLoad { busy_share, memory_bytes });
    }

    /// The load of all GPUs; `None` without a GPU.
    pub(crate) fn total(&self) -> Option<GpuLoad> {
        let busy_shares: f64 = self.0.values().map(|gpu| gpu.busy_share).sum();
        // The inspector may have read garbage from a damaged segment.
        let memory_bytes = self.0.values().fold(0, |bytes: u64, gpu| bytes.saturating_add(gpu.memory_bytes));
        (!self.0.is_empty()).then(|| GpuLoad { busy_share: busy_shares / self.0.len() as f64, memory_bytes })
    }
}
