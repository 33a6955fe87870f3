//! The limits that control groups put on this process: those of a container, a job scheduler or systemd.
//!
//! A group's limit binds all groups below it, so the walk goes from this process's own group up to the mount point
//! and keeps the tightest level. Version 2 (`memory.max`, and `memory.high`, beyond which processes are slowed until
//! they hardly move) and version 1 (`memory.limit_in_bytes`) are read alike; a machine may mount both.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::text_of;

/// The memory limit of one control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryLimit {
    /// The file that has the limit, in the folder of the group.
    pub file: PathBuf,
    /// Most memory that the group may use without being slowed or killed.
    pub limit_bytes: u64,
    /// Memory that the group uses and cannot give back: its usage without the pages of files, which the kernel drops
    /// when memory is short.
    pub used_bytes: u64,
}

impl MemoryLimit {
    /// Memory that the group may still allocate.
    pub fn headroom_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

/// The names of the files in one version, and of the keys in `memory.stat`. What lies in shared memory is counted by
/// neither of these keys.
struct Names {
    limits: &'static [&'static str],
    usage: &'static str,
    file_pages: [&'static str; 2],
}

const VERSION_1: Names =
    Names { limits: &["memory.limit_in_bytes"], usage: "memory.usage_in_bytes", file_pages: ["total_inactive_file", "total_active_file"] };
const VERSION_2: Names =
    Names { limits: &["memory.max", "memory.high"], usage: "memory.current", file_pages: ["inactive_file", "active_file"] };

/// Version 1 spells "no limit" as the largest multiple of the page size; no machine has this much.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The memory limit with the least headroom on the way from this process's groups to the top; `None` if nothing is
/// limited.
pub fn detect_under(root: &Path) -> Option<MemoryLimit> {
    groups(root, "memory").iter().filter_map(Group::memory_limit).min_by_key(MemoryLimit::headroom_bytes)
}

/// The time of how many cores this process's groups leave it, which may be a part of one; `None` if nothing is limited.
pub fn core_quota(root: &Path) -> Option<f64> {
    groups(root, "cpu").iter().filter_map(Group::core_quota).min_by(f64::total_cmp)
}

/// How many processes and threads this process's groups have room for beside those that are there; `None` if nothing
/// is limited.
pub fn room_for_processes(root: &Path) -> Option<u64> {
    groups(root, "pids").iter().filter_map(Group::room_for_processes).min()
}

/// Whether the kernel kills all processes of a group that this process is in, or below one, when memory runs out. That
/// is so for containers of Kubernetes by default.
pub fn is_killed_as_one(root: &Path) -> bool {
    groups(root, "memory").iter().any(|group| group.number("memory.oom.group") == Some(1))
}

/// A group that this process is in.
struct Group {
    is_version_2: bool,
    /// Its folder.
    folder: PathBuf,
    /// Where the folder is found below a root.
    found_at: PathBuf,
}

/// The groups whose limits bind this process where `controller` counts: its own ones and all above them.
fn groups(root: &Path, controller: &str) -> Vec<Group> {
    let own = text_of(root, "proc/self/cgroup");
    let mounts = text_of(root, "proc/self/mountinfo");
    let groups_of = |mount: Mount| {
        let folder = own_group(&own, mount.is_version_2, controller).map(|group| mount.folder_of(group));
        folder.map_or_else(Vec::new, |folder| mount.groups_from(root, &folder))
    };
    mounts.lines().filter_map(|line| Mount::parse(line, controller)).flat_map(groups_of).collect()
}

/// A mounted hierarchy of control groups.
struct Mount {
    is_version_2: bool,
    /// The group that is visible at the mount point; not `/` inside many containers.
    top_group: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Reads a line of `/proc/self/mountinfo`:
    /// `id parent major:minor root point options [fields] - type source super_options`.
    /// `None` if `controller` does not limit anything there.
    fn parse(line: &str, controller: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut mounted = left.split(' ').skip(3);
        let (top_group, point) = (PathBuf::from(mounted.next()?), PathBuf::from(mounted.next()?));
        let mut kind = right.split(' ');
        let (file_system, super_options) = (kind.next()?, kind.nth(1)?);
        let is_version_2 = file_system == "cgroup2";
        let is_limiting = file_system == "cgroup" && super_options.split(',').any(|option| option == controller);
        (is_version_2 || is_limiting).then_some(Self { is_version_2, top_group, point })
    }

    /// The folder of `group`, or the mount point if the group is not visible below it.
    fn folder_of(&self, group: &Path) -> PathBuf {
        match group.strip_prefix(&self.top_group) {
            Ok(below) if !below.as_os_str().is_empty() => self.point.join(below),
            _ => self.point.clone(),
        }
    }

    /// The group at `folder` and every group above it, down to and with the one at the mount point.
    fn groups_from(&self, root: &Path, folder: &Path) -> Vec<Group> {
        let group = |folder: &Path| Group {
            is_version_2: self.is_version_2,
            folder: folder.to_path_buf(),
            found_at: root.join(folder.strip_prefix("/").unwrap_or(folder)),
        };
        folder.ancestors().take_while(|level| level.starts_with(&self.point)).map(group).collect()
    }
}

/// This process's group in the hierarchy, from `/proc/self/cgroup`: lines `number:controllers:/path`, with number 0
/// for version 2.
fn own_group<'a>(groups: &'a str, is_version_2: bool, controller: &str) -> Option<&'a Path> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_ours =
            if is_version_2 { number == "0" && controllers.is_empty() } else { controllers.split(',').any(|name| name == controller) };
        is_ours.then_some(Path::new(path))
    })
}

impl Group {
    fn text(&self, name: &str) -> String {
        text_of(&self.found_at, name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name).trim().parse().ok()
    }

    /// The group's own limit of memory.
    fn memory_limit(&self) -> Option<MemoryLimit> {
        let names = if self.is_version_2 { &VERSION_2 } else { &VERSION_1 };
        let limits = names.limits.iter().filter_map(|name| Some((self.number(name)?, name)));
        let (limit_bytes, name) = limits.min().filter(|(bytes, _)| *bytes < UNLIMITED_BYTES)?;
        let file_bytes: u64 = self
            .text("memory.stat")
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| names.file_pages.contains(name))
            .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
            .sum();
        let used_bytes = self.number(names.usage).unwrap_or(0).saturating_sub(file_bytes);
        Some(MemoryLimit { file: self.folder.join(name), limit_bytes, used_bytes })
    }

    /// How many processes and threads the group's own limit allows beside those that are there.
    fn room_for_processes(&self) -> Option<u64> {
        Some(self.number("pids.max")?.saturating_sub(self.number("pids.current")?))
    }

    /// The group's own limit of processor time: so many microseconds of each period. The word `max` and -1 are none.
    fn core_quota(&self) -> Option<f64> {
        let text = if self.is_version_2 { self.text("cpu.max") } else { self.text("cpu.cfs_quota_us") + &self.text("cpu.cfs_period_us") };
        let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse::<f64>().ok());
        let (quota_us, period_us) = (numbers.next()?, numbers.next()?);
        (quota_us > 0.0).then(|| quota_us / period_us)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, fixture};
    use super::*;

    const VERSION_2_MOUNT: &str = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn detected(files: &[(&str, &str)]) -> Option<(String, u64, u64)> {
        let root = fixture::root(files);
        detect_under(root.path()).map(|limit| (limit.file.display().to_string(), limit.limit_bytes, limit.used_bytes))
    }

    #[test]
    fn the_tightest_level_of_version_2_wins_and_pages_of_files_do_not_count() {
        let found = detected(&[
            ("proc/self/cgroup", "0::/jobs/one\n"),
            ("proc/self/mountinfo", VERSION_2_MOUNT),
            ("sys/fs/cgroup/jobs/one/memory.max", "8000\n"),
            ("sys/fs/cgroup/jobs/one/memory.current", "1000\n"),
            ("sys/fs/cgroup/jobs/memory.max", "6000\n"),
            ("sys/fs/cgroup/jobs/memory.current", "5000\n"),
            ("sys/fs/cgroup/jobs/memory.stat", "file 3500\ninactive_file_other 7\ninactive_file 2000\nactive_file 600\n"),
        ]);
        assert_eq!(found, Some(("/sys/fs/cgroup/jobs/memory.max".into(), 6000, 2400)));
    }

    #[test]
    fn the_word_max_is_no_limit() {
        let files = [
            ("proc/self/cgroup", "0::/jobs\n"),
            ("proc/self/mountinfo", VERSION_2_MOUNT),
            ("sys/fs/cgroup/jobs/memory.max", "max\n"),
            ("sys/fs/cgroup/jobs/memory.current", "1000\n"),
        ];
        assert_eq!(detected(&files), None);
    }

    #[test]
    fn a_group_that_is_slowed_before_its_limit_has_the_memory_up_to_there() {
        for (most, slowed_from, limit_bytes, name) in
            [("8000", "5000", 5000, "memory.high"), ("4000", "max", 4000, "memory.max"), ("max", "7000", 7000, "memory.high")]
        {
            let found = detected(&[
                ("proc/self/cgroup", "0::/jobs\n"),
                ("proc/self/mountinfo", VERSION_2_MOUNT),
                ("sys/fs/cgroup/jobs/memory.max", most),
                ("sys/fs/cgroup/jobs/memory.high", slowed_from),
            ]);
            assert_eq!(found, Some((format!("/sys/fs/cgroup/jobs/{name}"), limit_bytes, 0)), "{most}, slowed from {slowed_from}");
        }
    }

    #[test]
    fn version_1_is_found_below_the_group_that_a_container_shows_at_its_mount_point() {
        let found = detected(&[
            ("proc/self/cgroup", "4:cpu,memory:/docker/abc\n0::/\n"),
            ("proc/self/mountinfo", "34 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,cpu,memory\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1024\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\nactive_file 2\ntotal_inactive_file 24\ntotal_active_file 100\n"),
        ]);
        assert_eq!(found, Some(("/sys/fs/cgroup/memory/memory.limit_in_bytes".into(), 4096, 900)));
    }

    #[test]
    fn the_largest_number_of_version_1_is_no_limit() {
        let files = [
            ("proc/self/cgroup", "4:memory:/\n"),
            ("proc/self/mountinfo", "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1024\n"),
        ];
        assert_eq!(detected(&files), None);
    }

    #[test]
    fn a_hybrid_machine_is_limited_by_the_hierarchy_that_has_the_memory_controller() {
        let found = detected(&[
            ("proc/self/cgroup", "4:memory:/jobs\n1:cpu:/\n0::/\n"),
            (
                "proc/self/mountinfo",
                "33 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 34 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "6000\n"),
        ]);
        assert_eq!(found, Some(("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes".into(), 5000, 6000)));
    }

    #[test]
    fn a_group_is_killed_as_one_with_all_groups_below_it() {
        let killed = |own: &str, above: &str| {
            let root = fixture::root(&[
                ("proc/self/cgroup", "0::/jobs/one\n"),
                ("proc/self/mountinfo", VERSION_2_MOUNT),
                ("sys/fs/cgroup/jobs/one/memory.oom.group", own),
                ("sys/fs/cgroup/jobs/memory.oom.group", above),
            ]);
            Machine::detect_under(root.path()).is_killed_as_one
        };
        assert_eq!([killed("0\n", "0\n"), killed("1\n", "0\n"), killed("0\n", "1\n")], [false, true, true]);
        assert!(!is_killed_as_one(fixture::root(&[]).path()));
    }

    #[test]
    fn the_least_processor_time_of_version_2_counts_and_may_be_a_part_of_a_core() {
        let quota = |own: &str, above: &str| {
            let root = fixture::root(&[
                ("proc/self/cgroup", "0::/jobs/one\n"),
                ("proc/self/mountinfo", VERSION_2_MOUNT),
                ("sys/fs/cgroup/jobs/one/cpu.max", own),
                ("sys/fs/cgroup/jobs/cpu.max", above),
            ]);
            core_quota(root.path())
        };
        assert_eq!(quota("max 100000\n", "150000 100000\n"), Some(1.5));
        assert_eq!(quota("50000 100000\n", "150000 100000\n"), Some(0.5));
        assert_eq!(quota("max 100000\n", "max 100000\n"), None);
    }

    #[test]
    fn the_level_with_the_least_room_limits_the_processes() {
        let root = fixture::root(&[
            ("proc/self/cgroup", "0::/jobs/one\n"),
            ("proc/self/mountinfo", VERSION_2_MOUNT),
            ("sys/fs/cgroup/jobs/one/pids.max", "max\n"),
            ("sys/fs/cgroup/jobs/one/pids.current", "3\n"),
            ("sys/fs/cgroup/jobs/pids.max", "20\n"),
            ("sys/fs/cgroup/jobs/pids.current", "14\n"),
        ]);
        assert_eq!(room_for_processes(root.path()), Some(6));
        assert_eq!(room_for_processes(fixture::root(&[]).path()), None);
    }

    #[test]
    fn version_1_has_the_quota_and_its_period_in_two_files() {
        let quota = |microseconds: &str| {
            let root = fixture::root(&[
                ("proc/self/cgroup", "5:memory:/\n4:cpu,cpuacct:/docker/abc\n"),
                ("proc/self/mountinfo", "34 31 0:31 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", microseconds),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ]);
            core_quota(root.path())
        };
        assert_eq!((quota("250000\n"), quota("-1\n")), (Some(2.5), None));
    }

    #[test]
    fn a_group_over_its_limit_has_no_headroom() {
        let limit = MemoryLimit { file: "/memory.max".into(), limit_bytes: 5000, used_bytes: 6000 };
        assert_eq!(limit.headroom_bytes(), 0);
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        assert_eq!((detected(&[]), core_quota(fixture::root(&[]).path())), (None, None));
    }
}
