//! The few calls to the kernel, the C library and the processor that need unsafe code.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::unistd::{ForkResult, Pid, fork, getppid};

use super::SegmentError;
use super::pidfd::Pidfd;
use crate::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Pause between two looks at a child that cannot be waited for by a descriptor.
const LOOK: Duration = Duration::from_millis(10);

/// A way to fork: 0 in the child, the child's id in its parent.
pub type Fork = fn() -> std::io::Result<i32>;

/// The fork to use in place of the system's, if an interpreter that has loaded this library has to know of forks.
static FORK: OnceLock<Fork> = OnceLock::new();

/// Use `fork` for every later fork of this process. Only the first call has an effect.
pub fn set_fork(fork: Fork) {
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

/// Fork a child as [`fork_child`] does; `after` says what happens to it when its parent dies.
///
/// # Errors
/// The system does not fork.
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
/// The system does not fork.
pub fn fork_survivor(body: impl FnOnce() -> i32) -> Result<Pid, SegmentError> {
    // Signals are blocked until the child has reset the stop signal that it inherits: one that is sent to the child
    // itself must not be reset with it.
    let blocked = BlockedSignals::all();
    // No other thread holds it at that moment, or the child would find it locked for ever. Threads of tests print.
    let output = std::io::stdout().lock();
    let forked = match FORK.get() {
        Some(fork) => fork().map(|id| if id == 0 { ForkResult::Child } else { ForkResult::Parent { child: Pid::from_raw(id) } }),
        // SAFETY: a process that forks is single-threaded (invariant 1 of ARCHITECTURE.md), so no other thread can hold a
        // lock of libtorch at the moment of the fork, and the child may run any code. Where code of the user's breaks that
        // (`program::single_threaded` warns of it), a lock that the child waits for is the harm: libc's fork has those of
        // the allocator unlocked in the child.
        None => unsafe { fork() }.map_err(std::io::Error::from),
    };
    drop(output);
    match forked.map_err(refused_fork)? {
        ForkResult::Parent { child } => {
            drop(blocked);
            Ok(child)
        }
        ForkResult::Child => {
            // A stop signal to the parent is not the child's. One that is sent to the child from here on is.
            STOP.store(0, Relaxed);
            OWNER.store(std::process::id(), Relaxed);
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(PANIC_EXIT_CODE);
            exit_now(code)
        }
    }
}

/// Why the system does not fork. A limit of processes has a code of its own, which is also that of a call that would block.
fn refused_fork(source: std::io::Error) -> SegmentError {
    match source.kind() {
        std::io::ErrorKind::WouldBlock => SegmentError::NoRoomForProcess { source },
        _ => SegmentError::System { action: "fork", source },
    }
}

/// All signals to this thread are blocked until this is dropped. Holds the mask from before.
struct BlockedSignals(SigSet);

impl BlockedSignals {
    fn all() -> Self {
        let mut before = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before));
        Self(before)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.0), None);
    }
}

/// Wait for all of `children`, and pass every stop signal on to them. Returns whether all of them succeeded.
pub fn wait_for_children(children: &[Pid]) -> bool {
    use nix::poll::{PollFd, PollFlags, ppoll};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    // A signal that came between a look for signals and the wait that it has to end would be noticed only when the
    // child ends by itself. So signals are let through only during the wait.
    let blocked = BlockedSignals::all();
    // Number of signals that were passed on. From 0: a signal that came before a child was there has not reached it.
    let mut passed_on = 0;
    let mut succeeded = true;
    for (index, &child) in children.iter().enumerate() {
        let descriptor = Pidfd::open(child.as_raw().cast_unsigned()).ok();
        succeeded &= loop {
            if stop_requested() && stops() != passed_on {
                passed_on = stops();
                // The children before this one have been waited for: their ids may be other processes' by now.
                for &child in &children[index..] {
                    let _ = nix::sys::signal::kill(child, Signal::SIGTERM);
                }
            }
            match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => {}
                Ok(status) => break matches!(status, WaitStatus::Exited(_, 0)),
                Err(_) => break false,
            }
            // Readable once the child has ended; without a descriptor (too many files are open) the child is looked
            // at now and then.
            let mut ended: Vec<PollFd<'_>> =
                descriptor.iter().map(|descriptor| PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)).collect();
            let patience = ended.is_empty().then(|| LOOK.into());
            let _ = ppoll(&mut ended, patience, Some(blocked.0));
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
    // An allocation above M_MMAP_THRESHOLD is mapped anew each time. Older glibc takes no threshold above 32 MiB, and
    // without one it stays at 128 KiB, since it no longer grows by itself once M_TRIM_THRESHOLD is set.
    take(libc::M_TRIM_THRESHOLD, 512 << 20) && (take(libc::M_MMAP_THRESHOLD, 512 << 20) || take(libc::M_MMAP_THRESHOLD, 32 << 20))
}

/// The signals that ask a program to stop. SIGUSR1 and SIGUSR2 are what batch systems warn with before they kill.
pub const STOP_SIGNALS: [Signal; 5] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// Let [`STOP_SIGNALS`] set the flag that [`stop_requested`] reads, also those that are blocked. All but SIGINT and SIGTERM
/// stay ignored if the program was started to ignore them, as `nohup` does with SIGHUP: a closed terminal ends nothing then.
///
/// # Errors
/// The system refuses to have one of them handled.
pub fn handle_stop_signals() -> Result<(), SegmentError> {
    note_stop_signals(note_stop)
}

/// As [`handle_stop_signals`], but only for the first signal of each kind: a second one ends the process, whatever it
/// is doing.
///
/// # Errors
/// As [`handle_stop_signals`].
pub fn handle_first_stop_signals() -> Result<(), SegmentError> {
    note_stop_signals(note_first_stop)
}

fn note_stop_signals(handler: Handler) -> Result<(), SegmentError> {
    let is_heeded = |signal: &Signal| matches!(signal, Signal::SIGINT | Signal::SIGTERM) || !is_ignored(*signal);
    handle(STOP_SIGNALS.into_iter().filter(is_heeded), handler)
}

/// Let [`STOP_SIGNALS`] end this process also if its parent blocks them, or if it is the first one of a container, which the
/// kernel spares every signal that is neither handled nor ignored. What it forks ends by them as other processes do.
///
/// # Errors
/// As [`handle_stop_signals`].
pub fn end_by_stop_signals() -> Result<(), SegmentError> {
    if std::process::id() != 1 {
        unblock(&STOP_SIGNALS.into_iter().collect());
        return Ok(());
    }
    handle(STOP_SIGNALS.into_iter().filter(|&signal| !is_ignored(signal)), end_by)
}

fn is_ignored(signal: Signal) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call changes nothing; the place for the present action is valid, and all zeros
    // are a value of it.
    unsafe {
        libc::sigaction(signal as libc::c_int, std::ptr::null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Let SIGTERM set the flag that [`stop_requested`] reads, in a child whose parent takes care of SIGINT.
///
/// # Errors
/// As [`handle_stop_signals`].
pub fn handle_stop_signals_of_child() -> Result<(), SegmentError> {
    handle([Signal::SIGTERM], note_stop)
}

/// What is called on a signal, with its number.
type Handler = extern "C" fn(libc::c_int);

fn handle(signals: impl IntoIterator<Item = Signal>, handler: Handler) -> Result<(), SegmentError> {
    OWNER.store(std::process::id(), Relaxed);
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::empty(), SigSet::empty());
    let signals: SigSet = signals.into_iter().collect();
    for signal in &signals {
        // SAFETY: the handlers read a clock, change atomics, set another handler and end the process, which is
        // async-signal-safe.
        unsafe { sigaction(signal, &action) }.map_err(|error| SegmentError::System { action: "sigaction", source: error.into() })?;
    }
    // Last, since one that has come is delivered now.
    unblock(&signals);
    Ok(())
}

/// Take back that a parent blocks `signals`, as those do that wait for signals: a program inherits it.
fn unblock(signals: &SigSet) {
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(signals), None);
}

/// Leave Ctrl+C and the warnings of batch systems to the supervisor, since every process of the run gets them. By SIGUSR1
/// the supervisor also asks for a stack: it does not kill a process that does not answer it.
///
/// # Errors
/// The system refuses to have one of them ignored.
pub fn ignore_signals_of_the_run() -> Result<(), SegmentError> {
    [Signal::SIGINT, Signal::SIGUSR1, Signal::SIGUSR2].into_iter().try_for_each(|signal| dispose(signal, Disposition::Ignore))
}

/// Leave Ctrl+C to the supervisor, in a process that heeds the other stop signals as that does.
///
/// # Errors
/// The system refuses to have it ignored.
pub fn ignore_ctrl_c() -> Result<(), SegmentError> {
    dispose(Signal::SIGINT, Disposition::Ignore)
}

/// Have the kernel keep a child that has ended until it is waited for: its id is not used again before that.
///
/// # Errors
/// The system refuses to have SIGCHLD handled by default.
pub fn keep_ended_children() -> Result<(), SegmentError> {
    dispose(Signal::SIGCHLD, Disposition::Default)
}

/// Let a write beyond the limit of the size of files fail, instead of killing the process.
///
/// # Errors
/// The system refuses to have SIGXFSZ ignored.
pub fn survive_file_size_limit() -> Result<(), SegmentError> {
    dispose(Signal::SIGXFSZ, Disposition::Ignore)
}

/// What happens on a signal without code of this program.
enum Disposition {
    Ignore,
    Default,
}

fn dispose(signal: Signal, disposition: Disposition) -> Result<(), SegmentError> {
    let handler = match disposition {
        Disposition::Ignore => SigHandler::SigIgn,
        Disposition::Default => SigHandler::SigDfl,
    };
    // SAFETY: neither handler runs code of this program.
    unsafe { nix::sys::signal::signal(signal, handler) }
        .map(|_| ())
        .map_err(|error| SegmentError::System { action: "signal", source: error.into() })
}

/// The process whose stop signals are noted. What an environment forks inherits the handler, and nobody looks at what
/// is noted there.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The first stop signal that arrived; 0 before.
static STOP: AtomicU32 = AtomicU32::new(0);

/// The newest stop signal that arrived; 0 before.
static NEWEST_STOP: AtomicU32 = AtomicU32::new(0);

/// Stop signals that arrived.
static STOPS: AtomicU32 = AtomicU32::new(0);

/// Requests to stop that arrived.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// 1 after the warning of a batch system, until the signal comes that it has warned of.
static WARNED: AtomicU32 = AtomicU32::new(0);

/// The moment from which a stop signal is another request than the newest.
static NEXT_REQUEST_NS: AtomicU64 = AtomicU64::new(0);

/// For how long after the first signal of a request others repeat it: longer than programs take to pass a signal on
/// or to end by it, and short for somebody who has waited and asks again.
const ONE_REQUEST_NS: u64 = 1_000_000_000;

extern "C" fn note_stop(signal: libc::c_int) {
    // Relaxed: the numbers order nothing.
    if std::process::id() != OWNER.load(Relaxed) {
        // Ctrl+C in a terminal reaches it as well. It is needed until the environment is closed.
        if signal != libc::SIGINT {
            end_by(signal);
        }
        return;
    }
    STOPS.fetch_add(1, Relaxed);
    NEWEST_STOP.store(signal.unsigned_abs(), Relaxed);
    let begins = begins_request(&NEXT_REQUEST_NS, clock_of_handler_ns());
    let is_request = match signal {
        // It only says that the end is near. Others repeat it, so it begins the second in which they do.
        libc::SIGUSR1 | libc::SIGUSR2 => {
            WARNED.store(1, Relaxed);
            false
        }
        libc::SIGINT => begins,
        // One that only repeats the warning is not yet the end.
        _ => begins && WARNED.swap(0, Relaxed) == 0,
    };
    if is_request {
        REQUESTS.fetch_add(1, Relaxed);
    }
    // The first signal is the reason to stop; later ones change nothing.
    let _ = STOP.compare_exchange(0, signal.unsigned_abs(), Relaxed, Relaxed);
}

/// As [`note_stop`], for the first signal of its kind: the next one ends the process.
extern "C" fn note_first_stop(signal: libc::c_int) {
    note_stop(signal);
    // SAFETY: POSIX lists the call among those that a signal handler may make, and `end_by` is such a handler.
    unsafe { libc::signal(signal, end_by as *const () as libc::sighandler_t) };
}

/// What the signal does where it is not handled: it ends the process, at the latest once its handler has returned, which
/// is this or calls this.
extern "C" fn end_by(signal: libc::c_int) {
    // SAFETY: POSIX lists the calls among those that a signal handler may make, and no other handler is set.
    unsafe {
        // The kernel spares it what signals do by default.
        if libc::getpid() == 1 {
            libc::_exit(128 + signal);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Whether a stop signal at `now_ns` is another request than those before, of which `next_ns` has the moment from which
/// one is; that moment is then moved on.
fn begins_request(next_ns: &AtomicU64, now_ns: u64) -> bool {
    let next = next_ns.load(Relaxed);
    // An exchange, since a signal of another kind may interrupt this handler: of the two, one begins the request.
    now_ns >= next && next_ns.compare_exchange(next, now_ns.saturating_add(ONE_REQUEST_NS), Relaxed, Relaxed).is_ok()
}

/// Nanoseconds of the monotonic clock, for a signal handler: `sync::monotonic_ns` may do more than a handler may at
/// its first call.
fn clock_of_handler_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the time is valid, and POSIX lists the call among those that a signal handler may make.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Whether a stop signal has arrived since [`handle_stop_signals`].
pub fn stop_requested() -> bool {
    stop_signal().is_some()
}

/// How many stop signals have arrived in this process.
pub fn stops() -> u32 {
    STOPS.load(Relaxed)
}

/// How many requests to stop have arrived in this process. Signals of any kind within a second of the first are one
/// request: a service manager sends one to every process, and some of these pass theirs on. The warning of a batch system
/// is none, and neither is the end that it has warned of: both leave time until the kill, in which a last checkpoint may be
/// written to its end.
pub fn stop_requests() -> u32 {
    REQUESTS.load(Relaxed)
}

/// Number of the first stop signal that has arrived since [`handle_stop_signals`].
pub fn stop_signal() -> Option<u32> {
    Some(STOP.load(Relaxed)).filter(|&signal| signal != 0)
}

/// Number of the newest stop signal that has arrived since [`handle_stop_signals`].
pub fn newest_stop_signal() -> Option<u32> {
    Some(NEWEST_STOP.load(Relaxed)).filter(|&signal| signal != 0)
}

/// Forks between the process that first called [`count_forks`] and this one.
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// Count forks from now on: each child has a higher count than its parent, so that a handle to shared memory can tell
/// that it is a copy.
pub fn count_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler only adds to an atomic, which is allowed in the child of a fork.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(note_fork)) });
}

static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
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

    #[test]
    fn a_child_leaves_though_another_thread_printed_when_it_was_forked() {
        let (prints, printing) = std::sync::mpsc::channel();
        let printer = std::thread::spawn(move || {
            let output = std::io::stdout().lock();
            prints.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            drop(output);
        });
        printing.recv().unwrap();
        let child = fork_child(|| {
            // Otherwise it would wait for ever.
            nix::unistd::alarm::set(10);
            0
        });
        assert!(wait_for_children(&[child.unwrap()]));
        printer.join().unwrap();
    }

    #[test]
    fn where_no_other_process_may_be_started_what_limits_them_is_named() {
        use nix::sys::resource::{Resource, setrlimit};
        let child = fork_child(|| {
            setrlimit(Resource::RLIMIT_NPROC, 0, 0).unwrap();
            // Root may start as many as it likes.
            let _ = nix::unistd::setuid(nix::unistd::Uid::from_raw(65_534));
            let refused = fork_child(|| 0).unwrap_err().to_string();
            i32::from(!refused.contains("no room for another process") || !refused.contains("TasksMax"))
        });
        assert!(wait_for_children(&[child.unwrap()]));
    }

    #[test]
    fn a_fork_that_is_refused_for_want_of_memory_is_not_blamed_on_a_limit_of_processes() {
        let refused = |code| refused_fork(std::io::Error::from_raw_os_error(code)).to_string();
        assert!(refused(libc::EAGAIN).contains("limit of processes"), "{}", refused(libc::EAGAIN));
        assert!(refused(libc::ENOMEM).starts_with("fork failed: Cannot allocate memory"), "{}", refused(libc::ENOMEM));
    }

    #[test]
    fn a_process_that_an_environment_forks_ends_by_a_stop_signal_but_not_by_ctrl_c() {
        use nix::sys::signal::{kill, raise};
        use nix::sys::wait::{WaitStatus, waitpid};
        let child = fork_child(|| {
            handle_stop_signals().unwrap();
            // SAFETY: this process has one thread.
            let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
                std::thread::sleep(Duration::from_secs(5));
                exit_now(0)
            };
            kill(child, Signal::SIGINT).unwrap();
            kill(child, Signal::SIGTERM).unwrap();
            let ended = waitpid(child, None).unwrap();
            raise(Signal::SIGTERM).unwrap();
            i32::from(ended != WaitStatus::Signaled(child, Signal::SIGTERM, false) || !stop_requested())
        });
        assert!(wait_for_children(&[child.unwrap()]));
    }

    #[test]
    fn a_stop_signal_that_the_parent_of_a_program_blocks_is_heeded_also_if_it_came_before() {
        let child = fork_child(|| {
            SigSet::from(Signal::SIGTERM).thread_block().unwrap();
            nix::sys::signal::raise(Signal::SIGTERM).unwrap();
            handle_stop_signals().unwrap();
            i32::from(!stop_requested())
        });
        assert!(wait_for_children(&[child.unwrap()]));
    }

    #[test]
    fn a_second_stop_signal_of_a_kind_ends_a_process_that_handles_the_first() {
        use nix::sys::signal::raise;
        use nix::sys::wait::{WaitStatus, waitpid};
        let child = fork_child(|| {
            handle_first_stop_signals().unwrap();
            for signal in [Signal::SIGTERM, Signal::SIGINT] {
                raise(signal).unwrap();
            }
            // What is noted is the first of them.
            if stop_signal() == Some(Signal::SIGTERM as u32) {
                raise(Signal::SIGINT).unwrap();
            }
            0
        })
        .unwrap();
        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Signaled(child, Signal::SIGINT, false));
    }

    #[test]
    fn signals_within_a_second_of_the_first_are_one_request_to_stop() {
        let next = AtomicU64::new(0);
        let begins = |ms: u64| begins_request(&next, ms * 1_000_000);
        // From the start of the first request, however many signals follow: whoever does not let go is heard.
        let moments = [5_000, 5_050, 5_999, 6_000, 6_900, 7_000, 7_500, 60_000];
        assert_eq!(moments.map(begins), [true, false, false, true, false, true, false, true]);
        // A handler that was interrupted after it had looked at the clock.
        assert!(!begins(59_999));
    }

    #[test]
    fn neither_the_warning_of_a_batch_system_nor_the_end_that_it_has_warned_of_is_a_request_to_stop() {
        let child = fork_child(|| {
            let begins = |signal| {
                // As if it came seconds later.
                NEXT_REQUEST_NS.store(0, Relaxed);
                let before = stop_requests();
                note_stop(signal);
                stop_requests() != before
            };
            let begun = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM, libc::SIGTERM, libc::SIGUSR1].map(begins);
            // A repetition of the warning within a second is not yet the end.
            note_stop(libc::SIGTERM);
            let ended = begins(libc::SIGTERM);
            i32::from(begun != [false, false, false, true, false] || ended)
        });
        assert!(wait_for_children(&[child.unwrap()]));
    }
}
