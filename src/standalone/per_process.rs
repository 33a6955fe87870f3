//! State that every process has for itself: the child of a fork makes its own.
//!
//! A fork copies locks as they are, also locks that another thread holds at that moment. That thread does not exist
//! in the child, so nobody would ever release them there, and what they guard may be half changed.

use std::sync::OnceLock;

use once_cell::race::OnceBox;

use crate::segment::system::forks;

/// A `T` for this process, one for its child, one for the child's child.
pub(super) struct PerProcess<T> {
    /// What `forks` returns in the process that this state belongs to.
    forks: u32,
    state: OnceLock<T>,
    /// The state of a child. It is made without waiting for any thread, so a fork at any moment finds it made or not
    /// made.
    next: OnceBox<PerProcess<T>>,
}

impl<T> PerProcess<T> {
    /// The first state, which belongs to this process.
    pub(super) fn new(state: T) -> Self {
        Self { forks: forks(), state: OnceLock::from(state), next: OnceBox::new() }
    }

    /// The state of this process. A child makes its own once, by `make` from the inherited state, which may be locked
    /// for ever.
    pub(super) fn get(&self, make: impl FnOnce(&T) -> T) -> &T {
        let now = forks();
        let mut node = self;
        let mut inherited = self.state.get();
        while node.forks != now {
            node = node.next.get_or_init(|| Box::new(Self { forks: now, state: OnceLock::new(), next: OnceBox::new() }));
            if node.forks != now {
                inherited = node.state.get().or(inherited);
            }
        }
        // Threads of this process may wait for each other here: this lock was made after the process's own fork.
        node.state.get_or_init(|| make(inherited.expect("the first state is made with this")))
    }

    /// The state of this process, if it has made one.
    pub(super) fn existing(&self) -> Option<&T> {
        let now = forks();
        let mut node = self;
        while node.forks != now {
            node = node.next.get()?;
        }
        node.state.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::segment::system::{count_forks, fork_child, wait_for_children};

    #[test]
    fn a_child_and_its_child_make_states_of_their_own_whatever_was_locked() {
        count_forks();
        let state = PerProcess::new(Mutex::new(1));
        // As by a thread that the child does not have.
        let held = state.get(|_| unreachable!()).lock().unwrap();
        let child = fork_child(|| {
            assert!(state.existing().is_none());
            let own = state.get(|inherited| Mutex::new(if inherited.try_lock().is_err() { 2 } else { 0 }));
            assert_eq!(*own.lock().unwrap(), 2);
            let held = own.lock().unwrap();
            let grandchild = fork_child(|| {
                assert_eq!(*state.get(|inherited| Mutex::new(if inherited.try_lock().is_err() { 3 } else { 0 })).lock().unwrap(), 3);
                assert!(std::ptr::eq(state.get(|_| unreachable!()), state.existing().unwrap()));
                0
            });
            drop(held);
            i32::from(!wait_for_children(&[grandchild.unwrap()]))
        });
        drop(held);
        assert!(wait_for_children(&[child.unwrap()]));
        assert_eq!(*state.existing().unwrap().lock().unwrap(), 1);
    }
}
