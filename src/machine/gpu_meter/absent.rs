//! In place of `gpu_meter` in a library without libtorch: nothing computes on a GPU.

use super::gpu::GpuUse;

/// Never made.
pub enum GpuMeter {}

impl GpuMeter {
    /// None.
    pub fn of_this_process(_cuda_index: usize) -> Option<Self> {
        None
    }

    /// Never called.
    pub fn is_due(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn look(&mut self) -> Option<GpuUse> {
        match *self {}
    }
}
