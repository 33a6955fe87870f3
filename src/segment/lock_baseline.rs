//! Why no process-shared lock guards anything in the segment: the baseline, kept as a test.
//!
//! The crate `raw_sync` puts POSIX mutexes into shared memory. They are not robust: when the owner is killed, nobody
//! can lock them again. `tests/killed/replay.rs` does the same to the replay, which goes on.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use raw_sync::Timeout;
use raw_sync::locks::{LockImpl, LockInit, Mutex};
use shared_memory::ShmemConf;

use super::system::fork_child;

/// A mutex and the word that it guards, in shared memory of their own.
fn shared_mutex() -> (shared_memory::Shmem, Box<dyn LockImpl>) {
    let memory = ShmemConf::new().size(4096).create().unwrap();
    let start = memory.as_ptr();
    let used = Mutex::size_of(Some(start));
    assert!(used + 8 <= memory.len());
    // SAFETY: `start` is a mapped page, which the mutex and the word behind it fit into; the page outlives the mutex,
    // since both are returned together and the caller drops the mutex first.
    let (mutex, _) = unsafe { Mutex::new(start, start.add(used)) }.unwrap();
    (memory, mutex)
}

#[test]
fn a_process_shared_mutex_is_lost_with_its_owner() {
    let (memory, mutex) = shared_mutex();
    assert!(mutex.try_lock(Timeout::Val(Duration::from_millis(100))).is_ok(), "a free mutex can be locked");
    let owner = fork_child(|| {
        let guard = mutex.lock().unwrap();
        // Keeps it until it is killed.
        loop {
            std::thread::sleep(Duration::from_secs(1));
            std::hint::black_box(&guard);
        }
    })
    .unwrap();
    while mutex.try_lock(Timeout::Val(Duration::from_millis(1))).is_ok() {
        std::thread::yield_now();
    }
    kill(owner, Signal::SIGKILL).unwrap();
    waitpid(owner, None).unwrap();
    for _ in 0..3 {
        assert!(mutex.try_lock(Timeout::Val(Duration::from_millis(20))).is_err(), "the dead owner's mutex could be locked");
    }
    drop(mutex);
    drop(memory);
}
