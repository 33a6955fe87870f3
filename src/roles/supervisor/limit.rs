//! How much the machine could compute at most: a child of its own measures it while the run begins, since whoever measures computes on a core
//! and the supervisor does not.

use std::os::fd::OwnedFd;
use std::time::Duration;

use ipc_channel::ipc::{self, IpcReceiver};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, nice, pidfd_open};

use super::watch::has_ended;
use crate::config::Config;
use crate::machine::cores::usable_now;
use crate::networks::measure_products_per_s;
use crate::segment::{Segment, system};
use crate::sync::Ordering;

/// Processor time that measuring takes.
const MEASURING: Duration = Duration::from_millis(200);

/// Steps on the scale of `nice` by which training goes before measuring.
const POLITENESS: i32 = 10;

/// A measurement under way.
pub(super) struct Limit {
    pid: Pid,
    descriptor: OwnedFd,
    products_per_s: IpcReceiver<f64>,
}

impl Limit {
    /// Begin to measure. `None` where that cannot be, and where learners do not compute on cores: a run does without.
    pub(super) fn begin(segment: &Segment, config: &Config) -> Option<Self> {
        if config.learner.devices().iter().any(|&device| device != "cpu") {
            return None;
        }
        let (sender, products_per_s) = ipc::channel().ok()?;
        let pid = system::fork_child(|| {
            // It looks at nothing of the segment, and nobody waits for it to leave.
            segment.retire();
            let _ = system::ignore_signals_of_the_run();
            // Training goes first; processor time is what is measured, and not how long it takes to get it.
            let _ = nice(POLITENESS);
            i32::from(measure_products_per_s(MEASURING).is_none_or(|products_per_s| sender.send(products_per_s).is_err()))
        });
        let pid = pid.ok()?;
        let raw = rustix::process::Pid::from_raw(pid.as_raw()).expect("a child has an id");
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(descriptor) => Some(Self { pid, descriptor, products_per_s }),
            Err(_) => {
                end(pid);
                None
            }
        }
    }

    /// Once it has ended: say in `segment` what the cores that the run may use could compute. Returns what is still under way.
    pub(super) fn look(self, segment: &Segment) -> Option<Self> {
        if !has_ended(&self.descriptor) {
            return Some(self);
        }
        if let Ok(products_per_s) = self.products_per_s.try_recv() {
            // Far below 2^63, and never negative.
            let limit_per_s = (products_per_s * usable_now() as f64) as u64;
            segment.control().products_limit_per_s().store(limit_per_s, Ordering::Relaxed);
        }
        None
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        end(self.pid);
    }
}

/// Be rid of the child, whether it has ended or not.
fn end(pid: Pid) {
    let _ = kill(pid, Signal::SIGKILL);
    while waitpid(pid, None) == Err(Errno::EINTR) {}
}
