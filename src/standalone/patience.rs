//! Waiting that ends: by a time limit, by Ctrl+C, and when nobody is left to end it otherwise.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::StandaloneError;

/// Pause between two looks at a lock that another thread of this process holds: operations take microseconds.
const PAUSE: Duration = Duration::from_micros(100);

/// How long a caller lets itself be held back, and how it says that it no longer wants to.
pub struct Patience<'p> {
    /// When it ends; `None`: never.
    deadline: Option<Instant>,
    /// Asked every few milliseconds; `false` gives up.
    go_on: &'p mut dyn FnMut() -> bool,
}

/// Why a wait was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The caller was interrupted.
    Interrupted,
    /// Its time was up.
    Late,
}

impl<'p> Patience<'p> {
    /// For `timeout` from now on, `None` for ever, and as long as `go_on` says so.
    pub fn new(timeout: Option<Duration>, go_on: &'p mut dyn FnMut() -> bool) -> Self {
        Self { deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)), go_on }
    }

    /// Whether no time limit ends it.
    pub(super) fn is_endless(&self) -> bool {
        self.deadline.is_none()
    }

    /// Why to wait no longer, if there is a reason.
    pub(super) fn given_up(&mut self) -> Option<GivenUp> {
        if !(self.go_on)() {
            Some(GivenUp::Interrupted)
        } else {
            self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(GivenUp::Late)
        }
    }

    /// Lock `mutex` as soon as no other thread of this process holds it.
    pub(super) fn lock<'m, T>(&mut self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, StandaloneError> {
        loop {
            if let Some(guard) = try_lock(mutex) {
                return Ok(guard);
            }
            match self.given_up() {
                None => std::thread::sleep(PAUSE),
                Some(GivenUp::Interrupted) => return Err(StandaloneError::Interrupted),
                Some(GivenUp::Late) => return Err(StandaloneError::Busy),
            }
        }
    }
}

/// Lock `mutex` if no other thread of this process holds it. A thread that panicked under the lock left at most a scratch
/// buffer unfinished, and a place in which the next operation finds that it has to be repaired first.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
