//! What tests do to the processes of a run, and what they find of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use shoal::segment::Segment;
use shoal::segment::processes::{ProcessSlot, Role};
use shoal::segment::system::STOP_SIGNALS;
use shoal::sync::Ordering;

use super::{PAUSE, Supervised, Watchdog};

/// How many updates a run has made.
pub fn updates(segment: &Segment) -> u64 {
    segment.control().updates().load(Ordering::Relaxed)
}

/// Numbers and process ids of those who play `role`.
pub fn living(segment: &Segment, role: &str) -> Vec<(usize, u32)> {
    let found = segment.processes().living().filter_map(|slot| slot.role().map(|(found, number)| (found, number, slot.pid())));
    found.filter(|(found, ..)| found.name() == role).map(|(_, number, pid)| (number, pid)).collect()
}

/// Learner `number` of a run, alive or not.
pub fn learner(segment: &Segment, number: usize) -> ProcessSlot<'_> {
    process_slot(segment, Role::Learner, number)
}

/// The slot of whoever plays `role` as number `number`, alive or not.
pub fn process_slot(segment: &Segment, role: Role, number: usize) -> ProcessSlot<'_> {
    segment.processes().iter().find(|slot| slot.role() == Some((role, number))).expect("a slot for each process")
}

#[track_caller]
fn pid_of(pid: u32) -> nix::unistd::Pid {
    assert_ne!(pid, 0, "the slot is nobody's, and the signal would be for all of this test's process group");
    nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap())
}

/// Send a signal to a process that may have ended; returns whether it was there.
#[track_caller]
pub fn try_kill(pid: u32, signal: Signal) -> bool {
    nix::sys::signal::kill(pid_of(pid), signal).is_ok()
}

/// Let the supervisor open no more than `limit` files, whatever it has open; returns the limit before.
pub fn limit_files(run: &Supervised, limit: Rlimit) -> Rlimit {
    prlimit(Pid::from_raw(run.pid().cast_signed()), Resource::Nofile, limit).unwrap()
}

/// Fewer files than a supervisor has open.
pub fn too_few_files() -> Rlimit {
    Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) }
}

/// The signals that end a program. Without those that the tests were started to ignore, as `nohup` has them ignore SIGHUP: the programs
/// that they start ignore them as well.
pub fn stop_signals() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    let is_heeded = |signal: &Signal| matches!(signal, Signal::SIGINT | Signal::SIGTERM) || ignored & (1 << (*signal as i32 - 1)) == 0;
    STOP_SIGNALS.into_iter().filter(is_heeded).collect()
}

/// Send a signal to a process.
#[track_caller]
pub fn kill(pid: u32, signal: Signal) {
    nix::sys::signal::kill(pid_of(pid), signal).unwrap();
}

/// Let a process run on one core alone, as `taskset` does.
pub fn confine(pid: u32, core: usize) {
    let mut mask = nix::sched::CpuSet::new();
    mask.set(core).unwrap();
    nix::sched::sched_setaffinity(pid_of(pid), &mask).unwrap();
}

/// Stop a process, and wait until it stands still.
#[track_caller]
pub fn stop(pid: u32) {
    kill(pid, Signal::SIGSTOP);
    let watchdog = Watchdog::new(format!("process {pid} to stand still"));
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        if stat[stat.rfind(')').unwrap()..].starts_with(") T") {
            return;
        }
        // Without a longer pause: some tests lead a process to a moment in many small steps.
        watchdog.pause(Duration::ZERO, || stat);
        std::thread::yield_now();
    }
}

/// Stop a process outside of all operations on the replay: a repair kills a process that stands still inside of one.
#[track_caller]
pub fn stop_outside_of_operations(slot: ProcessSlot<'_>) {
    let watchdog = Watchdog::new(format!("process {} to be outside of operations", slot.pid()));
    loop {
        stop(slot.pid());
        if !slot.in_operation() {
            return;
        }
        kill(slot.pid(), Signal::SIGCONT);
        watchdog.pause(PAUSE, || format!("it is in {:?}", slot.phase()));
    }
}

/// Whether a process has `file` open.
pub fn is_open_in(pid: u32, file: &Path) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    files.flatten().any(|open| std::fs::read_link(open.path()).is_ok_and(|path| path == file))
}

/// Shared-memory objects of the supervisor with this process id.
pub fn segments_of(pid: u32) -> Vec<String> {
    let wanted = format!("{}{pid}-", shoal::segment::segment_name_prefix());
    let names = std::fs::read_dir("/dev/shm").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.map(|name| format!("/{name}")).filter(|name| name.starts_with(&wanted)).collect()
}

/// Processes whose environment names this folder: all that a run in it started.
pub(super) fn processes_of(folder: &tempfile::TempDir) -> Vec<u32> {
    let wanted = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

/// Sockets of those whose registry is in this folder.
pub(super) fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(entries) = std::fs::read_dir(folder.join("shoal")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.metadata().is_ok_and(|facts| facts.file_type().is_socket())).collect()
}
