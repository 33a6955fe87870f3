//! Memory of the machine, and the budget: the largest block of shared memory that can be allocated now.

use std::fmt;
use std::path::{Path, PathBuf};

use indicatif::BinaryBytes;
use serde::Serialize;

use super::{Machine, cgroup, text_of};

/// What sets the limits of control groups.
pub(super) const SETTINGS_OF_GROUP_LIMITS: &str = "docker: --memory, systemd: MemoryMax for memory.max, MemoryHigh for memory.high";
/// What enlarges `/dev/shm` in a pod, which may not mount anything itself.
pub(super) const SHARED_MEMORY_OF_PODS: &str = "Kubernetes: an emptyDir of medium Memory at /dev/shm";

/// Memory of the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Installed memory that the kernel manages.
    pub total_bytes: u64,
    /// Memory that new work can take without swapping, by the kernel's estimate.
    pub available_bytes: u64,
    /// Memory that the kernel may still promise to programs; `None` if it promises more than it has, as it does unless
    /// `vm.overcommit_memory` is 2.
    pub promisable_bytes: Option<u64>,
    /// Free huge pages set aside by the administrator (hugetlb).
    pub reserved_huge_pages: u64,
    /// Size of a huge page.
    pub huge_page_bytes: u64,
}

impl Memory {
    /// Reads `/proc/meminfo` and `vm.overcommit_memory` below `root`; `None` if the former cannot be read. A `/proc` that
    /// shows processes alone, as services are given it (`subset=pid`), has no such files.
    pub fn detect_under(root: &Path) -> Option<Self> {
        Self::parse(&text_of(root, "proc/meminfo"), &text_of(root, "proc/sys/vm/overcommit_memory"))
    }

    fn parse(meminfo: &str, overcommit: &str) -> Option<Self> {
        let number = |name: &str| {
            let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        };
        let promisable = number("CommitLimit").zip(number("Committed_AS")).filter(|_| overcommit.trim() == "2");
        Some(Self {
            total_bytes: number("MemTotal")? * 1024,
            available_bytes: number("MemAvailable")? * 1024,
            promisable_bytes: promisable.map(|(most, promised)| most.saturating_sub(promised) * 1024),
            reserved_huge_pages: number("HugePages_Free").unwrap_or(0),
            huge_page_bytes: number("Hugepagesize").unwrap_or(0) * 1024,
        })
    }
}

/// Share that is taken now of the machine's memory or of the control group's, whichever is more. A machine that does
/// not tell of its memory counts as empty.
pub fn share_of_memory_used() -> f64 {
    share_used_under(Path::new("/"))
}

fn share_used_under(root: &Path) -> f64 {
    let used = |memory: Memory| share(memory.total_bytes.saturating_sub(memory.available_bytes), memory.total_bytes);
    let machine = Memory::detect_under(root).map_or(0.0, used);
    cgroup::detect_under(root).map_or(machine, |group| machine.max(share(group.used_bytes, group.limit_bytes)))
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The largest block of shared memory that can be allocated now, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Size of that block.
    pub bytes: u64,
    /// What limits it.
    pub limit: Limit,
}

/// What limits a [`Budget`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Available memory of the machine.
    AvailableMemory,
    /// What the kernel may still promise to programs, which includes shared memory.
    Promises,
    /// The limit of a control group in this file.
    ControlGroup(PathBuf),
    /// Free space of `/dev/shm`.
    SharedMemory {
        /// Bytes that are taken there.
        used_bytes: u64,
    },
    /// There is no `/dev/shm`.
    NoSharedMemory,
    /// The largest file that the process may write.
    FileSize,
}

/// A block is larger than the budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} of shared memory do not fit: {limit} allows {}; {}",
    BinaryBytes(*.needed_bytes),
    BinaryBytes(*.bytes),
    limit.remedy(*.needed_bytes)
)]
pub struct OverBudget {
    /// Size of the block.
    pub needed_bytes: u64,
    /// Size of the largest block possible.
    pub bytes: u64,
    /// What limits it.
    pub limit: Limit,
}

impl Budget {
    /// The budget of `machine`, as it was when detected. What is not known limits nothing.
    pub fn of(machine: &Machine) -> Self {
        let memory = machine.memory.as_ref();
        let available = memory.map(|memory| (memory.available_bytes, Limit::AvailableMemory));
        let promises = memory.and_then(|memory| Some((memory.promisable_bytes?, Limit::Promises)));
        let group = machine.cgroup.as_ref().map(|group| (group.headroom_bytes(), Limit::ControlGroup(group.file.clone())));
        let shared = machine.shared_memory.as_ref().map_or((0, Limit::NoSharedMemory), |shared| {
            (shared.free_bytes, Limit::SharedMemory { used_bytes: shared.total_bytes.saturating_sub(shared.free_bytes) })
        });
        let file = (machine.software.largest_file_bytes, Limit::FileSize);
        let limits = [available, promises, group].into_iter().flatten().chain([shared, file]);
        let (bytes, limit) = limits.min_by_key(|(bytes, _)| *bytes).expect("there are at least two");
        Self { bytes, limit }
    }

    /// Whether a block of that size can be allocated.
    ///
    /// # Errors
    /// [`OverBudget`], with what limits it and how to lift the limit.
    pub fn check(&self, needed_bytes: u64) -> Result<(), OverBudget> {
        if needed_bytes <= self.bytes {
            return Ok(());
        }
        Err(OverBudget { needed_bytes, bytes: self.bytes, limit: self.limit.clone() })
    }
}

impl Limit {
    /// How to make room for a block of `needed_bytes`.
    pub fn remedy(&self, needed_bytes: u64) -> String {
        let mebibytes = needed_bytes.div_ceil(1 << 20);
        match self {
            Limit::AvailableMemory => "stop other programs".to_owned(),
            Limit::Promises => "raise vm.overcommit_ratio (`sysctl`, as root), or stop other programs".to_owned(),
            Limit::ControlGroup(_) => format!("raise that limit ({SETTINGS_OF_GROUP_LIMITS}) by {mebibytes} MiB"),
            Limit::SharedMemory { used_bytes } => format!(
                "run `mount -o remount,size={}M /dev/shm` as root (docker: --shm-size={0}m; {SHARED_MEMORY_OF_PODS})",
                mebibytes + mebibytes / 8 + used_bytes.div_ceil(1 << 20)
            ),
            Limit::NoSharedMemory => {
                "run `mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm` as root (docker: leave --ipc=none out)".to_owned()
            }
            Limit::FileSize => "raise that limit (`ulimit -f unlimited`)".to_owned(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::AvailableMemory => write!(out, "the machine's available memory"),
            Limit::Promises => write!(out, "the memory that the kernel may still promise (vm.overcommit_memory is 2)"),
            Limit::ControlGroup(file) => write!(out, "the control group's limit in {}", file.display()),
            Limit::SharedMemory { .. } => write!(out, "the free space of /dev/shm"),
            Limit::NoSharedMemory => write!(out, "the absence of /dev/shm"),
            Limit::FileSize => write!(out, "the limit on the size of files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::MemoryLimit;
    use super::super::fixture;
    use super::super::shared_memory::SharedMemory;
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine(available_bytes: u64, headroom_bytes: Option<u64>, shared_free_bytes: Option<u64>) -> Machine {
        let root = fixture::root(&[]);
        let mut machine = Machine::detect_under(root.path());
        machine.memory = Memory::parse(&format!("MemTotal: {0} kB\nMemAvailable: {0} kB\n", available_bytes / 1024), "0\n");
        machine.cgroup =
            headroom_bytes.map(|headroom| MemoryLimit { file: "/jobs/memory.high".into(), limit_bytes: headroom + GIB, used_bytes: GIB });
        machine.shared_memory = shared_free_bytes.map(|free_bytes| SharedMemory { total_bytes: free_bytes + GIB, free_bytes });
        machine
    }

    #[test]
    fn meminfo_is_read_in_kibibytes_and_names_are_matched_whole() {
        let memory = Memory::parse(
            "MemTotal:       100 kB\nMemAvailableX: 1 kB\nMemAvailable:    60 kB\nHugePages_Free:  3\nHugepagesize:  2048 kB\n",
            "",
        );
        let expected = Memory {
            total_bytes: 102_400,
            available_bytes: 61_440,
            promisable_bytes: None,
            reserved_huge_pages: 3,
            huge_page_bytes: 2 << 20,
        };
        assert_eq!(memory, Some(expected));
    }

    #[test]
    fn the_share_of_memory_that_is_used_is_that_of_the_machine_or_of_its_control_group_whichever_is_more() {
        let used = |group: &[(&str, &str)]| {
            let machine = [
                ("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 60 kB\n"),
                ("proc/self/cgroup", "0::/jobs\n"),
                ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("sys/fs/cgroup/jobs/memory.current", "1500\n"),
                ("sys/fs/cgroup/jobs/memory.stat", "inactive_file 300\nactive_file 200\n"),
            ];
            share_used_under(fixture::root(&[&machine[..], group].concat()).path())
        };
        let limited_to = |bytes| used(&[("sys/fs/cgroup/jobs/memory.max", bytes)]);
        // A limit may be lowered while a run goes on.
        assert_eq!(["max\n", "8000\n", "2000\n", "1250\n"].map(limited_to), [0.4, 0.4, 0.5, 0.8]);
        assert_eq!(used(&[]), 0.4);
        assert_eq!(share_used_under(fixture::root(&[]).path()), 0.0);
    }

    #[test]
    fn the_budget_is_the_least_of_all_limits_and_names_it() {
        let budget = |available, headroom, shared| Budget::of(&machine(available, headroom, shared));
        assert_eq!(budget(2 * GIB, None, Some(3 * GIB)), Budget { bytes: 2 * GIB, limit: Limit::AvailableMemory });
        assert_eq!(
            budget(2 * GIB, Some(GIB), Some(3 * GIB)),
            Budget { bytes: GIB, limit: Limit::ControlGroup("/jobs/memory.high".into()) }
        );
        let limit = Limit::SharedMemory { used_bytes: GIB };
        assert_eq!(budget(2 * GIB, Some(GIB), Some(64 << 20)), Budget { bytes: 64 << 20, limit });
        assert_eq!(budget(2 * GIB, None, None), Budget { bytes: 0, limit: Limit::NoSharedMemory });
        let mut limited = machine(2 * GIB, None, Some(3 * GIB));
        limited.software.largest_file_bytes = GIB;
        assert_eq!(Budget::of(&limited), Budget { bytes: GIB, limit: Limit::FileSize });
    }

    #[test]
    fn what_the_kernel_may_still_promise_is_a_limit_where_it_promises_no_more_than_it_has() {
        let budget = |setting: &str, promised_kib: u64| {
            let meminfo =
                format!("MemTotal: 64 kB\nMemAvailable: 33554432 kB\nCommitLimit: 25165824 kB\nCommitted_AS: {promised_kib} kB\n");
            let files = [("proc/meminfo", meminfo.as_str()), ("proc/sys/vm/overcommit_memory", setting)];
            let mut machine = machine(0, None, Some(48 * GIB));
            machine.memory = Memory::detect_under(fixture::root(&files).path());
            Budget::of(&machine)
        };
        for setting in ["0\n", "1\n", ""] {
            assert_eq!(budget(setting, 12 << 20), Budget { bytes: 32 * GIB, limit: Limit::AvailableMemory }, "{setting}");
        }
        assert_eq!(budget("2\n", 25 << 20), Budget { bytes: 0, limit: Limit::Promises }, "as after the limit was lowered");
        assert_eq!(
            budget("2\n", 12 << 20).check(20 * GIB).unwrap_err().to_string(),
            "20.00 GiB of shared memory do not fit: the memory that the kernel may still promise (vm.overcommit_memory is 2) allows \
             12.00 GiB; raise vm.overcommit_ratio (`sysctl`, as root), or stop other programs"
        );
    }

    #[test]
    fn a_machine_that_does_not_tell_of_its_memory_is_not_taken_for_a_full_one() {
        let mut silent = machine(0, Some(2 * GIB), Some(3 * GIB));
        silent.memory = Memory::parse("", "2\n");
        assert_eq!(Budget::of(&silent), Budget { bytes: 2 * GIB, limit: Limit::ControlGroup("/jobs/memory.high".into()) });
    }

    #[test]
    fn a_block_over_the_limit_of_a_control_group_is_refused_with_the_file_of_the_limit_and_what_sets_it() {
        assert_eq!(
            Budget::of(&machine(2 * GIB, Some(GIB), Some(3 * GIB))).check(2 * GIB).unwrap_err().to_string(),
            "2.00 GiB of shared memory do not fit: the control group's limit in /jobs/memory.high allows 1.00 GiB; raise that limit \
             (docker: --memory, systemd: MemoryMax for memory.max, MemoryHigh for memory.high) by 2048 MiB"
        );
    }

    #[test]
    fn a_block_over_budget_is_refused_with_both_sizes_and_the_remedy() {
        let budget = Budget { bytes: 64 << 20, limit: Limit::SharedMemory { used_bytes: 6 * GIB } };
        assert_eq!(budget.check(64 << 20), Ok(()));
        assert_eq!(
            budget.check(2 * GIB).unwrap_err().to_string(),
            "2.00 GiB of shared memory do not fit: the free space of /dev/shm allows 64.00 MiB; run `mount -o remount,size=8448M /dev/shm` \
             as root (docker: --shm-size=8448m; Kubernetes: an emptyDir of medium Memory at /dev/shm)"
        );
    }
}
