//! The sentinel: a tiny process that does nothing until the supervisor is gone, and then removes what is left.
//!
//! The kernel ends the supervisor's children with it, but nobody would remove the shared-memory object, the socket and
//! the registry entry after `kill -9`, nor write what a run with checkpoints goes on from. The sentinel is in a session of its own, so that a signal to the process group
//! of the run does not reach it.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid, getppid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::salvage::Salvage;
use crate::segment::{Segment, SegmentError, system};

/// How long the children of a dead supervisor may take to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sentinel of this process; dropping it ends it. Drop it last: as long as anything is there to be removed, a kill
/// can leave it behind.
pub(super) struct Sentinel(Pid);

impl Sentinel {
    /// Fork the sentinel of this process. It does what `salvage` says, if anything, and removes the segment and the files at `paths`.
    pub(super) fn fork(segment: &Segment, paths: &[PathBuf], salvage: Option<Salvage<'_>>) -> Result<Self, SegmentError> {
        let supervisor = getpid();
        let name = segment.name().to_owned();
        let sentinel = system::fork_survivor(|| {
            segment.disown();
            if salvage.is_none() {
                segment.retire();
            }
            let _ = nix::unistd::setsid();
            let _ = system::ignore_signals_of_the_run();
            wait_for_end_of(supervisor);
            if let Some(salvage) = salvage {
                salvage.run(segment);
                // As long as it was a member of the run, nobody took the segment for left behind, and who goes on waited.
                segment.retire();
            }
            // Readers may still have it open; live members of the run must not lose its name.
            let deadline = std::time::Instant::now() + PATIENCE;
            while !system::remove_if_dead(&name) && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            system::remove(&name);
            for path in paths {
                let _ = std::fs::remove_file(path);
            }
            0
        })?;
        Ok(Self(sentinel))
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

fn wait_for_end_of(supervisor: Pid) {
    let Some(pid) = rustix::process::Pid::from_raw(supervisor.as_raw()) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The descriptor could be that of a later process with the same number: then ours is no longer the parent.
    while getppid() == supervisor {
        let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None);
    }
}
