//! The sentinel: a tiny process that does nothing until the supervisor is gone, and then removes what is left.
//!
//! The kernel ends the supervisor's children with it, but nobody would remove the shared-memory object, the socket
//! and the registry entry after `kill -9`, nor write what a run with checkpoints goes on from, or keep it in memory
//! until it is adopted. The sentinel is in a session of its own, so that a signal to the process group of the run
//! does not reach it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid};
use rustix::event::poll;

use super::salvage::{Left, Salvage, wait_for_everybody};
use crate::rendezvous::Announcement;
use crate::roles::visualizer;
use crate::segment::pidfd::Pidfd;
use crate::segment::{Segment, SegmentError, object, system};
use crate::telemetry::RunFolder;

/// Time between two looks at the supervisor, if the kernel gives no descriptor of it.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the children of a dead supervisor may take to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sentinel of this process. If the supervisor ends by an error or a panic, the sentinel is not dismissed and
/// does the same as after a kill.
pub(super) struct Sentinel(Pid);

impl Sentinel {
    /// Fork the sentinel of this process, which begins with `let_go`. Once this process is gone it does what
    /// `salvage` says, if anything, and removes the segment, the announcement, what visualizers had not finished,
    /// and its hold on `folder`.
    pub(super) fn fork(
        segment: &Segment,
        announcement: &Announcement,
        folder: &RunFolder,
        salvage: Option<Salvage<'_>>,
        let_go: impl FnOnce(),
    ) -> Result<Self, SegmentError> {
        let supervisor = getpid();
        let name = segment.name().to_owned();
        let pid = system::fork_survivor(|| {
            let_go();
            segment.disown();
            if salvage.is_none() {
                segment.retire();
            }
            let _ = nix::unistd::setsid();
            // The other stop signals are noted by the handlers of the supervisor, and ask a keeper for the run on the disk.
            let _ = system::ignore_ctrl_c();
            wait_for_end_of(supervisor);
            // Somebody may have removed the file that was locked, and the supervisor was killed before it saw that. The folder may have
            // been moved since the fork.
            let mut folder = folder.current();
            folder.take_anew();
            let salvage = salvage.map(|salvage| Salvage { folder: &folder, ..salvage });
            let salvages = salvage.is_some();
            // Even after a panic the rest is to be removed, and nothing else may run in this process. What is
            // another's stays.
            let is_left = |salvage: Salvage<'_>| matches!(catch_unwind(AssertUnwindSafe(|| salvage.run(segment))), Ok(Left::ToAnother));
            if !is_anothers(segment) && !salvage.is_some_and(is_left) {
                if salvages {
                    wait_for_everybody(segment);
                    // Not earlier: as long as this process is a member of the run, nobody takes the segment for
                    // left behind.
                    segment.retire();
                }
                // Readers may still have the segment open. Live members of the run must not lose its name.
                let deadline = std::time::Instant::now() + PATIENCE;
                while !object::remove_if_dead(&name) && std::time::Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(10));
                }
                object::remove(&name);
                // Others may have the folder by now: if nothing can be locked, or if it was given back to an
                // adopter that has died since.
                if let Some(folder) = folder.found_again().filter(|folder| folder.is_locked() && folder.take_again()) {
                    visualizer::remove_unfinished(&folder.videos());
                }
            }
            announcement.withdraw(segment.identity());
            folder.give_back();
            0
        })?;
        Ok(Self(pid))
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Pid {
        self.0
    }

    /// Whether somebody has ended the sentinel. If so, this call has reaped it.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(waitpid(self.0, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
    }

    /// End the sentinel. To be done last: as long as anything is there to be removed, a kill can leave that behind.
    pub(super) fn dismiss(self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Whether the supervisor died while it adopted the run: the keeper of the run has offered it again by now, or
/// will.
fn is_anothers(segment: &Segment) -> bool {
    segment.control().keeping().is_kept() || !segment.goes_by_its_identity()
}

fn wait_for_end_of(supervisor: Pid) {
    let process = Pidfd::open(supervisor.as_raw().cast_unsigned()).ok();
    // The descriptor could be of a later process with the same id: then the supervisor is no longer the parent.
    while getppid() == supervisor {
        match &process {
            Some(process) => drop(poll(&mut [process.for_poll()], None)),
            None => std::thread::sleep(PAUSE),
        }
    }
}
