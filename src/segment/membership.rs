//! Which learners learn together, and which of them leads.
//!
//! A *view* is a set of learners with an epoch and a leader, in one word, so that nobody reads half of one. Only the
//! supervisor makes views: when it is about to start a learner, and when the kernel has said that one is dead.
//!
//! **The longest-standing member leads.** A living leader therefore stays leader and newcomers follow. Two things
//! depend on it:
//!
//! * *Nobody publishes beside another.* A learner publishes only under a view that names it, and another one is named
//!   only once the kernel has confirmed that the one before is dead. Of all processes that ever led, only the leader
//!   can be alive: one that was stopped in the middle of a publication is still the leader when it wakes up, or never
//!   wakes up.
//! * *Nothing is lost that a living member knows.* No round of a view is completed without all its members. A member
//!   that has once taken part is therefore at most one update behind any other, however long it stood still. When the
//!   leader dies, the next in order either has taken part, and goes on from its own memory; or it has not, and goes on
//!   from the newest state on the learner board. Those who entered after it know no more: since it entered, they have
//!   completed no round, and what they hold they read from that board.
//!
//! The next leader sees all that the dead one stored: it happened before the kernel reported the death, that before the
//! supervisor stored the view (Release), and that before the next leader loaded it (Acquire).

use super::shared_words::{high, low};
use crate::sync::{AtomicU64, Ordering};

/// Learners that a view has room for.
pub const MOST_LEARNERS: usize = 32;
/// Bits of the leader's number in the upper half of the word. The bits of the doublings are above them, and the epoch
/// has the rest.
const LEADER_BITS: u32 = 5;
const DOUBLING_BITS: u32 = 4;
const _: () = assert!(1 << LEADER_BITS == MOST_LEARNERS);
/// How often the configured batch can be halved. It can be doubled once less.
pub const MOST_HALVINGS: i8 = 1 << (DOUBLING_BITS - 1);
/// Epochs before they repeat: a learner would have to stand still through all of them to take one for another.
const EPOCHS: u32 = 1 << (u32::BITS - LEADER_BITS - DOUBLING_BITS);
/// Bits of a round in an arrival word: what the epoch and the mark of an arrival leave.
const ROUND_BITS: u32 = u64::BITS - 1 - EPOCHS.trailing_zeros();

/// The learners that take part and how large their batch is, as the supervisor last said.
///
/// ```text
/// | epoch: 23 bits | doublings: 4 | leader: 5 | members: one bit for each of 32 |
/// ```
///
/// The batch is in it so that all learners change it in the same round: the parts of an update belong to one view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// Raised with every change.
    pub epoch: u32,
    /// One bit per learner.
    pub members: u32,
    /// The member that publishes; `None` without members.
    pub leader: Option<usize>,
    /// How often the configured batch is doubled; negative if it is halved. At least `-MOST_HALVINGS` and below
    /// [`MOST_HALVINGS`].
    pub doublings: i8,
}

impl View {
    /// The view in a membership word.
    pub fn load(word: &AtomicU64) -> Self {
        // Acquire: pairs with the Release of `store`; see the top of this file for what a leader sees through it.
        let value = word.load(Ordering::Acquire);
        let (members, leader) = (low(value), high(value) % (1 << LEADER_BITS));
        // In a view without members, and in a word that is no view, the field means nothing.
        let leader = (members >> leader & 1 == 1).then_some(leader as usize);
        let doublings = doublings_of((high(value) >> LEADER_BITS) % (1 << DOUBLING_BITS));
        Self { epoch: high(value) >> (LEADER_BITS + DOUBLING_BITS), members, leader, doublings }
    }

    /// Make this the view. Only the supervisor does.
    pub fn store(self, word: &AtomicU64) {
        let leader = self.leader.unwrap_or(0) as u64;
        let doublings = u64::from(self.doublings.cast_unsigned()) % (1 << DOUBLING_BITS);
        let upper = u64::from(self.epoch) << (LEADER_BITS + DOUBLING_BITS) | doublings << LEADER_BITS | leader;
        // Release: a learner that acts on the view sees what the supervisor knew when it made it, the deaths above all.
        word.store(upper << u32::BITS | u64::from(self.members), Ordering::Release);
    }

    /// The numbers of the members, ascending.
    pub fn learners(self) -> impl Iterator<Item = usize> {
        (0..MOST_LEARNERS).filter(move |&learner| self.members >> learner & 1 == 1)
    }

    /// The view with `learner` as its only member: for a learner of a half of the algorithm.
    pub fn alone(self, learner: usize) -> Self {
        let members = self.members & 1 << learner;
        Self { members, leader: (members != 0).then_some(learner), ..self }
    }

    /// Whether `learner` takes part.
    pub fn contains(self, learner: usize) -> bool {
        self.learners().any(|member| member == learner)
    }

    /// The batch of all learners together, in transitions, if the configured one has `configured`.
    pub fn batch_size(self, configured: usize) -> usize {
        let times = u32::from(self.doublings.unsigned_abs());
        if self.doublings < 0 { configured >> times } else { configured << times }
    }

    /// The arrival word of a round of this view.
    pub(super) fn stamp(self, round: u64) -> u64 {
        // The highest bit tells an arrival from the zero that every word starts with.
        1 << 63 | u64::from(self.epoch) << ROUND_BITS | (round % (1 << ROUND_BITS))
    }
}

/// The doublings from their bits of the word, a number in two's complement: a word of zeros doubles nothing.
// No truncation: the bits are fewer than eight.
const fn doublings_of(bits: u32) -> i8 {
    const UNUSED: u32 = u8::BITS - DOUBLING_BITS;
    ((bits << UNUSED) as u8).cast_signed() >> UNUSED
}

/// The learners in the order in which they entered. Only the supervisor keeps one.
#[derive(Debug, Default)]
pub struct Membership {
    epoch: u32,
    members: Vec<usize>,
    doublings: i8,
}

impl Membership {
    /// The view in which `learner`, whose process is about to be started, is the last to have entered.
    ///
    /// # Panics
    /// When it is a member already, or its number is not below [`MOST_LEARNERS`].
    pub fn enter(&mut self, learner: usize) -> View {
        assert!(learner < MOST_LEARNERS, "learner {learner}, and a view has room for {MOST_LEARNERS}");
        assert!(!self.members.contains(&learner), "learner {learner} is a member already");
        self.members.push(learner);
        self.next()
    }

    /// The view without `learner`, whose process the kernel has said is dead.
    pub fn remove(&mut self, learner: usize) -> View {
        self.members.retain(|&member| member != learner);
        self.next()
    }

    /// The view in which the same learners take the configured batch doubled `doublings` times.
    ///
    /// # Panics
    /// If a view has no room for so many doublings.
    pub fn double(&mut self, doublings: i8) -> View {
        assert!((-MOST_HALVINGS..MOST_HALVINGS).contains(&doublings), "{doublings} doublings, and a view has room for {MOST_HALVINGS}");
        self.doublings = doublings;
        self.next()
    }

    /// The members, the one that has been in longest first. That one leads, and each of the others once those before
    /// it are removed.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    fn next(&mut self) -> View {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let members = self.members.iter().fold(0, |members, &learner| members | 1 << learner);
        View { epoch: self.epoch, members, leader: self.members.first().copied(), doublings: self.doublings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_survives_its_word() {
        let word = AtomicU64::new(0);
        assert_eq!(View::load(&word), View::default());
        for view in [
            View { epoch: 7, members: 0b110, leader: Some(2), doublings: 0 },
            View { epoch: EPOCHS - 1, members: u32::MAX, leader: Some(31), doublings: -1 },
            View { epoch: 1, members: 0, leader: None, doublings: MOST_HALVINGS - 1 },
            View { epoch: 1, members: 1, leader: Some(0), doublings: -MOST_HALVINGS },
        ] {
            view.store(&word);
            assert_eq!(View::load(&word), view);
        }
        word.store(3 << 32 | 0b11, Ordering::Relaxed);
        assert_eq!(View::load(&word).leader, None, "learner 3 is no member");
    }

    #[test]
    fn whoever_has_been_in_longest_leads() {
        let mut membership = Membership::default();
        assert_eq!(membership.enter(0), View { epoch: 1, members: 0b1, leader: Some(0), doublings: 0 });
        assert_eq!(membership.enter(1), View { epoch: 2, members: 0b11, leader: Some(0), doublings: 0 });
        assert_eq!(membership.remove(0), View { epoch: 3, members: 0b10, leader: Some(1), doublings: 0 });
        assert_eq!(membership.enter(0).leader, Some(1), "the replacement follows");
        assert_eq!(membership.enter(2).leader, Some(1));
        assert_eq!(membership.remove(1), View { epoch: 6, members: 0b101, leader: Some(0), doublings: 0 });
        assert_eq!(membership.remove(0).leader, Some(2));
        assert_eq!(membership.remove(2), View { epoch: 8, members: 0, leader: None, doublings: 0 });
        assert_eq!(membership.enter(1).leader, Some(1));
    }

    #[test]
    fn a_batch_changes_with_a_view_of_the_same_members_and_stays_for_those_that_enter() {
        let mut membership = Membership::default();
        membership.enter(0);
        let larger = membership.double(2);
        assert_eq!(larger, View { epoch: 2, members: 0b1, leader: Some(0), doublings: 2 });
        assert_eq!([larger.batch_size(96), membership.enter(1).batch_size(96), membership.double(-3).batch_size(96)], [384, 384, 12]);
    }

    #[test]
    fn epochs_begin_anew_and_rounds_of_different_views_differ() {
        let mut membership = Membership { epoch: EPOCHS - 2, ..Membership::default() };
        assert_eq!([membership.enter(4).epoch, membership.enter(31).epoch], [EPOCHS - 1, 0]);
        let view = |epoch| View { epoch, members: 1, leader: Some(0), doublings: 0 };
        let stamps = [view(0).stamp(0), view(0).stamp(1), view(1).stamp(0), view(EPOCHS - 1).stamp(0), view(EPOCHS - 1).stamp(u64::MAX)];
        for (index, stamp) in stamps.into_iter().enumerate() {
            assert_ne!(stamp, 0);
            assert!(!stamps[..index].contains(&stamp), "{stamps:x?}");
        }
    }
}
