//! The cores that this process may use, and how they lie on physical cores and NUMA nodes.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::Serialize;

use super::{cgroup, text_of};

/// The kernel's number for what the fastest core of a machine computes.
const FULL_CAPACITY: u32 = 1_024;

/// Processor cores. A "core" without further word is a logical one: what the kernel schedules on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cores {
    /// The processor's name.
    pub model: String,
    /// Numbers of the cores that this process may use.
    pub usable: Vec<usize>,
    /// The cores that the control group's share of processor time makes up, if those are fewer than `usable`.
    pub quota: Option<f64>,
    /// The usable cores in the order in which to hand them out: first one of every physical core, then their siblings,
    /// in both halves the fastest first. None where the affinity mask cannot be read, since nobody can be bound then.
    pub by_preference: Vec<usize>,
    /// Physical cores among the usable ones.
    pub physical: usize,
    /// Each NUMA node with usable cores: its number and those cores.
    pub numa_nodes: Vec<(usize, Vec<usize>)>,
}

impl Cores {
    /// Reads the affinity mask of this process and the topology below `root`.
    pub fn detect_under(root: &Path) -> Self {
        let cores = Self::on(root, affinity_mask());
        let quota = cgroup::core_quota(root).filter(|&quota| quota < cores.usable.len() as f64);
        Self { quota, ..cores }
    }

    /// The topology below `root`, seen by a process with this affinity mask.
    fn on(root: &Path, mask: Vec<usize>) -> Self {
        let can_be_bound = !mask.is_empty();
        let usable = allowed_cores(root, mask);
        let mut seen = BTreeSet::new();
        let (mut first_of_core, mut siblings): (Vec<usize>, Vec<usize>) =
            usable.iter().partition(|&&core| seen.insert(physical_core(root, core)));
        for half in [&mut first_of_core, &mut siblings] {
            half.sort_by_cached_key(|&core| Reverse(speed(root, core)));
        }
        let physical = first_of_core.len();
        let by_preference = first_of_core.into_iter().chain(siblings).filter(|_| can_be_bound).collect();
        let numa_nodes = numa_nodes(root, &usable);
        Self { model: model(&text_of(root, "proc/cpuinfo")), physical, by_preference, numa_nodes, usable, quota: None }
    }
}

/// How many cores this process may use now, by its affinity mask and by its control group's share of processor time,
/// rounded down to whole ones. Both may have changed since the process began.
pub fn usable_now() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What `now` finds of the cores that this process may use; `before` if it can open no more files for the moment, so that
/// nobody knows what its control groups, of which the kernel tells below `root`, leave it.
pub fn unless_unknown<T>(root: &Path, before: T, now: impl FnOnce() -> T) -> T {
    let groups = root.join("proc/self/cgroup");
    // A kernel without control groups has no such file.
    if groups.exists() && File::open(groups).is_err() { before } else { now() }
}

/// The time of how many cores this process may use now: [`usable_now`] without rounding.
pub fn time_now() -> f64 {
    let root = Path::new("/");
    let cores = allowed_cores(root, affinity_mask()).len() as f64;
    cgroup::core_quota(root).map_or(cores, |quota| quota.min(cores))
}

/// The numbers of the cores that the kernel lets this process run on, in ascending order; none if the machine may have
/// more than the 1,024 cores that a mask has room for.
pub fn affinity_mask() -> Vec<usize> {
    let mask = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&core| mask.is_set(core).unwrap_or(false)).collect()
}

/// The cores of an affinity mask or, where it could not be read, of a text of the kernel, which has room for any.
fn allowed_cores(root: &Path, mask: Vec<usize>) -> Vec<usize> {
    if !mask.is_empty() {
        return mask;
    }
    cores_of(root, "self").unwrap_or_default()
}

/// The cores that the kernel lets a process run on, by its number or "self"; `None` where it does not say.
pub(super) fn cores_of(root: &Path, process: &str) -> Option<Vec<usize>> {
    let status = text_of(root, &format!("proc/{process}/status"));
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(parse_core_list)
}

/// The siblings that share `core`'s physical core, as the kernel lists them; the core alone if the kernel lists none.
fn physical_core(root: &Path, core: usize) -> Vec<usize> {
    let folder = format!("sys/devices/system/cpu/cpu{core}/topology");
    let newer = text_of(root, &format!("{folder}/core_cpus_list"));
    let list = if newer.is_empty() { text_of(root, &format!("{folder}/thread_siblings_list")) } else { newer };
    let siblings = parse_core_list(&list);
    if siblings.is_empty() { vec![core] } else { siblings }
}

/// How much the core computes, in eighths of the fastest one, rounded up: less than that tells no kinds of cores apart.
/// A kernel that does not say it has cores of one kind.
fn speed(root: &Path, core: usize) -> u32 {
    let capacity = text_of(root, &format!("sys/devices/system/cpu/cpu{core}/cpu_capacity")).trim().parse::<u32>();
    capacity.unwrap_or(FULL_CAPACITY).div_ceil(FULL_CAPACITY / 8)
}

fn numa_nodes(root: &Path, usable: &[usize]) -> Vec<(usize, Vec<usize>)> {
    let nodes = parse_core_list(&text_of(root, "sys/devices/system/node/online")).into_iter();
    nodes
        .map(|node| {
            let cores = parse_core_list(&text_of(root, &format!("sys/devices/system/node/node{node}/cpulist")));
            (node, cores.into_iter().filter(|core| usable.contains(core)).collect::<Vec<_>>())
        })
        .filter(|(_, cores)| !cores.is_empty())
        .collect()
}

/// The processor's name in `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Numbers in the kernel's list format: `0-3,8` is 0, 1, 2, 3, 8. Malformed parts are left out.
fn parse_core_list(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

/// Numbers of cores for people, in ascending order, in the kernel's list format: `0-3,8`.
pub fn core_list(cores: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &core in &cores.iter().copied().collect::<BTreeSet<_>>() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let written = ranges.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::fixture;
    use super::*;

    #[test]
    fn core_lists_are_ranges_and_single_numbers() {
        assert_eq!(parse_core_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_core_list(""), [0usize; 0]);
        assert_eq!(parse_core_list("x,2"), [2]);
        assert_eq!(core_list(&[11, 0, 1, 10, 2, 3, 8]), "0-3,8,10-11");
        assert_eq!(core_list(&[]), "");
    }

    #[test]
    fn as_long_as_the_control_groups_cannot_be_read_the_cores_are_those_of_before() {
        let root = fixture::root(&[("proc/self/status", "")]);
        assert_eq!(unless_unknown(root.path(), usize::MAX, usable_now), usable_now(), "there are no control groups");
        // Nobody can open it as a file.
        let _socket = UnixListener::bind(root.path().join("proc/self/cgroup")).unwrap();
        assert_eq!(unless_unknown(root.path(), usize::MAX, usable_now), usize::MAX);
    }

    #[test]
    fn siblings_of_a_physical_core_are_handed_out_last() {
        let topology: Vec<(String, &str)> = ["0,2", "1,3", "0,2", "1,3"]
            .iter()
            .enumerate()
            .map(|(core, siblings)| (format!("sys/devices/system/cpu/cpu{core}/topology/core_cpus_list"), *siblings))
            .collect();
        let files: Vec<(&str, &str)> = topology.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let root = fixture::root(&files);
        let cores = Cores::on(root.path(), vec![0, 1, 2, 3]);
        assert_eq!((cores.physical, cores.by_preference), (2, vec![0, 1, 2, 3]));
        let cores = Cores::on(root.path(), vec![0, 2, 3]);
        assert_eq!((cores.physical, cores.by_preference), (2, vec![0, 3, 2]));
    }

    #[test]
    fn the_fastest_cores_are_handed_out_first_and_those_of_one_kind_by_their_numbers() {
        // Two slow cores, two fast ones, of which one is a little faster, and one of a kind in between.
        let capacities: Vec<(String, &str)> = ["380\n", "380\n", "997\n", "1024\n", "718\n"]
            .iter()
            .enumerate()
            .map(|(core, capacity)| (format!("sys/devices/system/cpu/cpu{core}/cpu_capacity"), *capacity))
            .collect();
        let files: Vec<(&str, &str)> = capacities.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let root = fixture::root(&files);
        assert_eq!(Cores::on(root.path(), vec![0, 1, 2, 3, 4]).by_preference, [2, 3, 4, 0, 1]);
        assert_eq!(Cores::on(root.path(), vec![0, 1]).by_preference, [0, 1]);
    }

    #[test]
    fn without_topology_every_core_counts_as_physical() {
        let root = fixture::root(&[]);
        let cores = Cores::on(root.path(), vec![4, 5]);
        assert_eq!((cores.physical, cores.by_preference), (2, vec![4, 5]));
        assert_eq!(cores.model, "unknown");
    }

    #[test]
    fn cores_that_no_affinity_mask_holds_are_counted_and_not_handed_out() {
        let root = fixture::root(&[("proc/self/status", "Name:\tsupervisor\nCpus_allowed_list:\t0-1499\n")]);
        let cores = Cores::on(root.path(), Vec::new());
        assert_eq!((cores.usable.len(), cores.physical, cores.by_preference), (1_500, 1_500, Vec::new()));
    }

    #[test]
    fn numa_nodes_hold_only_usable_cores() {
        let root = fixture::root(&[
            ("sys/devices/system/node/online", "0-1\n"),
            ("sys/devices/system/node/node0/cpulist", "0-1\n"),
            ("sys/devices/system/node/node1/cpulist", "2-3\n"),
        ]);
        assert_eq!(Cores::on(root.path(), vec![1, 2, 3]).numa_nodes, [(0, vec![1]), (1, vec![2, 3])]);
        assert_eq!(Cores::on(root.path(), vec![0]).numa_nodes, [(0, vec![0])]);
    }

    #[test]
    fn the_model_is_the_name_of_the_first_processor() {
        assert_eq!(model("processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel name\t: other\n"), "AMD EPYC 9654");
    }
}
