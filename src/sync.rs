//! Atomics, futex waits and pauses for what processes share. The models of the protocol (`tests/models`) replace this
//! module by one that explores every order.
//!
//! Everything that processes share is one of these atomics inside the segment. Waiting goes through the kernel's
//! non-private futex, always with a timeout, so that a lost wake-up or a dead waker costs milliseconds and never a
//! hang.

use std::num::NonZeroU32;
use std::time::Duration;

use rustix::thread::futex;

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub use std::thread::sleep;

/// Sleep until `word` differs from `seen`, a waker calls [`wake_all`], or `timeout` passes.
///
/// Spurious returns are allowed: callers re-check what they wait for.
pub fn wait_while_equal(word: &AtomicU32, seen: u32, timeout: Duration) {
    let timeout =
        futex::Timespec { tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(timeout.subsec_nanos()) };
    // Without `Flags::PRIVATE`, since waiter and waker may be different processes. EAGAIN (the word has changed
    // already), EINTR and ETIMEDOUT all mean "look again".
    let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&timeout));
}

/// As [`wait_while_equal`], but a call of [`wake_some`] wakes the sleeper only if it names one of the sleeper's
/// `bits`. Returns at once if `bits` is 0.
pub fn wait_as(word: &AtomicU32, bits: u32, seen: u32, timeout: Duration) {
    let Some(bits) = NonZeroU32::new(bits) else { return };
    // Unlike the plain wait, this call takes the moment at which to give up, and not a duration.
    let give_up_ns = monotonic_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let give_up = futex::Timespec {
        tv_sec: i64::try_from(give_up_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (give_up_ns % 1_000_000_000).cast_signed(),
    };
    let _ = futex::wait_bitset(word, futex::Flags::empty(), seen, Some(&give_up), bits);
}

/// Wake every process that sleeps on `word`.
pub fn wake_all(word: &AtomicU32) {
    // The call cannot fail for a mapped, aligned word, and the sleepers' timeouts cover what it would lose.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

/// Wake the processes that sleep on `word` with one of these bits. If `bits` is 0, the kernel is not called.
pub fn wake_some(word: &AtomicU32, bits: u32) {
    let _ = NonZeroU32::new(bits).map(|bits| futex::wake_bitset(word, futex::Flags::empty(), u32::MAX >> 1, bits));
}

/// Nanoseconds of the clock that all processes of one boot share and that never jumps.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
