//! Who answers for a run in memory whose supervisor was killed, and who takes it over.
//!
//! The sentinel becomes the keeper of the run. From then on nobody changes the segment but a new supervisor that adopts it. One word
//! decides who may: whoever wants to adopt the run, and whoever wants it on the disk instead, brings it from nobody to a name by
//! compare-and-swap, and all others find that they came late. The keeper stays until the adopter lets it go and watches it meanwhile: one
//! that dies has left the rows of the replay as they were, everything else is on the disk, and the keeper offers the run anew. A word that
//! names a dead adopter is changed by the keeper alone, so that at each moment one process answers for the segment: the keeper for as long
//! as its own word names it, then the adopter, or the adopter's sentinel.

use super::named::NamedProcess;
use crate::sync::{AtomicU64, Ordering};

/// In the adopter's word: nobody may adopt the run, which is being written to the disk. No process has this name.
const TO_DISK: u64 = u64::MAX;

/// What is to become of a run that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nobody has said.
    Nothing,
    /// This process takes it over.
    By(NamedProcess),
    /// It is to be written to the disk.
    OnDisk,
}

/// The two words.
#[derive(Clone, Copy)]
pub struct Keeping<'a> {
    keeper: &'a AtomicU64,
    adopter: &'a AtomicU64,
}

impl<'a> Keeping<'a> {
    pub(super) fn new(keeper: &'a AtomicU64, adopter: &'a AtomicU64) -> Self {
        Self { keeper, adopter }
    }

    /// Be the keeper, and offer the run. By the sentinel of a run that has no keeper. Returns the keeper's name.
    pub fn begin(self) -> NamedProcess {
        self.adopter.store(0, Ordering::Relaxed);
        let name = NamedProcess::this();
        // Release: whoever finds a keeper finds nobody's wish of before.
        self.keeper.store(name.word(), Ordering::Release);
        name
    }

    /// Who keeps the run, if somebody does.
    pub fn keeper(self) -> Option<NamedProcess> {
        // Acquire: pairs with the Release in `begin` and `let_keeper_go`.
        NamedProcess::from_word(self.keeper.load(Ordering::Acquire))
    }

    /// Whether somebody keeps the run who has not died meanwhile.
    pub fn is_kept(self) -> bool {
        self.keeper().is_some_and(|keeper| !keeper.has_ended())
    }

    /// What is to become of the run.
    pub fn wanted(self) -> Wanted {
        // Acquire: what is wanted after the keeper was let go tells it that it was, since the exchange leaves what was released before it.
        match self.adopter.load(Ordering::Acquire) {
            0 => Wanted::Nothing,
            TO_DISK => Wanted::OnDisk,
            name => NamedProcess::from_word(name).map_or(Wanted::Nothing, Wanted::By),
        }
    }

    /// Adopt the run, by the process with this name. It may be another life of the run by now, and nobody keep it: who has adopted it looks
    /// at [`Self::keeper`] before it does anything.
    ///
    /// # Errors
    /// Somebody came before.
    pub fn adopt(self, name: NamedProcess) -> Result<(), Wanted> {
        self.want(name.word())
    }

    /// Have the run written to the disk.
    ///
    /// # Errors
    /// Somebody came before.
    pub fn write_to_disk(self) -> Result<(), Wanted> {
        self.want(TO_DISK)
    }

    fn want(self, word: u64) -> Result<(), Wanted> {
        // Acquire: the winner finds all that the keeper has put right. It has done nothing yet itself that others would have to find.
        self.adopter.compare_exchange(0, word, Ordering::Acquire, Ordering::Relaxed).map(drop).map_err(|_| self.wanted())
    }

    /// Offer the run anew after the death of its adopter, or where the disk has not taken it. By its keeper.
    pub fn offer_again(self) {
        // Release: whoever adopts it now finds what the keeper has put right.
        self.adopter.store(0, Ordering::Release);
    }

    /// Answer for the run from here on. By its adopter.
    pub fn let_keeper_go(self) {
        // Release, and first: a keeper that finds itself let go, and a sentinel that finds no keeper, find a run that is whole. Who dies
        // between the two leaves a name that `begin` takes away.
        self.keeper.store(0, Ordering::Release);
        // Release: whoever wants something from here on finds that nobody keeps the run, and so does the keeper that finds the wish.
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
        let this = keeping.begin();
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
