//! A thread that gets the next batch ready while the current one trains.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::SourceError;

/// Time between two looks at whether it is still worth waiting.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread that makes one thing at a time: it is asked for now, and taken later.
pub(super) struct Prefetch<'a, Asked, Made> {
    requests: SyncSender<Asked>,
    made: Receiver<Made>,
    /// What was made and received from the thread, and waits to be taken.
    arrived: Cell<Option<Made>>,
    is_working: bool,
    is_given_up: Arc<AtomicBool>,
    thread: Option<ScopedJoinHandle<'a, ()>>,
}

impl<'a, Asked: Send + 'a, Made: Send + 'a> Prefetch<'a, Asked, Made> {
    /// Start the thread, which ends once this is dropped. `make` may take long; it asks the function that it gets, now
    /// and then, whether the result is still wanted.
    pub(super) fn start(
        threads: &'a Scope<'a, '_>,
        mut make: impl FnMut(Asked, &dyn Fn() -> bool) -> Made + Send + 'a,
    ) -> Result<Self, SourceError> {
        let (requests, incoming) = sync_channel::<Asked>(1);
        let (outgoing, made) = sync_channel(1);
        let is_given_up = Arc::new(AtomicBool::new(false));
        let given_up = is_given_up.clone();
        let work = move || {
            // Relaxed: no other memory is read because of this flag.
            let is_wanted = || !given_up.load(Ordering::Relaxed);
            for asked in incoming {
                if outgoing.send(make(asked, &is_wanted)).is_err() {
                    break;
                }
            }
        };
        let thread = Builder::new().name("batches".into()).spawn_scoped(threads, work);
        let thread = Some(thread.map_err(|source| SourceError::Thread { source })?);
        Ok(Self { requests, made, arrived: Cell::new(None), is_working: false, is_given_up, thread })
    }

    /// Whether something is being made, or waits to be taken.
    pub(super) fn is_working(&self) -> bool {
        self.is_working
    }

    /// Ask for the next thing, after the last one was taken.
    pub(super) fn request(&mut self, asked: Asked) {
        // If the thread has ended, `take` finds that, and why.
        drop(self.requests.send(asked));
        self.is_working = true;
    }

    /// Whether what was asked for can be taken at once.
    pub(super) fn has_arrived(&self) -> bool {
        self.arrives_within(Duration::ZERO)
    }

    /// Wait until what was asked for can be taken. `idle` is called now and then, and may end the waiting by returning
    /// `false`, which is then the answer.
    pub(super) fn wait(&self, idle: &mut dyn FnMut() -> bool) -> bool {
        while !self.arrives_within(PAUSE) {
            if !idle() {
                return false;
            }
        }
        true
    }

    /// Whether [`Self::take`] need not wait, after `patience` at most. It need not wait for a thread that has ended
    /// either, and returns an error then.
    fn arrives_within(&self, patience: Duration) -> bool {
        let (arrived, need_not_wait) = match self.arrived.take().map_or_else(|| self.made.recv_timeout(patience), Ok) {
            Ok(made) => (Some(made), true),
            Err(error) => (None, error == RecvTimeoutError::Disconnected),
        };
        self.arrived.set(arrived);
        need_not_wait
    }

    /// Take what was asked for, as soon as it is made.
    pub(super) fn take(&mut self) -> Result<Made, SourceError> {
        self.is_working = false;
        if let Some(made) = self.arrived.take() {
            return Ok(made);
        }
        self.made.recv().map_err(|_| {
            // If nobody joins a thread that has panicked, its scope panics with a message of its
            // own, which hides the first.
            if let Some(Err(panic)) = self.thread.take().map(ScopedJoinHandle::join) {
                resume_unwind(panic);
            }
            SourceError::ThreadEnded
        })
    }
}

impl<Asked, Made> Drop for Prefetch<'_, Asked, Made> {
    fn drop(&mut self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_asked_for_is_made_once_and_waited_for_as_long_as_somebody_wishes() {
        let (start, started) = sync_channel(0);
        thread::scope(|threads| {
            let mut prefetch = Prefetch::start(threads, move |asked: u32, _: &dyn Fn() -> bool| {
                started.recv().unwrap();
                asked + 1
            })
            .unwrap();
            prefetch.request(1);
            let mut looks = 0;
            assert!(!prefetch.has_arrived());
            assert!(!prefetch.wait(&mut || {
                looks += 1;
                looks < 3
            }));
            start.send(()).unwrap();
            assert!(prefetch.wait(&mut || true) && prefetch.has_arrived() && prefetch.is_working());
            assert_eq!(prefetch.take().unwrap(), 2);
            assert!(!prefetch.is_working() && !prefetch.has_arrived());
        });
    }

    #[test]
    fn what_nobody_wants_any_more_is_given_up() {
        // Without that the scope would wait until the watchdog, a minute, says so.
        thread::scope(|threads| {
            let wait = |(): (), is_wanted: &dyn Fn() -> bool| {
                let begin = Instant::now();
                while is_wanted() {
                    assert!(begin.elapsed() < Duration::from_secs(60), "it is still wanted");
                    thread::yield_now();
                }
            };
            let mut prefetch = Prefetch::start(threads, wait).unwrap();
            prefetch.request(());
        });
    }

    #[test]
    fn what_the_thread_said_when_it_panicked_is_what_the_learner_says() {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|threads| {
                let mut prefetch = Prefetch::start(threads, |(): (), _: &dyn Fn() -> bool| panic!("out of batches")).unwrap();
                prefetch.request(());
                assert!(prefetch.wait(&mut || true), "nobody waits for a thread that has ended");
                prefetch.take()
            })
        }));
        let said = panic.expect_err("the thread panicked");
        assert_eq!(said.downcast_ref::<&str>(), Some(&"out of batches"));
    }
}
