//! The names of the product's `sync`, for models.
//!
//! A word that takes part in a model is loom's. Other words are ordinary atomics: every thread sees an access to them
//! at once, and it decides nothing.
//!
//! loom remembers only the last access to a word to find out which orders matter. A load in between hides the access
//! before it: with a load in one thread, and a load and a store in another, loom does not try the store before the
//! first load. So every access takes a turn first, which is a change of a second word, and changes hide nothing: the
//! orders of turns are those of accesses. Turns are relaxed, and order nothing else, with one exception: a turn
//! behind a release fence, like any store there, is seen by the next acquire fence of a thread that has a later turn.
//!
//! loom knows no SeqCst accesses, only SeqCst fences. The product needs such accesses so that a process which writes
//! one word and then looks at another cannot miss a process that does it the other way round. Here a SeqCst load is
//! preceded by a fence if its thread has stored with SeqCst since its last one. So both accesses have to be SeqCst,
//! as in C11, or there is no fence.

use std::cell::Cell;
use std::panic::Location;
use std::time::Duration;

pub use std::sync::atomic::Ordering;

use crate::explore;

/// A fence.
#[track_caller]
pub fn fence(ordering: Ordering) {
    let ordering = explore::ordering(Location::caller(), ordering);
    if ordering != Ordering::Relaxed {
        loom::sync::atomic::fence(ordering);
    }
}

/// Take a turn: see the top of this file.
fn take(turns: &loom::sync::atomic::AtomicU32) {
    turns.fetch_add(1, Ordering::Relaxed);
}

loom::thread_local! {
    /// Whether this thread has stored with SeqCst and not loaded with SeqCst since.
    static HAS_STORED: Cell<bool> = Cell::new(false);
}

/// To be called before a load.
fn look(ordering: Ordering) {
    if ordering == Ordering::SeqCst && HAS_STORED.with(|has_stored| has_stored.replace(false)) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// To be called after a store.
fn have_stored(ordering: Ordering) {
    if ordering == Ordering::SeqCst {
        HAS_STORED.with(|has_stored| has_stored.set(true));
    }
}

/// The part of an ordering that concerns a load, and the part that concerns a store.
fn halves(ordering: Ordering) -> (Ordering, Ordering) {
    let load =
        if matches!(ordering, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst) { Ordering::Acquire } else { Ordering::Relaxed };
    let store =
        if matches!(ordering, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst) { Ordering::Release } else { Ordering::Relaxed };
    (load, store)
}

macro_rules! atomic {
    ($name:ident, $value:ty, $sleepers:expr) => {
        /// A word that processes share.
        pub struct $name(Word<loom::sync::atomic::$name, std::sync::atomic::$name>);

        impl $name {
            /// A word that takes no part in a model.
            pub fn new(value: $value) -> Self {
                Self(Word::Apart(std::sync::atomic::$name::new(value)))
            }

            /// A word of which a model explores every access.
            pub fn explored(value: $value) -> Self {
                let turns = loom::sync::atomic::AtomicU32::new(0);
                Self(Word::Explored { word: loom::sync::atomic::$name::new(value), turns, sleepers: $sleepers })
            }

            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                match &self.0 {
                    Word::Apart(word) => word.load(Ordering::SeqCst),
                    Word::Explored { word, turns, .. } => {
                        let ordering = explore::ordering(Location::caller(), ordering);
                        look(ordering);
                        take(turns);
                        word.load(halves(ordering).0)
                    }
                }
            }

            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                match &self.0 {
                    Word::Apart(word) => word.store(value, Ordering::SeqCst),
                    Word::Explored { word, turns, .. } => {
                        let ordering = explore::ordering(Location::caller(), ordering);
                        take(turns);
                        word.store(value, halves(ordering).1);
                        have_stored(ordering);
                    }
                }
            }

            /// Read and write at once. `new` maps the old value to what is written, if anything; `whole` is the same
            /// operation of loom's. Returns the old value: as an error if nothing was written.
            fn change(
                &self,
                ordering: Ordering,
                caller: &'static Location<'static>,
                new: impl Fn($value) -> Option<$value>,
                whole: impl Fn(&loom::sync::atomic::$name, Ordering) -> Result<$value, $value>,
            ) -> Result<$value, $value> {
                let (word, turns) = match &self.0 {
                    Word::Apart(word) => return word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new),
                    Word::Explored { word, turns, .. } => (word, turns),
                };
                let is_torn = explore::is_torn(caller);
                let ordering = explore::ordering(caller, ordering);
                look(ordering);
                take(turns);
                let answer = if is_torn {
                    let (load, store) = halves(ordering);
                    let old = word.load(load);
                    take(turns);
                    new(old).map(|new| word.store(new, store)).map(|()| old).ok_or(old)
                } else {
                    whole(word, if ordering == Ordering::SeqCst { Ordering::AcqRel } else { ordering })
                };
                have_stored(ordering);
                answer
            }

            /// As [`Self::change`], if something is always written.
            fn replace(
                &self,
                ordering: Ordering,
                caller: &'static Location<'static>,
                new: impl Fn($value) -> $value,
                whole: impl Fn(&loom::sync::atomic::$name, Ordering) -> $value,
            ) -> $value {
                let (Ok(old) | Err(old)) = self.change(ordering, caller, |old| Some(new(old)), |word, ordering| Ok(whole(word, ordering)));
                old
            }

            #[track_caller]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.replace(ordering, Location::caller(), |_| value, |word, ordering| word.swap(value, ordering))
            }

            #[track_caller]
            pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                self.replace(ordering, Location::caller(), |old| old.wrapping_add(value), |word, ordering| word.fetch_add(value, ordering))
            }

            #[track_caller]
            pub fn fetch_max(&self, value: $value, ordering: Ordering) -> $value {
                self.replace(ordering, Location::caller(), |old| old.max(value), |word, ordering| word.fetch_max(value, ordering))
            }

            #[track_caller]
            pub fn fetch_or(&self, value: $value, ordering: Ordering) -> $value {
                self.replace(ordering, Location::caller(), |old| old | value, |word, ordering| word.fetch_or(value, ordering))
            }

            #[track_caller]
            pub fn compare_exchange(&self, old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                let replaced = |found: $value| (found == old).then_some(new);
                self.change(success, Location::caller(), replaced, |word, ordering| {
                    word.compare_exchange(old, new, ordering, halves(failure).0)
                })
            }

            #[track_caller]
            pub fn compare_exchange_weak(&self, old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                self.compare_exchange(old, new, success, failure)
            }
        }
    };
}

enum Word<E, A> {
    Explored { word: E, turns: loom::sync::atomic::AtomicU32, sleepers: Option<Sleepers> },
    Apart(A),
}

/// The calls to those that sleep on a word, counted.
#[derive(Default)]
struct Sleepers(loom::sync::atomic::AtomicU32);

impl Sleepers {
    /// The newest count. The kernel looks at a word, puts a process to sleep and wakes it under one lock, so this is
    /// a read-modify-write that orders.
    fn calls(&self) -> u32 {
        self.0.fetch_add(0, Ordering::AcqRel)
    }
}

atomic!(AtomicU32, u32, Some(Sleepers::default()));
atomic!(AtomicU64, u64, None);

/// Sleep until `word` differs from `seen` or a waker calls. There is no timeout here: a thread that is never called
/// waits for ever, and the checker reports that.
pub fn wait_while_equal(word: &AtomicU32, seen: u32, _: Duration) {
    let Word::Explored { word, turns, sleepers: Some(sleepers) } = &word.0 else { return loom::thread::yield_now() };
    let calls = sleepers.calls();
    take(turns);
    if word.load(Ordering::Acquire) == seen {
        while sleepers.calls() == calls {
            loom::thread::yield_now();
        }
    }
}

/// As [`wait_while_equal`], whatever the bits: a thread that is woken needlessly looks again.
pub fn wait_as(word: &AtomicU32, _: u32, seen: u32, timeout: Duration) {
    wait_while_equal(word, seen, timeout);
}

/// Wake every thread that sleeps on `word`.
pub fn wake_all(word: &AtomicU32) {
    if let Word::Explored { sleepers: Some(sleepers), .. } = &word.0 {
        sleepers.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// As [`wake_all`], if `bits` is not 0.
pub fn wake_some(word: &AtomicU32, bits: u32) {
    if bits != 0 {
        wake_all(word);
    }
}

/// Let other threads go on.
pub fn spin_loop() {
    loom::thread::yield_now();
}

/// Let other threads go on.
pub fn sleep(_: Duration) {
    loom::thread::yield_now();
}

/// The clock stands still: nothing may depend on it.
pub fn monotonic_ns() -> u64 {
    1
}
