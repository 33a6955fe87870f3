//! How much of a GPU is used, as NVIDIA's management library (NVML) tells. The process that computes on the GPU asks,
//! and never the supervisor.

use std::env;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::gpu::GpuUse;

/// Time between two looks. The driver itself averages over a sixth of a second to a second.
const INTERVAL: Duration = Duration::from_secs(1);
/// The name of NVML that a driver installs; the one without a number comes with development packages alone.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Looks at one GPU, now and then.
pub struct GpuMeter {
    nvml: Nvml,
    index: u32,
    next: Instant,
    newest: Option<GpuUse>,
}

impl GpuMeter {
    /// A meter of the GPU on which this process computes, which CUDA calls number `cuda_index`. `None` if the library
    /// is missing or does not know the GPU.
    pub fn of_this_process(cuda_index: usize) -> Option<Self> {
        let visible = env::var("CUDA_VISIBLE_DEVICES").ok();
        Self::with_library(LIBRARY.as_ref(), cuda_index, visible.as_deref()).ok()
    }

    fn with_library(library: &OsStr, cuda_index: usize, visible: Option<&str>) -> Result<Self, NvmlError> {
        let nvml = Nvml::builder().lib_path(library).init()?;
        let index = index_of(&nvml, cuda_index, visible)?;
        Ok(Self { nvml, index, next: Instant::now(), newest: None })
    }

    /// Whether the next call of [`Self::look`] asks the driver.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// How much of the GPU is used, as the driver said at most a second ago; `None` if it does not say.
    pub fn look(&mut self) -> Option<GpuUse> {
        if self.is_due() {
            self.next = Instant::now() + INTERVAL;
            self.newest = self.ask();
        }
        self.newest
    }

    fn ask(&self) -> Option<GpuUse> {
        let gpu = self.nvml.device_by_index(self.index).ok()?;
        let busy_percent = gpu.utilization_rates().ok()?.gpu;
        Some(GpuUse { index: self.index, busy_share: f64::from(busy_percent) / 100.0, memory_bytes: gpu.memory_info().ok()?.used })
    }
}

/// The number in NVML's order of the GPU that CUDA calls `cuda_index`. CUDA may have another order, so the GPU is
/// taken that lists this process. If none does, as in a namespace of processes, it is the one that `visible`
/// (`CUDA_VISIBLE_DEVICES`) names.
fn index_of(nvml: &Nvml, cuda_index: usize, visible: Option<&str>) -> Result<u32, NvmlError> {
    let this = std::process::id();
    let has_this = |gpu: &Device<'_>| gpu.running_compute_processes().is_ok_and(|all| all.iter().any(|process| process.pid == this));
    if let Some(gpu) = (0..nvml.device_count()?).filter_map(|index| nvml.device_by_index(index).ok()).find(has_this) {
        return gpu.index();
    }
    let named = visible.and_then(|visible| visible.split(',').nth(cuda_index)).map(str::trim);
    match named.map(|name| (name, name.parse())) {
        Some((_, Ok(index))) => Ok(index),
        // NVML would return the index of the part among the parts of its GPU, which is no number of a GPU.
        Some((uuid, Err(_))) if uuid.starts_with("MIG-") => Err(NvmlError::NotSupported),
        Some((uuid, Err(_))) => nvml.device_by_uuid(uuid)?.index(),
        None => Ok(u32::try_from(cuda_index).unwrap_or(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// A library with NVML's names and three GPUs, of which number 2 runs the process PID. Each GPU has figures of
    /// its own.
    const STAND_IN: &str = r#"
        #include <string.h>
        typedef struct { unsigned gpu, memory; } rates;
        typedef struct { unsigned version; unsigned long long total, reserved, free, used; } bytes;
        typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process;
        static int gpus[] = {0, 1, 2};
        int nvmlInit_v2(void) { return 0; }
        int nvmlShutdown(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **gpu) { if (index > 2) return 2; *gpu = gpus + index; return 0; }
        int nvmlDeviceGetHandleByUUID(const char *uuid, int **gpu) { if (strcmp(uuid + 4, "one")) return 6; *gpu = gpus + 1; return 0; }
        int nvmlDeviceGetIndex(int *gpu, unsigned *index) { *index = *gpu; return 0; }
        int nvmlDeviceGetUtilizationRates(int *gpu, rates *rates) { rates->gpu = 10 * *gpu + 5; rates->memory = 0; return 0; }
        int nvmlDeviceGetMemoryInfo_v2(int *gpu, bytes *bytes) { bytes->used = (*gpu + 1) * 1000ull; return 0; }
        int nvmlDeviceGetComputeRunningProcesses_v3(int *gpu, unsigned *count, process *all) {
            if (*gpu != 2) { *count = 0; return 0; }
            if (!all) { *count = 1; return 7; }
            *count = 1; all[0].pid = PID; return 0;
        }
    "#;

    fn stand_in(folder: &std::path::Path, pid: u32) -> PathBuf {
        let (source, library) = (folder.join("nvml.c"), folder.join(format!("libnvidia-ml-{pid}.so")));
        std::fs::write(&source, STAND_IN).unwrap();
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg(format!("-DPID={pid}")).status();
        assert!(compiled.unwrap().success());
        library
    }

    #[test]
    fn the_gpu_that_this_process_computes_on_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let library = stand_in(folder.path(), std::process::id());
        let mut meter = GpuMeter::with_library(library.as_os_str(), 0, None).unwrap();
        assert!(meter.is_due(), "a run of a few updates tells of it, too");
        let expected = Some(GpuUse { index: 2, busy_share: 0.25, memory_bytes: 3_000 });
        assert_eq!((meter.look(), meter.look()), (expected, expected), "the newest is known between two looks");
        assert!(!meter.is_due());
    }

    #[test]
    fn where_no_gpu_knows_the_process_the_environment_says_which_one_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let library = stand_in(folder.path(), 0);
        for (cuda_index, visible, found) in [(1, None, 1), (0, Some("2,1"), 2), (1, Some("0, GPU-one"), 1), (0, Some("GPU-one"), 1)] {
            let meter = GpuMeter::with_library(library.as_os_str(), cuda_index, visible).unwrap();
            assert_eq!(meter.index, found, "number {cuda_index} of {visible:?}");
        }
        assert!(GpuMeter::with_library(library.as_os_str(), 0, Some("GPU-two")).is_err());
        assert!(GpuMeter::with_library("/nowhere/libnvidia-ml.so".as_ref(), 0, None).is_err());
    }

    #[test]
    fn of_a_part_of_a_gpu_nothing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let library = stand_in(folder.path(), 0);
        let refused = GpuMeter::with_library(library.as_os_str(), 0, Some("MIG-one"));
        assert!(matches!(refused, Err(NvmlError::NotSupported)), "the library knows the part, and its index among the parts");
    }
}
