//! How long a process ran on a core, and how long it waited for one, as the kernel counts it.
//!
//! The rest of its time it slept, waiting for another process, a disk or a simulator elsewhere. Wall time alone
//! cannot tell running, waiting for a core and sleeping apart.

use std::ops::{AddAssign, Sub};
use std::path::Path;
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use super::text_of;

/// A process's share of the cores since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Processor time of all its threads.
    pub running: Duration,
    /// Time in which its first thread was ready to run and had no core. Zero if the kernel does not count it.
    pub waiting: Duration,
}

impl CoreTime {
    /// What the kernel has counted for the process `pid` up to now; `None` if there is no such process. The kernel
    /// counts a stay on a core when the process is next taken off it, some milliseconds later at most.
    pub fn of_process(pid: u32) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(pid).ok()?);
        let running = clock_getcpuclockid(id).and_then(nix::time::ClockId::now).ok()?;
        Some(Self { running: running.into(), waiting: waiting(Path::new("/"), pid).unwrap_or_default() })
    }
}

impl Sub for CoreTime {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { running: self.running.saturating_sub(before.running), waiting: self.waiting.saturating_sub(before.waiting) }
    }
}

impl AddAssign for CoreTime {
    fn add_assign(&mut self, more: Self) {
        self.running += more.running;
        self.waiting += more.waiting;
    }
}

/// The second number of `/proc/PID/schedstat`: nanoseconds on a run queue.
fn waiting(root: &Path, pid: u32) -> Option<Duration> {
    let text = text_of(root, &format!("proc/{pid}/schedstat"));
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn waiting_is_the_second_number_of_the_schedulers_statistics() {
        let root = fixture::root(&[("proc/17/schedstat", "5000000 1500 42\n"), ("proc/18/schedstat", "\n")]);
        assert_eq!(waiting(root.path(), 17), Some(Duration::from_nanos(1500)));
        assert_eq!([18, 19].map(|pid| waiting(root.path(), pid)), [None, None]);
    }

    #[test]
    fn computing_counts_as_running_and_sleeping_does_not() {
        let now = || CoreTime::of_process(std::process::id()).unwrap();
        let before = now();
        while (now() - before).running < Duration::from_millis(2) {
            std::hint::black_box(0);
        }
        assert!(now().running > before.running);
        assert_eq!((before - now()), CoreTime::default(), "a difference is never negative");
    }

    #[test]
    fn a_process_that_is_not_there_has_no_time() {
        assert_eq!(CoreTime::of_process(u32::MAX), None);
        // Beyond the largest process id that Linux hands out.
        assert_eq!(CoreTime::of_process(1 << 23), None);
    }
}
