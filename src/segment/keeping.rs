//! Who answers for a run in memory whose supervisor was killed, and who takes it over.
//!
//! The sentinel becomes the keeper of the run. From then on nobody changes the segment but a new supervisor that
//! adopts the run. One word, the adopter's, decides what becomes of it. A process that wants to adopt the run, or to
//! have it written to the disk instead, changes the word from nobody to its wish by compare-and-swap, and all others
//! find that they came late.
//!
//! The keeper stays, and watches the adopter, until the adopter lets it go. An adopter that dies before that has left
//! the rows of the replay as they were, and everything else is on the disk: the keeper offers the run again. The
//! keeper alone changes a word that names a dead adopter. So one process answers for the segment at each moment: the
//! keeper for as long as its own word names it, then the adopter, or the adopter's sentinel.

use super::named_process::NamedProcess;
use crate::sync::{AtomicU64, Ordering};

/// In the adopter's word: nobody may adopt the run any more, since it is to be written to the disk. No process has
/// this name.
const TO_DISK: u64 = u64::MAX;

/// What is to become of a run that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Not decided yet.
    Nothing,
    /// The process with this name adopts it.
    By(NamedProcess),
    /// It is to be written to the disk.
    OnDisk,
}

/// The words that name the keeper and the adopter.
#[derive(Clone, Copy)]
pub struct Keeping<'a> {
    keeper: &'a AtomicU64,
    adopter: &'a AtomicU64,
}

impl<'a> Keeping<'a> {
    pub(super) fn new(keeper: &'a AtomicU64, adopter: &'a AtomicU64) -> Self {
        Self { keeper, adopter }
    }

    /// Become the keeper, and offer the run. By the sentinel of a run that has no keeper. Returns the keeper's name.
    pub fn become_keeper(self) -> NamedProcess {
        self.adopter.store(0, Ordering::Relaxed);
        let name = NamedProcess::this();
        // Release: a process that finds this keeper does not find a wish from before.
        self.keeper.store(name.word(), Ordering::Release);
        name
    }

    /// The process that keeps the run, if there is one.
    pub fn keeper(self) -> Option<NamedProcess> {
        // Acquire: pairs with the Release in `become_keeper` and `let_keeper_go`.
        NamedProcess::from_word(self.keeper.load(Ordering::Acquire))
    }

    /// Whether a living process keeps the run.
    pub fn is_kept(self) -> bool {
        self.keeper().is_some_and(|keeper| !keeper.has_ended())
    }

    /// What is to become of the run.
    pub fn wanted(self) -> Wanted {
        // Acquire: a keeper that finds a wish from after it was let go also finds that it was let go, since the
        // compare-and-swap of the wish continues the release sequence of `let_keeper_go`.
        match self.adopter.load(Ordering::Acquire) {
            0 => Wanted::Nothing,
            TO_DISK => Wanted::OnDisk,
            name => NamedProcess::from_word(name).map_or(Wanted::Nothing, Wanted::By),
        }
    }

    /// Adopt the run, for the process with this name. Another supervisor may have gone on with the run meanwhile, so
    /// that nobody keeps it: the adopter looks at [`Self::keeper`] before it does anything.
    ///
    /// # Errors
    /// What another process, which came first, wants.
    pub fn adopt(self, name: NamedProcess) -> Result<(), Wanted> {
        self.want(name.word())
    }

    /// Have the run written to the disk.
    ///
    /// # Errors
    /// What another process, which came first, wants.
    pub fn write_to_disk(self) -> Result<(), Wanted> {
        self.want(TO_DISK)
    }

    fn want(self, word: u64) -> Result<(), Wanted> {
        // Acquire: the winner finds all that the keeper has put right. No Release: it has done nothing yet that
        // others have to find.
        self.adopter.compare_exchange(0, word, Ordering::Acquire, Ordering::Relaxed).map(drop).map_err(|_| self.wanted())
    }

    /// Offer the run again, after the death of its adopter, or if it could not be written to the disk. By its keeper.
    pub fn offer_again(self) {
        // Release: a process that adopts the run now finds what the keeper has put right.
        self.adopter.store(0, Ordering::Release);
    }

    /// Answer for the run from here on. By its adopter.
    pub fn let_keeper_go(self) {
        // Release, and first: a keeper that finds itself let go, and a sentinel that finds no keeper, find a run that
        // is whole. An adopter that dies between the two stores leaves its name, which `become_keeper` takes away.
        self.keeper.store(0, Ordering::Release);
        // Release: a process that wants something from here on finds that nobody keeps the run, and so does a keeper
        // that finds the wish.
        self.adopter.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_those_who_want_a_run_gets_it_and_the_others_learn_who() {
        let words = [AtomicU64::new(0), AtomicU64::new(7)];
        let keeping = Keeping::new(&words[0], &words[1]);
        assert_eq!(keeping.keeper(), None);
        let this = keeping.become_keeper();
        assert_eq!((keeping.keeper(), keeping.wanted()), (Some(this), Wanted::Nothing));
        assert_eq!(keeping.adopt(this), Ok(()));
        let mine = Wanted::By(this);
        assert_eq!((keeping.write_to_disk(), keeping.adopt(this)), (Err(mine), Err(mine)));
        keeping.offer_again();
        assert_eq!(keeping.write_to_disk(), Ok(()));
        assert_eq!(keeping.adopt(this), Err(Wanted::OnDisk));
        keeping.let_keeper_go();
        assert_eq!((keeping.keeper(), keeping.wanted()), (None, Wanted::Nothing));
    }
}
