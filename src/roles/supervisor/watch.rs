//! Watching processes: who died, how, what was lost, and when its replacement starts.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::child::ERROR_EXIT_CODE;
use super::plan::PlannedProcess;
use crate::segment::system::PANIC_EXIT_CODE;

/// Longest wait before a replacement.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);
/// A process that lived this long failed for a new reason.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// A process of the plan, alive or waiting for its replacement.
pub(super) struct Watched {
    /// What it does.
    pub(super) planned: PlannedProcess,
    /// The living process.
    pub(super) living: Option<Living>,
    /// How often it was replaced.
    pub(super) restarts: u32,
    consecutive: u32,
    restart_at: Option<Instant>,
}

/// A process that the kernel has not yet reported dead.
pub(super) struct Living {
    /// Its process id.
    pub(super) pid: Pid,
    /// Readable once it has ended.
    pub(super) descriptor: OwnedFd,
    started: Instant,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It returned this code.
    Exit(i32),
    /// A signal killed it.
    Signal(Signal),
}

impl Ending {
    /// Whether the process left of its own will.
    pub(super) fn is_orderly(self) -> bool {
        self == Self::Exit(0)
    }

    /// For people, with what the process last said.
    pub(super) fn describe(self, last_words: &str) -> String {
        match self {
            Self::Signal(Signal::SIGKILL) => "was killed by SIGKILL (somebody's `kill -9`, or the kernel when memory ran out)".into(),
            Self::Signal(signal) => format!("was killed by {signal}"),
            Self::Exit(PANIC_EXIT_CODE | ERROR_EXIT_CODE) if !last_words.is_empty() => format!("failed: {last_words}"),
            Self::Exit(code) => format!("exited with code {code}"),
        }
    }
}

impl Watched {
    /// A process that is still to be started.
    pub(super) fn new(planned: PlannedProcess) -> Self {
        Self { planned, living: None, restarts: 0, consecutive: 0, restart_at: None }
    }

    /// The process has been forked.
    pub(super) fn started(&mut self, pid: Pid) -> rustix::io::Result<()> {
        let raw = rustix::process::Pid::from_raw(pid.as_raw()).ok_or(rustix::io::Errno::SRCH)?;
        // A child cannot disappear before it is waited for, so this is surely its descriptor.
        let descriptor = pidfd_open(raw, PidfdFlags::empty())?;
        self.living = Some(Living { pid, descriptor, started: Instant::now() });
        self.restart_at = None;
        Ok(())
    }

    /// How it ended, if it has; it is then no longer living.
    pub(super) fn reap(&mut self) -> Option<(Ending, Pid)> {
        let living = self.living.as_ref()?;
        let ending = match waitpid(living.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => Ending::Exit(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => Ending::Signal(signal),
            _ => return None,
        };
        let pid = living.pid;
        if living.started.elapsed() >= STABLE_AFTER {
            self.consecutive = 0;
        }
        self.living = None;
        Some((ending, pid))
    }

    /// Arrange a replacement and return the wait before it: none at first, then 1, 2, 4 ... 30 seconds.
    pub(super) fn schedule_restart(&mut self) -> Duration {
        let wait = match self.consecutive {
            0 => Duration::ZERO,
            failures => Duration::from_secs(1 << (failures - 1).min(5)).min(LONGEST_BACK_OFF),
        };
        self.consecutive += 1;
        self.restarts += 1;
        self.restart_at = Some(Instant::now() + wait);
        wait
    }

    /// How often in a row it has failed.
    pub(super) fn failures_in_a_row(&self) -> u32 {
        self.consecutive
    }

    /// Whether its replacement is due.
    pub(super) fn is_due(&self) -> bool {
        self.living.is_none() && self.restart_at.is_some_and(|at| Instant::now() >= at)
    }

    /// Send it a signal, if it lives.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(living) = &self.living {
            // ESRCH would mean that it has just ended, which the descriptor will say.
            let _ = kill(living.pid, signal);
        }
    }
}

/// Whether the process behind a pidfd has ended.
pub(super) fn has_ended(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    matches!(poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(ready) if ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::processes::Role;

    #[test]
    fn the_wait_before_a_replacement_doubles_up_to_its_limit() {
        let mut watched = Watched::new(PlannedProcess { slot: 0, role: Role::Actor, number: 0, cores: Vec::new() });
        let waits: Vec<u64> = (0..8).map(|_| watched.schedule_restart().as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn an_ending_names_its_cause() {
        assert_eq!(Ending::Exit(1).describe("the environment is gone"), "failed: the environment is gone");
        assert_eq!(Ending::Exit(7).describe("anything"), "exited with code 7");
        assert_eq!(Ending::Signal(Signal::SIGSEGV).describe(""), "was killed by SIGSEGV");
    }
}
