//! Processes as the kernel knows them: whether one lives, and descriptors of processes, which unlike ids are never
//! reused for another process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The descriptor of a process.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// The descriptor of the process that has this id now.
    ///
    /// # Errors
    /// `SRCH` if nobody has the id, `INVAL` or, since Linux 6.16, `NOENT` if it is the id of a mere thread, and what
    /// else the kernel says.
    pub fn open(pid: u32) -> Result<Self, Errno> {
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        pidfd_open(id, PidfdFlags::empty()).map(Self)
    }

    /// The descriptor of the process with this id and start time; `None` if it is gone.
    pub fn open_of(pid: u32, started: u64) -> Option<Self> {
        let process = Self::open(pid).ok()?;
        // Compared after the descriptor was opened, so that this cannot be the descriptor of a later process with the
        // same id.
        (start_time(pid) == Some(started)).then_some(process)
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Whether the process has ended, or ends within `patience`, whatever signals this process gets meanwhile.
    pub fn ends_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now().checked_add(patience);
        let look = || {
            let left = deadline.and_then(|deadline| Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok());
            poll(&mut [self.for_poll()], left.as_ref())
        };
        retry_on_intr(look).is_ok_and(|ready| ready > 0)
    }

    /// The descriptor for a poll: readable once every thread of the process is gone.
    pub fn for_poll(&self) -> PollFd<'_> {
        PollFd::new(&self.0, PollFlags::IN)
    }

    /// Kill the process, unless it has ended or this process may not kill it.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Start time of a process in clock ticks since boot.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).map(|(_, started)| started)
}

/// Whether the process with this id and start time lives (a zombie does not).
pub fn is_alive(pid: u32, started: u64) -> bool {
    stat(pid).is_some_and(|(state, now)| !matches!(state, 'Z' | 'X') && now == started)
}

/// State and start time of a process: fields 3 and 22 of its `stat`, counted after the last parenthesis, since the
/// name before it may hold anything.
fn stat(pid: u32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Whether the kernel says that the process with this id and start time has ended, a zombie included. A start time of
/// 0 means that it is not known. In doubt the process has not ended: nobody may repair what a living process is still
/// changing.
pub fn has_exited(pid: u32, started: u64) -> bool {
    match Pidfd::open(pid) {
        Ok(process) => process.has_ended() || started != 0 && start_time(pid).is_some_and(|now| now != started),
        // Nobody has the id, or it has become the id of a mere thread.
        Err(error) => i32::try_from(pid).is_ok_and(|id| id > 0) && matches!(error, Errno::SRCH | Errno::INVAL | Errno::NOENT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_now_a_threads_is_no_living_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            let _ = ended.recv();
        });
        let id = told.recv().unwrap();
        assert_ne!(id, std::process::id());
        assert!(has_exited(id, 0) && has_exited(id, start_time(id).unwrap() - 1), "whoever had the id {id} is gone");
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn another_start_time_is_another_process() {
        let pid = std::process::id();
        let started = start_time(pid).unwrap();
        assert!(is_alive(pid, started) && !has_exited(pid, started));
        assert!(!is_alive(pid, started + 1) && has_exited(pid, started + 1));
    }
}
