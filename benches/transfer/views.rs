//! The view, by whose word a run that fits itself tells its learners how large their batch is.

use std::cell::RefCell;

use shoal::segment::Segment;
use shoal::segment::membership::{Membership, View};
use shoal::sync::AtomicU64;

use crate::boards::{segment, sizes};
use crate::measure::{Path, Receiver, Sender};

/// Bytes of a view: one word.
pub(crate) const VIEW_BYTES: usize = 8;

/// The membership word of a run.
pub(crate) struct Views {
    segment: Segment,
    membership: RefCell<Membership>,
}

impl Views {
    pub(crate) fn new() -> Self {
        let mut membership = Membership::default();
        membership.enter(0);
        Self { segment: segment(sizes()), membership: RefCell::new(membership) }
    }
}

impl Path for Views {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(Doubling { membership: self.membership.take(), word: self.segment.control().membership() })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let word = self.segment.control().membership();
        Box::new(Obeying { word, newest: View::load(word) })
    }
}

struct Doubling<'a> {
    membership: Membership,
    word: &'a AtomicU64,
}

impl Sender for Doubling<'_> {
    fn send(&mut self, number: u64) {
        self.membership.double((number % 2) as i8).store(self.word);
    }
}

struct Obeying<'a> {
    word: &'a AtomicU64,
    newest: View,
}

impl Receiver for Obeying<'_> {
    fn look(&mut self) -> usize {
        let view = View::load(self.word);
        // Every view has an epoch of its own.
        let found = view.epoch.wrapping_sub(self.newest.epoch) as usize;
        self.newest = view;
        found.min(1)
    }
}
