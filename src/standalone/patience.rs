//! How long a call waits at most: until a time limit, or until Ctrl+C.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::ReplayError;

/// Pause between two looks at a lock that another thread of this process holds: operations take microseconds.
const PAUSE: Duration = Duration::from_micros(100);

/// How long a caller is ready to wait, and how it says that it is no longer.
pub struct Patience<'p> {
    /// When the patience ends; `None` for never.
    deadline: Option<Instant>,
    /// Called every few milliseconds; `false` gives up.
    go_on: &'p mut dyn FnMut() -> bool,
}

/// Why a wait was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The caller was interrupted.
    Interrupted,
    /// The time limit has passed.
    Late,
}

impl<'p> Patience<'p> {
    /// Patience for `timeout` from now on, `None` for ever, and for as long as `go_on` returns `true`.
    pub fn new(timeout: Option<Duration>, go_on: &'p mut dyn FnMut() -> bool) -> Self {
        Self { deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)), go_on }
    }

    /// Whether there is no time limit.
    pub(super) fn is_endless(&self) -> bool {
        self.deadline.is_none()
    }

    /// The reason to wait no longer, if there is one.
    pub(super) fn given_up(&mut self) -> Option<GivenUp> {
        if !(self.go_on)() {
            Some(GivenUp::Interrupted)
        } else {
            self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(GivenUp::Late)
        }
    }

    /// Lock `mutex` as soon as no other thread of this process holds it.
    pub(super) fn lock<'m, T>(&mut self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, ReplayError> {
        loop {
            if let Some(guard) = try_lock(mutex) {
                return Ok(guard);
            }
            match self.given_up() {
                None => std::thread::sleep(PAUSE),
                Some(GivenUp::Interrupted) => return Err(ReplayError::Interrupted),
                Some(GivenUp::Late) => return Err(ReplayError::Busy),
            }
        }
    }
}

/// Lock `mutex` if no other thread of this process holds it, also after a panic: a thread that panicked under the
/// lock has left at most a scratch buffer unfinished, and a place that the next operation repairs first.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
