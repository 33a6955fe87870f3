//! The few calls to the kernel, the C library and the processor that need unsafe code.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigHandler, SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{ForkResult, Pid, fork, getppid};

use super::SegmentError;
use super::pidfd::Pidfd;
use crate::sync::AtomicU64;

pub use super::object::{is_shared, remove, remove_if_dead};

/// Pause between two looks at a child that cannot be waited for by a descriptor.
const LOOK: Duration = Duration::from_millis(10);

/// A way to fork: 0 in the child, the child's id in its parent.
pub type Fork = fn() -> std::io::Result<i32>;

/// How this process forks where somebody else has to know of it: an interpreter that has loaded this library.
static FORK: OnceLock<Fork> = OnceLock::new();

/// Have every later fork of this process be `fork`'s. Heeded the first time.
pub fn fork_by(fork: Fork) {
    let _ = FORK.set(fork);
}

/// Fork a child that runs `body` and exits with the code it returns, never returning to the caller's stack.
///
/// The child dies with its parent (`PR_SET_PDEATHSIG`), starts with no signal blocked, and leaves with `_exit`, so
/// that no destructor of the parent runs in it. To be called from a single-threaded process only.
///
/// # Errors
/// The system does not fork.
pub fn fork_child(body: impl FnOnce() -> i32) -> Result<Pid, SegmentError> {
    fork_follower(AfterParent::Dies, body)
}

/// What becomes of a child whose parent dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterParent {
    /// The kernel kills it.
    Dies,
    /// The kernel sends it SIGTERM, which it may take as a request to leave.
    IsAskedToLeave,
}

/// Fork a child as [`fork_child`] does, of which becomes what `after` says when its parent dies.
///
/// # Errors
/// As there.
pub fn fork_follower(after: AfterParent, body: impl FnOnce() -> i32) -> Result<Pid, SegmentError> {
    let parent = nix::unistd::getpid();
    let signal = match after {
        AfterParent::Dies => rustix::process::Signal::KILL,
        AfterParent::IsAskedToLeave => rustix::process::Signal::TERM,
    };
    fork_survivor(|| {
        let _ = rustix::process::set_parent_process_death_signal(Some(signal));
        // The parent may have died before the request was registered.
        if getppid() != parent { 1 } else { body() }
    })
}

/// Fork a child as [`fork_child`] does, but one that outlives its parent.
///
/// # Errors
/// As there.
pub fn fork_survivor(body: impl FnOnce() -> i32) -> Result<Pid, SegmentError> {
    // Held back until the child has forgotten what its parent was asked: what it is asked itself must not be forgotten with that.
    let held_back = HeldBack::all();
    let forked = match FORK.get() {
        Some(fork) => fork().map(|id| if id == 0 { ForkResult::Child } else { ForkResult::Parent { child: Pid::from_raw(id) } }),
        // SAFETY: the supervisor is single-threaded (invariant 1 of ARCHITECTURE.md), so no other thread can hold a lock
        // of the allocator or of libtorch at the moment of the fork; the child may therefore run any code.
        None => unsafe { fork() }.map_err(std::io::Error::from),
    };
    match forked.map_err(|source| SegmentError::System { action: "fork", source })? {
        ForkResult::Parent { child } => {
            drop(held_back);
            Ok(child)
        }
        ForkResult::Child => {
            // What the parent was asked to do is not the child's business; what the child is asked from here on, is.
            STOP.store(0, crate::sync::Ordering::Relaxed);
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(PANIC_EXIT_CODE);
            exit_now(code)
        }
    }
}

/// Signals of this thread, held back until this is dropped.
struct HeldBack(SigSet);

impl HeldBack {
    fn all() -> Self {
        let mut before = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before));
        Self(before)
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.0), None);
    }
}

/// Wait for all of `children`, passing every stop signal on to them. Returns whether all of them succeeded.
pub fn wait_for_children(children: &[Pid]) -> bool {
    use nix::poll::{PollFd, PollFlags, ppoll};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    // A signal between a look for one and a wait that it was to end would be noticed when the child ends by itself. So signals come
    // only while this process waits.
    let held_back = HeldBack::all();
    // One that came before a child was there has not reached it.
    let mut passed_on = 0;
    let mut succeeded = true;
    for (index, &child) in children.iter().enumerate() {
        let descriptor = Pidfd::open(child.as_raw().cast_unsigned()).ok();
        succeeded &= loop {
            if stop_requested() && stops() != passed_on {
                passed_on = stops();
                // The ids of those before may be others' by now.
                for &child in &children[index..] {
                    let _ = nix::sys::signal::kill(child, Signal::SIGTERM);
                }
            }
            match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => {}
                Ok(status) => break matches!(status, WaitStatus::Exited(_, 0)),
                Err(_) => break false,
            }
            // Readable once the child has ended; without a descriptor (too many files are open) it is looked after now and then.
            let mut ended: Vec<PollFd<'_>> =
                descriptor.iter().map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)).collect();
            let patience = ended.is_empty().then(|| LOOK.into());
            let _ = ppoll(&mut ended, patience, Some(held_back.0));
        };
    }
    succeeded
}

/// Exit code of a child whose code panicked.
pub const PANIC_EXIT_CODE: i32 = 101;

/// Leave at once: no destructors, no exit handlers (libtorch's own would run in every child).
fn exit_now(code: i32) -> ! {
    use std::io::Write;
    let _ = std::io::stdout().flush();
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Keep freed memory instead of giving it back to the kernel after every step: a learner step with libtorch
/// otherwise faults hundreds of pages in again. Returns whether the allocator will.
pub fn keep_freed_memory() -> bool {
    // SAFETY: `mallopt` changes a threshold of the allocator and may be called at any time by a single thread.
    let take = |threshold, bytes| unsafe { libc::mallopt(threshold, bytes) == 1 };
    // What is larger than the threshold of mapping is mapped anew each time. Older glibc takes none above 32 MiB, and without one it would
    // stay at 128 KiB, since it grows by itself no more once that of trimming is set.
    take(libc::M_TRIM_THRESHOLD, 512 << 20) && (take(libc::M_MMAP_THRESHOLD, 512 << 20) || take(libc::M_MMAP_THRESHOLD, 32 << 20))
}

/// Let SIGINT, SIGTERM and SIGHUP set the flag that [`stop_requested`] reads; not SIGHUP where whoever started the program has it ignored,
/// as `nohup` does: then a closed terminal ends nothing.
///
/// # Errors
/// The system refuses to have one of them handled.
pub fn handle_stop_signals() -> Result<(), SegmentError> {
    note_stop_signals(SaFlags::empty())
}

/// The same of the first of each: a second one ends the process, whatever it is at.
///
/// # Errors
/// As there.
pub fn handle_first_stop_signals() -> Result<(), SegmentError> {
    note_stop_signals(SaFlags::SA_RESETHAND)
}

fn note_stop_signals(flags: SaFlags) -> Result<(), SegmentError> {
    note_signals(&[Signal::SIGINT, Signal::SIGTERM], flags)?;
    if is_ignored(Signal::SIGHUP) { Ok(()) } else { note_signals(&[Signal::SIGHUP], flags) }
}

fn is_ignored(signal: Signal) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call changes nothing; the place for the present one is valid, and all zeros are a value of it.
    unsafe {
        libc::sigaction(signal as libc::c_int, std::ptr::null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Let SIGTERM set the flag that [`stop_requested`] reads, in a child whose parent takes care of SIGINT.
///
/// # Errors
/// As [`handle_stop_signals`].
pub fn handle_stop_signals_of_child() -> Result<(), SegmentError> {
    note_signals(&[Signal::SIGTERM], SaFlags::empty())
}

fn note_signals(signals: &[Signal], flags: SaFlags) -> Result<(), SegmentError> {
    use nix::sys::signal::{SigAction, sigaction};
    let action = SigAction::new(SigHandler::Handler(note_stop), flags, SigSet::empty());
    for &signal in signals {
        // SAFETY: the handler only changes an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }.map_err(|error| SegmentError::System { action: "sigaction", source: error.into() })?;
    }
    Ok(())
}

/// Leave Ctrl+C to the supervisor, since the terminal sends it to every process of the run, and do not die of SIGUSR1, by
/// which the supervisor asks for a stack, where nobody answers it.
///
/// # Errors
/// The system refuses to have one of them ignored.
pub fn ignore_signals_of_the_run() -> Result<(), SegmentError> {
    [Signal::SIGINT, Signal::SIGUSR1].into_iter().try_for_each(|signal| set_handler(signal, true))
}

/// Have the kernel keep a child that has ended until it is waited for: its id is nobody else's until then.
///
/// # Errors
/// The system refuses to have SIGCHLD handled by default.
pub fn be_told_of_children() -> Result<(), SegmentError> {
    set_handler(Signal::SIGCHLD, false)
}

/// Have a write beyond the limit of the size of files fail, instead of killing whoever writes.
///
/// # Errors
/// The system refuses to have SIGXFSZ ignored.
pub fn fail_at_the_limit_of_files() -> Result<(), SegmentError> {
    set_handler(Signal::SIGXFSZ, true)
}

/// Have a signal ignored, or handled by default.
fn set_handler(signal: Signal, ignored: bool) -> Result<(), SegmentError> {
    let handler = if ignored { SigHandler::SigIgn } else { SigHandler::SigDfl };
    // SAFETY: neither handler runs code of this program.
    unsafe { nix::sys::signal::signal(signal, handler) }
        .map(|_| ())
        .map_err(|error| SegmentError::System { action: "signal", source: error.into() })
}

/// The first stop signal that arrived; 0 before.
static STOP: crate::sync::AtomicU32 = crate::sync::AtomicU32::new(0);

/// Stop signals that arrived.
static STOPS: crate::sync::AtomicU32 = crate::sync::AtomicU32::new(0);

extern "C" fn note_stop(signal: libc::c_int) {
    use crate::sync::Ordering::Relaxed;
    STOPS.fetch_add(1, Relaxed);
    // Relaxed: the number is all there is to see. The first signal is the reason; later ones change nothing.
    let _ = STOP.compare_exchange(0, signal.unsigned_abs(), Relaxed, Relaxed);
}

/// Whether a stop signal has arrived since [`handle_stop_signals`].
pub fn stop_requested() -> bool {
    stop_signal().is_some()
}

/// How many stop signals this process has had.
pub fn stops() -> u32 {
    STOPS.load(crate::sync::Ordering::Relaxed)
}

/// Number of the first stop signal that has arrived since [`handle_stop_signals`].
pub fn stop_signal() -> Option<u32> {
    Some(STOP.load(crate::sync::Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// How often this process is the child of a fork since [`count_forks`] was called.
pub fn forks() -> u32 {
    FORKS.load(crate::sync::Ordering::Relaxed)
}

/// Count the forks behind this process from now on, so that a hold on shared memory can tell that it is a copy.
pub fn count_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler only adds to an atomic, which is allowed in the child of a fork.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(note_fork)) });
}

static FORKS: crate::sync::AtomicU32 = crate::sync::AtomicU32::new(0);

extern "C" fn note_fork() {
    FORKS.fetch_add(1, crate::sync::Ordering::Relaxed);
}

/// Ask the processor to load the cache line of `word` early.
#[inline(always)]
pub fn prefetch(word: &AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing architecturally and cannot fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(word).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = word;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_agrees_to_keep_freed_memory() {
        // In a process of its own, which has one thread.
        let child = fork_child(|| i32::from(!keep_freed_memory())).unwrap();
        assert!(wait_for_children(&[child]));
    }
}
