//! Who a segment belongs to: the names of its object, and the process, the boot and the namespaces that made it.

use std::io::ErrorKind;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::SegmentError;
use super::pidfd::{Pidfd, start_time};

/// In place of the kernel's name of the boot, if that cannot be read.
const UNKNOWN_BOOT: u128 = 0;

/// What identifies a segment: a random name, the process that made or adopted it, and the boot and namespaces of that
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random name of the run.
    pub run_id: u128,
    /// The kernel's name for this boot of the machine.
    pub boot_id: u128,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// Start time of the supervisor in clock ticks since boot. Process id and start time together are never reused.
    pub supervisor_start_time: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// The PID namespace in which the processes of the run name each other, by the number that `/proc/PID/ns/pid`
    /// shows; 0 if that is not known.
    pub pid_namespace: u64,
    /// The time namespace in which the processes of the run read each other's start times, by the number that
    /// `/proc/PID/ns/time` shows; 0 if the kernel has none.
    pub time_namespace: u64,
}

impl Identity {
    pub(crate) fn of_this_process() -> Self {
        let supervisor_pid = std::process::id();
        Self {
            run_id: uuid::Uuid::new_v4().as_u128(),
            boot_id: boot_id(),
            supervisor_pid,
            supervisor_start_time: start_time(supervisor_pid).unwrap_or(0),
            created_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
            pid_namespace: pid_namespace().unwrap_or(0),
            time_namespace: time_namespace(),
        }
    }

    /// An error unless the kernel can be asked whether the processes of this namespace live, and tells of their end.
    pub(crate) fn check_that_processes_are_known(&self) -> Result<(), SegmentError> {
        if self.pid_namespace == 0 {
            // Asked again, for the reason.
            return Err(pid_namespace().err().unwrap_or(SegmentError::UnknownProcesses));
        }
        match Pidfd::open(std::process::id()) {
            Err(error @ (Errno::PERM | Errno::NOSYS)) => Err(SegmentError::NoPidfd { source: error.into() }),
            // Another error, such as too many open files, may pass.
            _ => Ok(()),
        }
    }

    /// An error unless process ids and start times mean the same processes in the segment called `name` and here.
    pub(crate) fn check_that_processes_mean_the_same(&self, name: &str) -> Result<(), SegmentError> {
        let own = pid_namespace()?;
        let found = self.pid_namespace;
        if own != found {
            return Err(SegmentError::OtherPidNamespace { name: name.into(), found, own });
        }
        let own = time_namespace();
        let found = self.time_namespace;
        if own != found { Err(SegmentError::OtherTimeNamespace { name: name.into(), found, own }) } else { Ok(()) }
    }

    /// Whether the machine has not been restarted since the segment was made: after a restart process ids mean
    /// nothing. In doubt it has not.
    pub fn is_of_this_boot(&self) -> bool {
        [self.boot_id, UNKNOWN_BOOT].contains(&boot_id())
    }

    /// Whether process ids and start times mean the same processes in that run and here.
    pub fn is_of_these_namespaces(&self) -> bool {
        self.check_that_processes_mean_the_same("").is_ok()
    }

    /// Name of the shared-memory object: it tells Shoal, the user and the supervisor, and cannot be guessed.
    pub fn segment_name(&self) -> String {
        format!("{}{}-{:032x}", segment_name_prefix(), self.supervisor_pid, self.run_id)
    }

    /// Name of the shared-memory object of a replay that belongs to no run.
    pub(super) fn replay_name(&self) -> String {
        format!("{}{}-{:032x}", replay_name_prefix(), self.supervisor_pid, self.run_id)
    }
}

/// How the names of this user's segments of runs begin.
pub fn segment_name_prefix() -> String {
    format!("/shoal-{}-", nix::unistd::getuid())
}

/// How the names of replays that belong to no run begin.
pub(super) const REPLAY_NAMES: &str = "/shoal-replay-";

/// How the names of this user's replays that belong to no run begin.
pub fn replay_name_prefix() -> String {
    format!("{REPLAY_NAMES}{}-", nix::unistd::getuid())
}

/// The kernel's name for this boot of the machine; `None` if it cannot be read.
pub fn boot_name() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

fn boot_id() -> u128 {
    boot_name().and_then(|name| uuid::Uuid::parse_str(&name).ok()).map_or(UNKNOWN_BOOT, |id| id.as_u128())
}

/// The PID namespace of this process, if `/proc` shows its processes. A `/proc` that was mounted in another namespace
/// knows other processes by the same ids, so that living ones would be taken for dead.
fn pid_namespace() -> Result<u64, SegmentError> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|source| match source.kind() {
        ErrorKind::NotFound => SegmentError::UnknownProcesses,
        _ => SegmentError::System { action: "reading /proc/self/status", source },
    })?;
    // The ids of this process, from the namespace of the mount inwards: a single id if that namespace is its own.
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let is_own = ids.is_some_and(|ids| ids.split_ascii_whitespace().count() == 1);
    namespace("pid").filter(|_| is_own).ok_or(SegmentError::UnknownProcesses)
}

/// The time namespace of this process, by whose clock the kernel tells when other processes started; 0 if the kernel
/// has none.
fn time_namespace() -> u64 {
    namespace("time").unwrap_or(0)
}

/// The number of this process's namespace of a kind.
fn namespace(kind: &str) -> Option<u64> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}
