//! What this machine offers a run: cores, memory and its limits, shared memory, huge pages, GPUs, libraries.
//!
//! A [`Machine`] is read from files of the kernel below a root folder, so that tests can put a made-up machine there.
//! Reading it starts no thread, allocates nothing that it measures, and does not call CUDA: a process that is about
//! to fork must not. Two modules ask other programs: `python` starts the interpreter that it is asked about, and
//! `gpu_meter` opens the driver's library, in learners alone.

// Cores and time on them.
pub mod affinity;
pub mod core_time; // of one process
pub mod cores;
pub mod machine_time; // of all programs together

// Memory and limits.
pub mod cgroup;
pub mod memory;
pub mod open_files;
pub mod shared_memory;

// GPUs.
pub mod gpu; // which there are, from the files of the driver
#[cfg_attr(not(feature = "torch"), path = "gpu_meter/absent.rs")]
pub mod gpu_meter; // how much of one is used

// Software.
mod host; // the interpreter that has loaded this library
mod libtorch;
pub mod python; // the interpreter that environments run in
mod python_error;
mod python_survey;
pub mod software;
pub mod threads; // of this process

pub mod doctor; // the findings about all of it

use std::path::Path;

use serde::Serialize;

pub use cores::Cores;
pub use host::Host;
pub use libtorch::Libtorch;
pub use memory::{Budget, Limit, Memory};
pub use python::{LinkedPython, Python};
pub use python_error::PythonError;
pub use python_survey::PythonSurvey;
pub use shared_memory::SharedMemory;
pub use software::Software;

/// What this machine offered when it was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Processor cores.
    pub cores: Cores,
    /// Memory of the whole machine; `None` if the kernel does not tell.
    pub memory: Option<Memory>,
    /// The tightest memory limit on this process's control groups; `None` without any.
    pub cgroup: Option<cgroup::MemoryLimit>,
    /// Whether the kernel kills all processes of one of these groups at once when memory runs out.
    pub is_killed_as_one: bool,
    /// Processes and threads that this process's control groups have room for; `None` without a limit.
    pub room_for_processes: Option<u64>,
    /// `/dev/shm`; `None` if there is none.
    pub shared_memory: Option<SharedMemory>,
    /// When the kernel puts huge pages under `/dev/shm`.
    pub huge_pages: shared_memory::HugePages,
    /// GPUs of NVIDIA.
    pub gpus: gpu::Gpus,
    /// Kernel, libtorch, and limits of this process.
    pub software: Software,
}

impl Machine {
    /// Looks at the machine that this process runs on. Files that cannot be read count as absent.
    pub fn detect() -> Self {
        Self::detect_under(Path::new("/"))
    }

    /// Like [`detect`](Self::detect), with the files of the kernel below `root`. System calls still answer for the
    /// machine that this process runs on.
    pub fn detect_under(root: &Path) -> Self {
        Self {
            cores: Cores::detect_under(root),
            memory: Memory::detect_under(root),
            cgroup: cgroup::detect_under(root),
            is_killed_as_one: cgroup::is_killed_as_one(root),
            room_for_processes: cgroup::room_for_processes(root),
            shared_memory: SharedMemory::detect(&root.join("dev/shm")),
            huge_pages: shared_memory::HugePages::detect_under(root),
            gpus: gpu::Gpus::detect_under(root),
            software: Software::detect_under(root),
        }
    }
}

/// The content of the file `name` below `root`; empty if it cannot be read.
pub(crate) fn text_of(root: &Path, name: &str) -> String {
    std::fs::read_to_string(root.join(name)).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod fixture {
    //! A made-up machine: a folder of files as the kernel would show them.

    use std::path::Path;

    /// A temporary folder with the given files.
    pub(crate) fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_core_and_memory() {
        let machine = Machine::detect();
        assert!(!machine.cores.usable.is_empty());
        let memory = machine.memory.as_ref().unwrap();
        assert!(memory.total_bytes >= memory.available_bytes && memory.available_bytes > 0);
        assert!(Budget::of(&machine).bytes <= memory.available_bytes);
    }

    #[test]
    fn an_empty_root_is_a_machine_without_limits_and_devices() {
        let root = fixture::root(&[]);
        let machine = Machine::detect_under(root.path());
        assert_eq!(machine.cgroup, None);
        assert_eq!(machine.shared_memory, None);
        assert!(machine.gpus.names.is_empty() && !machine.gpus.has_driver);
    }
}
