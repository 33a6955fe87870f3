//! The findings of `shoal doctor`: each a fact about the machine, a verdict, and the command that improves it.

use std::fmt;

use indicatif::BinaryBytes;
use serde::Serialize;

use super::memory::{SETTINGS_OF_GROUP_LIMITS, SHARED_MEMORY_OF_PODS};
use super::shared_memory::HugePages;
use super::{Budget, Host, Limit, Machine, PythonSurvey, SharedMemory};

/// How bad a fact is for runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing to do.
    Ok,
    /// Works, but slower or with less than could be had.
    Warning,
    /// Does not work.
    Problem,
}

/// A fact about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What the fact is about.
    pub topic: &'static str,
    /// How bad the fact is for runs.
    pub verdict: Severity,
    /// The fact.
    pub fact: String,
    /// What improves the fact: a command, or what to do.
    pub fix: Option<String>,
}

/// Memory below which only the smallest runs fit.
const SCARCE_BYTES: u64 = 2 << 30;
/// Memory below which not even the run of the smallest preset fits.
const TOO_FEW_BYTES: u64 = 8 << 20;
/// Free space of `/dev/shm` that is enough for most runs.
const ENLARGED_BYTES: u64 = 8 << 30;
/// Since Linux 5.4 a process can be waited for by its descriptor (`waitid` with `P_PIDFD`).
const OLDEST_KERNEL: (u32, u32) = (5, 4);
/// Open files that are enough for most runs: a supervisor has two open for each process. It raises its own limit as
/// far as the system allows.
const ENOUGH_OPEN_FILES: u64 = 1_024;
/// Processes and threads that are enough for most runs.
const ENOUGH_PROCESSES: u64 = 256;

/// All findings about `machine` and its Python.
pub fn report(machine: &Machine, python: &PythonSurvey) -> Vec<Finding> {
    vec![
        kernel(machine),
        cores(machine),
        memory(machine),
        control_group(machine),
        shared_memory(machine),
        budget(machine),
        huge_pages(machine),
        gpu(machine),
        libtorch(machine),
        python.interpreter(),
        python.packages(),
        open_files(machine),
        processes(machine),
    ]
}

impl Finding {
    pub(super) fn ok(topic: &'static str, fact: String) -> Self {
        Self { topic, verdict: Severity::Ok, fact, fix: None }
    }

    pub(super) fn warning(topic: &'static str, fact: String, fix: impl Into<String>) -> Self {
        Self { topic, verdict: Severity::Warning, fact, fix: Some(fix.into()) }
    }

    fn problem(topic: &'static str, fact: String, fix: impl Into<String>) -> Self {
        Self { topic, verdict: Severity::Problem, fact, fix: Some(fix.into()) }
    }
}

fn kernel(machine: &Machine) -> Finding {
    let fact = format!("Linux {}", machine.software.kernel);
    if machine.software.kernel_version() < OLDEST_KERNEL {
        return Finding::problem("kernel", fact, format!("use Linux {}.{} or newer", OLDEST_KERNEL.0, OLDEST_KERNEL.1));
    }
    let Some(error) = &machine.software.pidfd_error else { return Finding::ok("kernel", fact) };
    let fact = format!("{fact}, which does not tell of the end of processes (pidfd_open: {error})");
    let fix = "in a container: use Docker 20.10 or newer, or a seccomp profile that allows pidfd_open and pidfd_send_signal";
    Finding::problem("kernel", fact, fix)
}

fn cores(machine: &Machine) -> Finding {
    let cores = &machine.cores;
    let nodes = match cores.numa_nodes.len() {
        0 | 1 => String::new(),
        count => format!(", {count} NUMA nodes"),
    };
    let fact = format!("{} usable cores ({} physical{nodes}), {}", cores.usable.len(), cores.physical, cores.model);
    // A control group may have the time of fewer cores than the affinity mask has.
    let fact = match cores.quota {
        Some(quota) => format!("{fact}; the control group has the time of {}", (100.0 * quota).round() / 100.0),
        None => fact,
    };
    if cores.quota.unwrap_or(cores.usable.len() as f64) >= 2.0 {
        return Finding::ok("cores", fact);
    }
    let fix = "give this process more cores (taskset, docker: --cpus, --cpuset-cpus): on one, all processes take turns";
    Finding::warning("cores", fact, fix)
}

fn memory(machine: &Machine) -> Finding {
    let Some(memory) = &machine.memory else {
        let fact = "/proc/meminfo cannot be read: a run for which there is too little may begin, and be killed".to_owned();
        return Finding::warning("memory", fact, "mount /proc with all of its files (systemd: ProcSubset=all)");
    };
    let fact = format!("{} available of {}", BinaryBytes(memory.available_bytes), BinaryBytes(memory.total_bytes));
    if memory.available_bytes >= SCARCE_BYTES {
        return Finding::ok("memory", fact);
    }
    Finding::warning("memory", fact, "stop other programs; `ps aux --sort=-rss | head` lists the largest")
}

fn control_group(machine: &Machine) -> Finding {
    let mut fact = machine.cgroup.as_ref().map_or_else(
        || "no memory limit".to_owned(),
        |group| {
            let (headroom, limit) = (BinaryBytes(group.headroom_bytes()), BinaryBytes(group.limit_bytes));
            format!("{headroom} left of the {limit} in {}", group.file.display())
        },
    );
    if machine.is_killed_as_one {
        fact += "; if memory runs out, the kernel kills all processes of the group at once (memory.oom.group is 1)";
    }
    if machine.cgroup.as_ref().is_some_and(|group| group.headroom_bytes() < SCARCE_BYTES) {
        return Finding::warning("control group", fact, format!("raise that limit ({SETTINGS_OF_GROUP_LIMITS})"));
    }
    if machine.is_killed_as_one {
        let fix = "lower checkpoint.interval_s: a run loses what came after its newest checkpoint (or kubelet: singleProcessOOMKill)";
        return Finding::warning("control group", fact, fix);
    }
    Finding::ok("control group", fact)
}

fn shared_memory(machine: &Machine) -> Finding {
    let Some(shared) = &machine.shared_memory else {
        return Finding::problem("shared memory", "/dev/shm is not there".to_owned(), Limit::NoSharedMemory.remedy(TOO_FEW_BYTES));
    };
    if *shared == SharedMemory::UNLIMITED {
        return Finding::ok("shared memory", "/dev/shm has no limit of its own".to_owned());
    }
    let fact = format!("{} free of {} in /dev/shm", BinaryBytes(shared.free_bytes), BinaryBytes(shared.total_bytes));
    let gibibytes = (shared.total_bytes.saturating_sub(shared.free_bytes) + ENLARGED_BYTES).div_ceil(1 << 30);
    let enlarge = format!("mount -o remount,size={gibibytes}G /dev/shm (docker: --shm-size={gibibytes}g; {SHARED_MEMORY_OF_PODS})");
    match shared.free_bytes {
        0..TOO_FEW_BYTES => Finding::problem("shared memory", fact, enlarge),
        TOO_FEW_BYTES..SCARCE_BYTES => Finding::warning("shared memory", fact, enlarge),
        _ => Finding::ok("shared memory", fact),
    }
}

fn budget(machine: &Machine) -> Finding {
    let budget = Budget::of(machine);
    let fact = format!("a run can have {} of shared memory, limited by {}", BinaryBytes(budget.bytes), budget.limit);
    if budget.bytes >= TOO_FEW_BYTES {
        return Finding::ok("largest segment", fact);
    }
    Finding::problem("largest segment", fact, budget.limit.remedy(TOO_FEW_BYTES))
}

fn huge_pages(machine: &Machine) -> Finding {
    let reserved = machine.memory.as_ref().filter(|memory| memory.reserved_huge_pages > 0).map_or_else(String::new, |memory| {
        format!("; {} pages of {} are reserved (hugetlb)", memory.reserved_huge_pages, BinaryBytes(memory.huge_page_bytes))
    });
    match machine.huge_pages {
        HugePages::Always => Finding::ok("huge pages", format!("the kernel gives them to /dev/shm{reserved}")),
        HugePages::OnRequest => Finding::ok("huge pages", format!("the kernel gives them to /dev/shm on request{reserved}")),
        HugePages::Never => Finding::warning(
            "huge pages",
            format!("/dev/shm is mounted without them, which slows sampling from a large replay{reserved}"),
            "mount -o remount,huge=advise /dev/shm",
        ),
        HugePages::Denied => Finding::warning(
            "huge pages",
            format!("the kernel denies them to /dev/shm, which slows sampling from a large replay{reserved}"),
            "echo never | tee /sys/kernel/mm/transparent_hugepage/shmem_enabled && mount -o remount,huge=advise /dev/shm",
        ),
        HugePages::Unsupported => Finding::warning(
            "huge pages",
            format!("the kernel tells of none for shared memory{reserved}"),
            "mount /sys if it is missing, or use a kernel built with CONFIG_TRANSPARENT_HUGEPAGE",
        ),
    }
}

fn gpu(machine: &Machine) -> Finding {
    let gpus = &machine.gpus;
    match (gpus.has_driver, gpus.names.is_empty()) {
        (false, true) => Finding::ok("gpu", "none; learners compute on the CPU".to_owned()),
        (true, false) => reachable_gpus(machine),
        (true, true) => Finding::warning("gpu", "the driver is loaded but lists no GPU".to_owned(), "nvidia-smi"),
        (false, false) => Finding::warning(
            "gpu",
            format!("{}, but /dev/nvidiactl is missing, so no program can reach it", gpus.names.join(", ")),
            "nvidia-modprobe (docker: --gpus all)",
        ),
    }
}

/// The finding about GPUs that programs can reach: which there are, and whether the driver is new enough.
fn reachable_gpus(machine: &Machine) -> Finding {
    let gpus = &machine.gpus;
    let are_of_one_kind = gpus.names.iter().all(|name| *name == gpus.names[0]);
    let order = if are_of_one_kind { "" } else { " (by PCI address; CUDA numbers the fastest first, unless CUDA_DEVICE_ORDER=PCI_BUS_ID)" };
    let driver = gpus.driver.as_ref().map_or_else(String::new, |version| format!("; driver {version}"));
    let fact = format!("{}{order}{driver}", gpus.names.join(", "));
    match (gpus.driver_branch(), machine.software.libtorch.oldest_driver()) {
        (Some(branch), Some(oldest)) if branch < oldest => Finding::warning(
            "gpu",
            format!("{fact}, which is too old for the CUDA of this program's libtorch"),
            format!("install an NVIDIA driver of {oldest} or newer, or let learner.device be cpu"),
        ),
        _ => Finding::ok("gpu", fact),
    }
}

fn libtorch(machine: &Machine) -> Finding {
    let libtorch = &machine.software.libtorch;
    let version = libtorch.version.as_deref().unwrap_or("of unknown version");
    match (&libtorch.folder, libtorch.is_linked) {
        (_, false) if Host::of_this_process().is_some() => Finding::ok(
            "libtorch",
            "networks run on the native CPU engine; that of an installed PyTorch serves those whose configuration asks for it".to_owned(),
        ),
        (_, false) => Finding::warning(
            "libtorch",
            "this program was built without it: networks run on the native CPU engine alone".to_owned(),
            "cargo xtask setup && cargo build --release",
        ),
        (None, true) => {
            Finding::warning("libtorch", "linked, but its folder was not found".to_owned(), "cargo xtask setup && cargo build --release")
        }
        (Some(folder), true) if machine.gpus.has_driver && !libtorch.has_cuda => Finding::warning(
            "libtorch",
            format!("{version} in {}, whose CUDA half this program does not load, so the GPU stays idle", folder.display()),
            "cargo xtask setup --cuda && cargo build --release",
        ),
        (Some(folder), true) => {
            let devices = if libtorch.has_cuda { "CPU and CUDA" } else { "CPU" };
            Finding::ok("libtorch", format!("{version} ({devices}) in {}", folder.display()))
        }
    }
}

fn open_files(machine: &Machine) -> Finding {
    let most = machine.software.most_open_files;
    let fact = format!("a run may open {most} files");
    if most >= ENOUGH_OPEN_FILES {
        return Finding::ok("open files", fact);
    }
    Finding::warning("open files", fact, format!("as root: prlimit --nofile={ENOUGH_OPEN_FILES}:{ENOUGH_OPEN_FILES} --pid $$"))
}

fn processes(machine: &Machine) -> Finding {
    let Some(room) = machine.room_for_processes else {
        return Finding::ok("processes", "no control group limits them".to_owned());
    };
    let fact = format!("the control group has room for {room} more processes and threads");
    if room >= ENOUGH_PROCESSES {
        return Finding::ok("processes", fact);
    }
    Finding::warning("processes", fact, "raise that limit (docker: --pids-limit, systemd: TasksMax)")
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        })
    }
}

/// One line for the fact and, if there is a fix, one for the fix.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<8} {:<16} {}", self.verdict, self.topic, self.fact)?;
        match &self.fix {
            Some(fix) => write!(out, "\n{:<25} -> {fix}", ""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::super::gpu::Gpus;
    use super::*;

    /// A machine on which nothing is amiss, whatever this one is like.
    fn sound_machine() -> Machine {
        let root = fixture::root(&[
            ("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n"),
            ("proc/self/mountinfo", "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw,huge=advise\n"),
        ]);
        let mut machine = Machine::detect_under(root.path());
        (machine.cores.usable, machine.cores.quota) = (vec![0, 1, 2, 3], None);
        machine.shared_memory = Some(SharedMemory { total_bytes: 8 << 30, free_bytes: 8 << 30 });
        machine.software.libtorch =
            super::super::Libtorch { is_linked: true, folder: Some("/torch".into()), version: Some("2.13.0".into()), has_cuda: false };
        machine.software.most_open_files = 4_096;
        (machine.software.kernel, machine.software.pidfd_error) = ("6.1.0".into(), None);
        machine
    }

    /// GPUs that programs can reach.
    fn gpus(driver: &str, names: &[&str]) -> Gpus {
        Gpus { has_driver: true, driver: Some(driver.into()), names: names.iter().map(|&name| name.into()).collect() }
    }

    /// The one finding that is not ok after `damage`.
    fn finding_after(damage: impl FnOnce(&mut Machine)) -> Finding {
        let mut machine = sound_machine();
        damage(&mut machine);
        let mut amiss: Vec<Finding> =
            report(&machine, &PythonSurvey::sound()).into_iter().filter(|finding| finding.verdict != Severity::Ok).collect();
        assert_eq!(amiss.len(), 1, "{amiss:#?}");
        amiss.remove(0)
    }

    #[test]
    fn nothing_is_amiss_on_a_sound_machine() {
        assert!(
            report(&sound_machine(), &PythonSurvey::sound()).iter().all(|finding| finding.verdict == Severity::Ok && finding.fix.is_none())
        );
    }

    #[test]
    fn every_defect_is_found_alone_and_comes_with_a_fix() {
        type Damage = fn(&mut Machine);
        let defects: [(&str, Severity, Damage); 13] = [
            ("kernel", Severity::Problem, |machine| machine.software.kernel = "4.19.0".into()),
            ("kernel", Severity::Problem, |machine| machine.software.pidfd_error = Some("Operation not permitted".into())),
            ("cores", Severity::Warning, |machine| machine.cores.usable = vec![0]),
            ("cores", Severity::Warning, |machine| machine.cores.quota = Some(1.5)),
            ("memory", Severity::Warning, |machine| machine.memory.as_mut().unwrap().available_bytes = 1 << 30),
            ("memory", Severity::Warning, |machine| machine.memory = None),
            ("control group", Severity::Warning, |machine| machine.is_killed_as_one = true),
            ("shared memory", Severity::Warning, |machine| machine.shared_memory.as_mut().unwrap().free_bytes = 64 << 20),
            ("huge pages", Severity::Warning, |machine| machine.huge_pages = HugePages::Never),
            ("gpu", Severity::Warning, |machine| machine.gpus.names = vec!["NVIDIA H200".into()]),
            ("libtorch", Severity::Warning, |machine| machine.software.libtorch.is_linked = false),
            ("open files", Severity::Warning, |machine| machine.software.most_open_files = 256),
            ("processes", Severity::Warning, |machine| machine.room_for_processes = Some(12)),
        ];
        for (topic, verdict, damage) in defects {
            let finding = finding_after(damage);
            assert_eq!((finding.topic, finding.verdict), (topic, verdict));
            assert!(finding.fix.is_some(), "{topic} has no fix");
        }
    }

    #[test]
    fn a_gpu_that_libtorch_cannot_use_is_pointed_out() {
        let finding = finding_after(|machine| machine.gpus = gpus("580.95.05", &["NVIDIA H200"]));
        assert_eq!(finding.topic, "libtorch");
        assert!(finding.fact.contains("does not load"), "{finding}");
    }

    #[test]
    fn a_driver_that_is_too_old_for_libtorch_is_pointed_out_with_the_oldest_that_is_not() {
        let with_driver = |version: &'static str| {
            move |machine: &mut Machine| {
                machine.gpus = gpus(version, &["NVIDIA H200"]);
                machine.software.libtorch.has_cuda = true;
            }
        };
        let finding = finding_after(with_driver("535.129.03"));
        assert_eq!((finding.topic, finding.verdict), ("gpu", Severity::Warning));
        assert!(finding.to_string().contains("535.129.03") && finding.to_string().contains("580 or newer"), "{finding}");
        let mut machine = sound_machine();
        with_driver("580.159.04")(&mut machine);
        assert_eq!(gpu(&machine), Finding::ok("gpu", "NVIDIA H200; driver 580.159.04".to_owned()));
    }

    #[test]
    fn gpus_of_several_kinds_are_listed_with_how_cuda_numbers_them() {
        let mut machine = sound_machine();
        for (names, is_told) in [(["NVIDIA T4", "NVIDIA H200"], true), (["NVIDIA H200"; 2], false)] {
            machine.gpus = gpus("580.95.05", &names);
            assert_eq!(gpu(&machine).fact.contains("CUDA_DEVICE_ORDER"), is_told, "{names:?}");
        }
    }

    #[test]
    fn a_machine_without_shared_memory_cannot_run() {
        let mut machine = sound_machine();
        machine.shared_memory = None;
        let mut problems = report(&machine, &PythonSurvey::sound());
        problems.retain(|finding| finding.verdict == Severity::Problem);
        let topics: Vec<&str> = problems.iter().map(|finding| finding.topic).collect();
        assert_eq!(topics, ["shared memory", "largest segment"]);
        for Finding { fix, .. } in problems {
            // What is not there cannot be mounted with another size.
            assert!(fix.as_ref().is_some_and(|fix| fix.contains("mkdir -p /dev/shm") && !fix.contains("remount")), "{fix:?}");
        }
    }

    #[test]
    fn shared_memory_without_a_limit_is_limited_by_the_machine_alone() {
        let mut machine = sound_machine();
        (machine.shared_memory, machine.software.largest_file_bytes) = (Some(SharedMemory::UNLIMITED), u64::MAX);
        assert_eq!(shared_memory(&machine), Finding::ok("shared memory", "/dev/shm has no limit of its own".to_owned()));
        assert_eq!(Budget::of(&machine), Budget { bytes: 16 << 30, limit: Limit::AvailableMemory });
    }

    #[test]
    fn shared_memory_that_others_have_filled_is_to_grow_by_what_they_use() {
        let finding = finding_after(|machine| {
            machine.shared_memory = Some(SharedMemory { total_bytes: 12 << 30, free_bytes: 1 << 30 });
        });
        let fix = "mount -o remount,size=19G /dev/shm (docker: --shm-size=19g; Kubernetes: an emptyDir of medium Memory at /dev/shm)";
        assert_eq!(finding.fix.as_deref(), Some(fix), "11 used and 8 more");
    }

    #[test]
    fn a_finding_is_one_line_and_its_fix_another() {
        let finding = finding_after(|machine| machine.software.most_open_files = 256);
        assert_eq!(
            finding.to_string(),
            "warning  open files       a run may open 256 files\n                          -> as root: prlimit --nofile=1024:1024 --pid $$"
        );
        assert_eq!(
            serde_json::to_string(&finding).unwrap(),
            r#"{"topic":"open files","verdict":"warning","fact":"a run may open 256 files","fix":"as root: prlimit --nofile=1024:1024 --pid $$"}"#
        );
    }
}
