//! The processes of a test: forked, stopped, killed, reaped, and never left behind.

use std::collections::BTreeMap;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use shoal::replay::{Repair, repair};
use shoal::segment::processes::Role;
use shoal::segment::system;

use super::Run;

/// Forked processes by their slots.
pub struct Family<'r> {
    run: &'r Run,
    children: BTreeMap<usize, Pid>,
}

impl<'r> Family<'r> {
    /// A family without processes.
    pub fn new(run: &'r Run) -> Self {
        Self { run, children: BTreeMap::new() }
    }

    /// Fork a process into `slot`; it occupies the slot, runs `body` and exits with 0.
    pub fn start(&mut self, slot: usize, role: Role, body: impl FnOnce()) {
        let entry = self.run.slot(slot);
        let generation = entry.reserve(role, slot).unwrap_or_else(|| panic!("slot {slot} is not free"));
        let child = system::fork_child(|| {
            std::panic::set_hook(Box::new(tell));
            assert!(entry.occupy(std::process::id(), generation), "slot {slot} was not reserved");
            body();
            0
        });
        self.children.insert(slot, child.expect("fork"));
    }

    /// Send a signal.
    pub fn signal(&self, slot: usize, signal: Signal) {
        kill(self.children[&slot], signal).expect("signalling a child");
    }

    /// Stop a process and wait until the kernel says that it stands still.
    pub fn stop(&self, slot: usize) {
        self.signal(slot, Signal::SIGSTOP);
        self.await_stop(slot);
    }

    /// Wait until the kernel says that a process stands still.
    pub fn await_stop(&self, slot: usize) {
        let status = waitpid(self.children[&slot], Some(WaitPidFlag::WUNTRACED)).expect("waitpid");
        assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
    }

    /// Let a stopped process go on.
    pub fn go_on(&self, slot: usize) {
        self.signal(slot, Signal::SIGCONT);
    }

    /// Wait until `ready`, or fail as soon as a process of the family has failed.
    pub fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        let mut looks = 0u32;
        super::wait_until(|| {
            looks += 1;
            if looks.is_multiple_of(64) {
                self.check();
            }
            ready()
        });
    }

    /// Panic when a process has ended other than by leaving in order.
    fn check(&self) {
        for (slot, &child) in &self.children {
            let status = waitid(Id::Pid(child), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT).expect("waitid");
            let fine = matches!(status, WaitStatus::StillAlive | WaitStatus::Exited(_, 0));
            assert!(fine, "the process in slot {slot} ended: {status:?}");
        }
    }

    /// Wait for the end of a killed process. Its slot stays its own until [`Family::repair`].
    pub fn reap(&mut self, slot: usize) {
        reap(self.children.remove(&slot).expect("a child in the slot"), slot);
    }

    /// Kill processes together, then reap them.
    pub fn kill(&mut self, slots: &[usize]) {
        slots.iter().for_each(|&slot| self.signal(slot, Signal::SIGKILL));
        slots.iter().for_each(|&slot| self.reap(slot));
    }

    /// Do for the dead process in `slot` what the supervisor does, and free the slot.
    pub fn repair(&self, slot: usize) -> Repair {
        let dead = self.run.slot(slot);
        let repaired = repair(&self.run.segment, self.run.payload.schema(), dead);
        if repaired.stuck.is_empty() {
            dead.release();
        }
        repaired
    }

    /// Repair after the dead process in `slot`, waiting for living ones that are slow as often as it takes.
    pub fn repair_patiently(&self, slot: usize) {
        const ATTEMPTS: usize = 100;
        let stuck = (0..ATTEMPTS).map(|_| self.repair(slot).stuck).take_while(|stuck| !stuck.is_empty()).count();
        assert!(stuck < ATTEMPTS, "living processes stay inside their operations");
    }

    /// Wait until every process has left by itself, and successfully.
    pub fn join(&mut self) {
        for (slot, child) in std::mem::take(&mut self.children) {
            let status = waitpid(child, None).expect("waitpid");
            assert_eq!(status, WaitStatus::Exited(child, 0), "the process in slot {slot} failed");
            assert!(!self.run.slot(slot).in_operation(), "the process in slot {slot} left in the middle of an operation");
            self.run.slot(slot).release();
        }
    }
}

impl Drop for Family<'_> {
    fn drop(&mut self) {
        for child in self.children.values() {
            let _ = kill(*child, Signal::SIGKILL);
            let _ = waitpid(*child, None);
        }
    }
}

/// Kill the process in `slot`, and wait for its end.
pub fn kill_and_reap(child: Pid, slot: usize) {
    kill(child, Signal::SIGKILL).expect("signalling a child");
    reap(child, slot);
}

/// Wait for the end of a killed process. One that had failed before takes the signal as well.
fn reap(child: Pid, slot: usize) {
    let status = waitpid(child, None).expect("waitpid");
    assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "the process in slot {slot} ended by itself: {status:?}");
}

/// Say why a child fails where the test harness's capture, which only exists in its parent, does not swallow it.
fn tell(panic: &std::panic::PanicHookInfo<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "in process {}: {panic}", std::process::id());
}
