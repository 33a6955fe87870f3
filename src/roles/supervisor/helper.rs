//! A child that does one thing beside the run and tells what came of it. It has a lower priority than training, and
//! nobody waits for it.

use std::time::Duration;

use ipc_channel::ipc::{self, IpcReceiver};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::event::PollFd;
use rustix::process::nice;
use serde::{Deserialize, Serialize};

use super::watch::descriptor_of_child;
use crate::segment::pidfd::Pidfd;
use crate::segment::system;

/// Steps on the scale of `nice` by which training goes first.
const POLITENESS: i32 = 10;

/// How long a killed helper may take to be gone. One that waits for a disk in the kernel dies when the disk has
/// answered, and the supervisor has others to look after meanwhile.
const DYING_PATIENCE: Duration = Duration::from_secs(2);

/// The child. Dropped, it is killed if it has not ended.
pub(super) struct Helper<T> {
    pid: Pid,
    process: Pidfd,
    answer: IpcReceiver<T>,
    is_killed: bool,
}

impl<T: Serialize + for<'a> Deserialize<'a>> Helper<T> {
    /// Fork a child that does `work`. That has to begin by saying what becomes of the segment in the child. The
    /// error says in words what could not be done, and why.
    pub(super) fn start(work: impl FnOnce() -> T) -> Result<Self, String> {
        let (sender, answer) = ipc::channel().map_err(|error| format!("opening a channel failed: {error}"))?;
        let child = system::fork_child(|| {
            // The terminal's Ctrl+C is for the supervisor.
            let _ = system::ignore_signals_of_the_run();
            let _ = nice(POLITENESS);
            i32::from(sender.send(work()).is_err())
        });
        let pid = child.map_err(|error| format!("starting a process failed: {error}"))?;
        let process = descriptor_of_child(pid).map_err(|error| format!("opening a pidfd failed: {error}"))?;
        Ok(Self { pid, process, answer, is_killed: false })
    }

    /// Whether the child has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// What the child answered before it ended; `None` if it ended without an answer.
    pub(super) fn answer(self) -> Option<T> {
        self.answer.try_recv().ok()
    }
}

impl<T> Helper<T> {
    /// Its process id.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// To be polled for reading: readable once the child has ended.
    pub(super) fn descriptor(&self) -> PollFd<'_> {
        self.process.for_poll()
    }

    /// Kill the child. Returns whether it is dead: then nothing that it began goes on.
    pub(super) fn end(mut self) -> bool {
        self.kill();
        self.process.has_ended()
    }

    fn kill(&mut self) {
        self.is_killed = true;
        self.process.kill();
        self.process.ends_within(DYING_PATIENCE);
    }
}

impl<T> Drop for Helper<T> {
    /// Be rid of the child, whether it has ended or not. One that does not die in time is left to die: its id stays
    /// taken until somebody waits for it, which others do when the supervisor ends.
    fn drop(&mut self) {
        if !self.is_killed {
            self.kill();
        }
        while waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) == Err(Errno::EINTR) {}
    }
}
