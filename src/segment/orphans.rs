//! Orphans: processes whose parent has died. The kernel gives them to the first process of their PID namespace.
//!
//! In a container that may be a supervisor, or a process that has started several. What environments leave behind would then stay a zombie
//! to the end of the run, and keep its id.

use std::fs;
use std::path::Path;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The orphans that this process is given.
#[derive(Debug)]
pub struct Orphans {
    /// Children from before, for which others may wait. `None` if this process is given no orphans, or the kernel lists no children.
    earlier: Option<Vec<Pid>>,
}

impl Orphans {
    /// Those that this process is given from now on.
    pub fn from_now_on() -> Self {
        // A `/proc` of another namespace does not call the first process of this one 1.
        let is_first = fs::read_link("/proc/self").is_ok_and(|own| own == Path::new("1"));
        Self { earlier: is_first.then(children).flatten() }
    }

    /// Reap those that have ended. `own` must name all children that this process has started since and still waits for.
    pub fn reap(&self, own: impl Iterator<Item = Pid>) {
        let Some(earlier) = &self.earlier else { return };
        let others: Vec<Pid> = earlier.iter().copied().chain(own).collect();
        for orphan in children().into_iter().flatten().filter(|child| !others.contains(child)) {
            let _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
        }
    }
}

/// The children of the first process, those included that have ended.
fn children() -> Option<Vec<Pid>> {
    let listed = fs::read_to_string("/proc/1/task/1/children").ok()?;
    Some(listed.split_ascii_whitespace().filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect())
}
