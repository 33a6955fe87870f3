//! The process table: who is there, since when, what it does now and what it last said.
//!
//! Only the kernel says who is dead; a slot says who *was* alive. A process is named by its id and its start time,
//! which together are never reused within a boot.
//!
//! A slot goes Free -> Reserved -> Live -> Free, each step by compare-and-swap of one word that holds state,
//! generation and process id. Every other word of a slot is written only by the process that this word names, so a
//! step that fails has changed nothing of another process. There are three exceptions: other processes may pass over
//! a place in line, the supervisor counts replacements, and a repair announces itself in the slot of the dead
//! process.

use std::borrow::Cow;

use crate::sync::{AtomicU64, Ordering, fence, monotonic_ns};

pub use super::role::{Phase, Role};

use super::control::Control;
use super::counters::{COUNTER_WORDS, Counter, Counters};
use super::named_enum::{named_enum, numbered};
use super::pidfd::{has_exited, start_time};
use super::shared_words::{load_bytes, low, store_bytes};

/// Words of a slot: whole cache lines.
pub const SLOT_WORDS: usize = 568;
const COUNTERS: usize = 24;
/// Stands for the role in a slot that nobody has had: no role has this number.
const NO_ROLE: u64 = 0xff;
const LAST_WORDS: usize = COUNTERS + COUNTER_WORDS;
/// Room for a traceback of Python with some twenty calls.
const LAST_WORDS_BYTES: usize = 4096;
/// Stands in last words for what was cut out.
const CUT: &str = "\n[...]\n";
const _: () = assert!(LAST_WORDS + LAST_WORDS_BYTES / 8 == SLOT_WORDS && SLOT_WORDS.is_multiple_of(8));

named_enum! {
    /// Whether anybody owns a slot.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SlotState {
        /// Nobody.
        Free = "free",
        /// Promised to a process that is starting.
        Reserved = "reserved",
        /// A process.
        Live = "live",
    }
}

/// The owner of a slot: state, generation and process id, all of the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    const STATE_SHIFT: u32 = 56;
    const GENERATION_SHIFT: u32 = 32;
    const GENERATION_MASK: u64 = 0x00ff_ffff;

    fn new(state: SlotState, generation: u64, pid: u32) -> Self {
        Self((state as u64) << Self::STATE_SHIFT | (generation & Self::GENERATION_MASK) << Self::GENERATION_SHIFT | u64::from(pid))
    }

    /// Whether anybody owns the slot.
    pub fn state(self) -> SlotState {
        numbered(&SlotState::ALL, self.0 >> Self::STATE_SHIFT).unwrap_or(SlotState::Live)
    }

    /// How often the slot changed hands; a run that goes on from a checkpoint counts on.
    pub fn generation(self) -> u64 {
        self.0 >> Self::GENERATION_SHIFT & Self::GENERATION_MASK
    }

    /// The process that owns the slot, or that reserved it.
    pub fn pid(self) -> u32 {
        low(self.0)
    }
}

/// A place in the line of the processes that wait for their turn to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceInLine {
    /// Larger than the number of every process that was in line before; not 0. Two that came at once may have the same.
    pub number: u64,
    /// Whether the process inserts as soon as its turn comes, so that processes that came later wait for it.
    pub is_ready: bool,
}

impl PlaceInLine {
    const READY: u64 = 1 << 63;

    fn from_bits(word: u64) -> Self {
        Self { number: word & !Self::READY, is_ready: word & Self::READY != 0 }
    }

    fn to_bits(self) -> u64 {
        self.number | if self.is_ready { Self::READY } else { 0 }
    }
}

/// The table.
#[derive(Clone, Copy)]
pub struct ProcessTable<'a> {
    words: &'a [AtomicU64],
    slots: usize,
}

impl<'a> ProcessTable<'a> {
    pub(super) fn new(words: &'a [AtomicU64], slots: usize) -> Self {
        Self { words, slots }
    }

    /// Number of slots.
    pub fn len(self) -> usize {
        self.slots
    }

    /// Whether it has no slots.
    pub fn is_empty(self) -> bool {
        self.slots == 0
    }

    /// Slot number `index`.
    pub fn slot(self, index: usize) -> ProcessSlot<'a> {
        assert!(index < self.slots, "slot {index} of a table of {}", self.slots);
        ProcessSlot { words: &self.words[index * SLOT_WORDS..][..SLOT_WORDS], index }
    }

    /// All slots.
    pub fn iter(self) -> impl Iterator<Item = ProcessSlot<'a>> {
        (0..self.slots).map(move |index| self.slot(index))
    }

    /// The slots that a process occupies. Whether it has died since, only the kernel says.
    pub fn living(self) -> impl Iterator<Item = ProcessSlot<'a>> {
        self.iter().filter(|slot| slot.state() == SlotState::Live)
    }

    /// Mean number of updates by which the parameters that acted were older than the newest ones when their rows were
    /// inserted; `None` before the first such row.
    pub fn mean_policy_lag(self) -> Option<f64> {
        let rows = self.total(Counter::LaggedRows);
        (rows > 0).then(|| self.total(Counter::PolicyLagSum) as f64 / rows as f64)
    }

    /// Most updates by which the parameters that acted were older than the newest ones when their rows were inserted; 0
    /// before the first such row.
    pub fn largest_policy_lag(self) -> u64 {
        self.iter().map(|slot| slot.counters().get(Counter::PolicyLagMax)).max().unwrap_or(0)
    }

    /// A counter of all processes together. What is in the segment may be anything, so the sum stops at the largest.
    pub fn total(self, counter: Counter) -> u64 {
        self.iter().fold(0, |sum, slot| sum.saturating_add(slot.counters().get(counter)))
    }
}

/// One process's slot.
#[derive(Clone, Copy)]
pub struct ProcessSlot<'a> {
    words: &'a [AtomicU64],
    index: usize,
}

impl<'a> ProcessSlot<'a> {
    const OWNER: usize = 0;
    const START_TIME: usize = 1;
    const ROLE: usize = 2;
    const RESTARTS: usize = 3;
    const PARAMETER_UPDATES: usize = 4;
    const PLACE: usize = 5;
    // The next words are written by the owner in its loop and lie on a line of their own.
    const HEARTBEAT: usize = 8;
    const PHASE: usize = 9;
    const IN_OPERATION: usize = 16;

    /// Number of the slot.
    pub fn index(self) -> usize {
        self.index
    }

    /// Promise a free slot to a process that will play `role` as number `number` of its kind. Returns the generation
    /// of the promise, with which the slot can be occupied; `None` if the slot is not free.
    pub fn reserve(self, role: Role, number: usize) -> Option<u64> {
        let owner = self.owner();
        if owner.state() != SlotState::Free {
            return None;
        }
        let reserved = Owner::new(SlotState::Reserved, owner.generation() + 1, std::process::id());
        // Acquire and Release: the reservation orders the slot's reuse after what its last owner left in it.
        self.words[Self::OWNER].compare_exchange(owner.0, reserved.0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        // A process that sees one of the stores below must find the slot taken, see `dead_owner`.
        fence(Ordering::Release);
        self.words[Self::START_TIME].store(0, Ordering::Relaxed);
        self.words[Self::ROLE].store(role as u64 | (number as u64) << 8, Ordering::Relaxed);
        self.words[Self::PARAMETER_UPDATES].store(0, Ordering::Relaxed);
        self.words[Self::PLACE].store(0, Ordering::Relaxed);
        self.words[Self::IN_OPERATION].store(0, Ordering::Relaxed);
        self.words[Self::PHASE].store(0, Ordering::Relaxed);
        self.words[Self::HEARTBEAT].store(monotonic_ns(), Ordering::Relaxed);
        self.set_last_words("");
        Some(reserved.generation())
    }

    /// Take the slot that was reserved for this process, in this generation. `false` when that promise no longer holds.
    pub fn occupy(self, pid: u32, generation: u64) -> bool {
        let promised = self.owner();
        if promised.state() != SlotState::Reserved || promised.generation() != generation {
            return false;
        }
        let live = Owner::new(SlotState::Live, generation, pid);
        if self.words[Self::OWNER].compare_exchange(promised.0, live.0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        // Only now, since before the exchange the slot may have been promised to another process. Until the start
        // time is there the process id alone says who lives here, and that is enough unless the process dies within
        // this instant and its id is reused.
        self.words[Self::START_TIME].store(start_time(pid).unwrap_or(0), Ordering::Relaxed);
        true
    }

    /// Give the slot back: by its owner, or once the kernel has said that the owner is gone.
    pub fn release(self) {
        self.release_from(self.owner());
    }

    /// Give the slot back if it is still `owner`'s. `false` if it has changed hands.
    pub fn release_from(self, owner: Owner) -> bool {
        let free = Owner::new(SlotState::Free, owner.generation(), 0);
        // Release: the process that reserves the slot next sees all that was done in it.
        self.words[Self::OWNER].compare_exchange(owner.0, free.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The owner of the slot.
    pub fn owner(self) -> Owner {
        Owner(self.words[Self::OWNER].load(Ordering::Acquire))
    }

    /// The owner, if the kernel says that it has ended. A reserved slot belongs to the process that reserved it until
    /// it is occupied.
    pub fn dead_owner(self) -> Option<Owner> {
        let (owner, started) = loop {
            let owner = self.owner();
            let started = self.start_time();
            // The start time must be this owner's: with another's it would look like a process whose id was reused.
            // Acquire fence: the owner is loaded again only after the start time.
            fence(Ordering::Acquire);
            if self.words[Self::OWNER].load(Ordering::Relaxed) == owner.0 {
                break (owner, started);
            }
        };
        let has_ended = match owner.state() {
            SlotState::Free => false,
            SlotState::Reserved => has_exited(owner.pid(), 0),
            SlotState::Live => has_exited(owner.pid(), started),
        };
        has_ended.then_some(owner)
    }

    /// Whether anybody owns the slot.
    pub fn state(self) -> SlotState {
        self.owner().state()
    }

    /// How often the slot changed hands; a run that goes on from a checkpoint counts on.
    pub fn generation(self) -> u64 {
        self.owner().generation()
    }

    /// Process id of the owner.
    pub fn pid(self) -> u32 {
        self.owner().pid()
    }

    /// Start time of the owner, in clock ticks since boot; 0 for a moment before it is known.
    pub fn start_time(self) -> u64 {
        self.words[Self::START_TIME].load(Ordering::Relaxed)
    }

    /// What the owner does, and its number among its kind; `None` if nobody has had the slot in a run that goes on
    /// from a checkpoint, or if the word means nothing.
    pub fn role(self) -> Option<(Role, usize)> {
        let word = self.words[Self::ROLE].load(Ordering::Relaxed);
        Some((numbered(&Role::ALL, word & 0xff)?, usize::try_from(word >> 8).ok()?))
    }

    /// Whether the owner, or else the last one, plays `role`.
    pub fn plays(self, role: Role) -> bool {
        self.role().is_some_and(|(played, _)| played == role)
    }

    /// Restore role and number that the slot had in a run that goes on from a checkpoint: its next owner comes after
    /// `generation` owners. Only in a table that nobody uses yet.
    pub fn restore(self, role: Role, number: usize, generation: u64) {
        self.words[Self::OWNER].store(Owner::new(SlotState::Free, generation, 0).0, Ordering::Relaxed);
        self.words[Self::ROLE].store(role as u64 | (number as u64) << 8, Ordering::Relaxed);
    }

    /// Restore the generation of a slot that nobody has had: its next owner comes after `generation` owners. Only in
    /// a table that nobody uses yet.
    pub fn restore_generation(self, generation: u64) {
        self.words[Self::OWNER].store(Owner::new(SlotState::Free, generation, 0).0, Ordering::Relaxed);
        self.words[Self::ROLE].store(NO_ROLE, Ordering::Relaxed);
    }

    /// Free the slot and clear all of it but its generation, so that a promise from before the run was adopted does
    /// not hold any more.
    pub(super) fn reset(self) {
        self.words[Self::OWNER].store(Owner::new(SlotState::Free, self.generation(), 0).0, Ordering::Relaxed);
        self.words.iter().skip(Self::OWNER + 1).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// How often the slot's process was replaced.
    pub fn restarts(self) -> u64 {
        self.words[Self::RESTARTS].load(Ordering::Relaxed)
    }

    /// Count `count` more replacements.
    pub fn count_restarts(self, count: u64) {
        self.words[Self::RESTARTS].fetch_add(count, Ordering::Relaxed);
    }

    /// Note what the owner does now, and that it lives.
    pub fn enter(self, phase: Phase) {
        self.words[Self::PHASE].store(phase as u64, Ordering::Relaxed);
        self.words[Self::HEARTBEAT].store(monotonic_ns(), Ordering::Relaxed);
    }

    /// What the owner does now.
    pub fn phase(self) -> Option<Phase> {
        numbered(&Phase::ALL, self.words[Self::PHASE].load(Ordering::Relaxed))
    }

    /// Announce that the owner, which goes on living, will never use the slot again: the supervisor that gave it may
    /// take it back.
    pub fn announce_leaving(self) {
        // Release: all that the owner did here comes before this store.
        self.words[Self::PHASE].store(Phase::Leaving as u64, Ordering::Release);
    }

    /// Whether the owner has announced that it leaves.
    pub fn is_leaving(self) -> bool {
        // Acquire: pairs with the Release of `announce_leaving`.
        self.words[Self::PHASE].load(Ordering::Acquire) == Phase::Leaving as u64
    }

    /// When the owner last entered a phase, in nanoseconds of the monotonic clock.
    pub fn heartbeat_ns(self) -> u64 {
        self.words[Self::HEARTBEAT].load(Ordering::Relaxed)
    }

    /// Note which parameters the owner uses, as the count of updates in them.
    pub fn set_parameter_updates(self, updates: u64) {
        self.words[Self::PARAMETER_UPDATES].store(updates, Ordering::Relaxed);
    }

    /// Which parameters the owner uses, as the count of updates in them.
    pub fn parameter_updates(self) -> u64 {
        self.words[Self::PARAMETER_UPDATES].load(Ordering::Relaxed)
    }

    /// The owner's place in the line of the processes that wait for their turn to insert; `None` while it does not
    /// wait, or is gone.
    pub fn place_in_line(self) -> Option<PlaceInLine> {
        // SeqCst: see `leave_line`.
        let word = self.words[Self::PLACE].load(Ordering::SeqCst);
        (word != 0 && self.state() == SlotState::Live).then(|| PlaceInLine::from_bits(word))
    }

    /// Take a place in the line, or change it.
    pub fn stand_in_line(self, place: PlaceInLine) {
        // SeqCst: see `leave_line`.
        self.words[Self::PLACE].store(place.to_bits(), Ordering::SeqCst);
    }

    /// Give the place up.
    pub fn leave_line(self) {
        // SeqCst orders "leave, then look who waits" against the others' "stand in line, then look who is in front":
        // at least one sees the other, so that every process that has to be woken is.
        self.words[Self::PLACE].store(0, Ordering::SeqCst);
    }

    /// Let the owner, which is at `place` and does not move, hold up nobody until it moves again.
    pub fn pass_over(self, place: PlaceInLine) {
        let passed = PlaceInLine { is_ready: false, ..place };
        // Fails when the owner, or a new one, has moved. Relaxed: the word stands for nothing but itself.
        let _ = self.words[Self::PLACE].compare_exchange(place.to_bits(), passed.to_bits(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Leave a message for whoever finds the process dead. Of a message longer than 4095 bytes the first line and the
    /// end are kept, where a traceback says most.
    pub fn set_last_words(self, message: &str) {
        let message = shortened(message, LAST_WORDS_BYTES - 1);
        let mut bytes = [0; LAST_WORDS_BYTES];
        bytes[..message.len()].copy_from_slice(message.as_bytes());
        store_bytes(&self.words[LAST_WORDS..], &bytes);
    }

    /// The message left by the owner, or nothing.
    pub fn last_words(self) -> String {
        let mut bytes = [0; LAST_WORDS_BYTES];
        load_bytes(&self.words[LAST_WORDS..], &mut bytes);
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(LAST_WORDS_BYTES);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// The owner's counters.
    pub fn counters(self) -> Counters<'a> {
        Counters::new(&self.words[COUNTERS..])
    }

    /// Announce that this process is inside an operation, which may change the tree or the store, once the gate is
    /// open: while it is closed, wait.
    ///
    /// A repairer closes the gate and then looks for processes inside; a process announces that it is inside and then
    /// looks at the gate. SeqCst on all four accesses guarantees that at least one sees the other.
    ///
    /// `waiting` is called every ten milliseconds for as long as the gate is closed: it has to find out whether the
    /// process that closed the gate is dead.
    pub fn begin_operation(self, control: Control<'_>, mut waiting: impl FnMut()) -> Operation<'a> {
        let inside = &self.words[Self::IN_OPERATION];
        loop {
            inside.store(1, Ordering::SeqCst);
            if control.gate().load(Ordering::SeqCst) == 0 {
                return Operation { inside };
            }
            inside.store(0, Ordering::SeqCst);
            control.wait_for_gate();
            waiting();
        }
    }

    /// Whether the owner is, or died, in the middle of an operation, or a repair after it is unfinished.
    pub fn in_operation(self) -> bool {
        self.words[Self::IN_OPERATION].load(Ordering::SeqCst) != 0
    }

    /// Announce a repair after the dead owner, before it changes anything. If the repairer dies as well, the next one
    /// finds the slot as if its owner had died inside an operation, and begins again.
    pub fn announce_repair(self) {
        self.words[Self::IN_OPERATION].store(1, Ordering::Relaxed);
        // Release fence: every store of the repair comes after this one.
        fence(Ordering::Release);
    }

    /// Announce that the repair after the dead owner is complete.
    pub fn complete_repair(self) {
        // Release: every store of the repair comes before this one.
        self.words[Self::IN_OPERATION].store(0, Ordering::Release);
    }
}

/// `message` in at most `limit` bytes: its first line, or as much of that as fits half of the room, and its end.
fn shortened(message: &str, limit: usize) -> Cow<'_, str> {
    if message.len() <= limit {
        return Cow::Borrowed(message);
    }
    let headline = message.lines().next().unwrap_or_default();
    let head = &headline[..headline.floor_char_boundary(headline.len().min(limit / 2))];
    let room = limit - head.len() - CUT.len();
    let tail = &message[message.ceil_char_boundary(message.len() - room)..];
    Cow::Owned([head, CUT, tail].concat())
}

/// Proof that the gate was open when an operation began; its end is announced on drop, unless by a panic.
pub struct Operation<'a> {
    inside: &'a AtomicU64,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        // A panic leaves the tree half changed: the process stays inside, so that the replay is repaired.
        if !std::thread::panicking() {
            // Release: a process that sees the operation ended sees all that it did.
            self.inside.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pidfd::is_alive;
    use super::*;

    fn table(words: &[AtomicU64]) -> ProcessTable<'_> {
        ProcessTable::new(words, words.len() / SLOT_WORDS)
    }

    #[test]
    fn a_slot_is_reserved_once_and_occupied_once_per_generation() {
        let words: Vec<AtomicU64> = (0..2 * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let slot = table(&words).slot(1);
        assert!(!slot.occupy(7, 0) && !slot.occupy(7, 1), "nobody reserved it");
        assert_eq!(slot.reserve(Role::Learner, 3), Some(1));
        assert_eq!(slot.reserve(Role::Actor, 0), None);
        assert!(slot.occupy(std::process::id(), 1));
        assert!(!slot.occupy(7, 1));
        assert_eq!((slot.pid(), slot.generation(), slot.role()), (std::process::id(), 1, Some((Role::Learner, 3))));
        assert!(is_alive(slot.pid(), slot.start_time()));
        slot.release();
        assert_eq!(slot.state(), SlotState::Free);
        assert_eq!(slot.reserve(Role::Actor, 0), Some(2));
    }

    #[test]
    fn a_promise_that_was_withdrawn_is_not_kept_whoever_has_the_slot_since() {
        let words: Vec<AtomicU64> = (0..SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let slot = table(&words).slot(0);
        let withdrawn = slot.reserve(Role::AttachedActor, 0).unwrap();
        slot.release();
        assert!(!slot.occupy(7, withdrawn), "it is free");
        let kept = slot.reserve(Role::AttachedActor, 0).unwrap();
        assert!(!slot.occupy(7, withdrawn), "it is promised to somebody else");
        assert!(slot.occupy(std::process::id(), kept));
        assert!(!slot.occupy(7, withdrawn), "it is somebody else's");
        assert_eq!(slot.pid(), std::process::id());
    }

    #[test]
    fn a_slot_is_given_back_only_by_the_owner_that_was_seen() {
        let words: Vec<AtomicU64> = (0..SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let slot = table(&words).slot(0);
        let generation = slot.reserve(Role::Participant, 0).unwrap();
        let reserved = slot.owner();
        assert!(slot.occupy(std::process::id(), generation));
        assert!(!slot.release_from(reserved), "the promise was taken up meanwhile");
        let first = slot.owner();
        assert!(slot.release_from(first));
        assert!(!slot.release_from(first), "it is free already");
        let generation = slot.reserve(Role::Participant, 0).unwrap();
        assert!(slot.occupy(std::process::id(), generation));
        assert!(!slot.release_from(first), "the same process has it anew");
        assert_eq!(slot.state(), SlotState::Live);
    }

    #[test]
    fn long_last_words_keep_their_first_line_and_their_end() {
        let words: Vec<AtomicU64> = (0..SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let slot = table(&words).slot(0);
        for line in ["a call", "ein Aufruf in Übersee", "\u{1f41f}"] {
            slot.set_last_words(&format!("failed: out of luck\n{}the innermost call", format!("{line}\n").repeat(2_000)));
            let kept = slot.last_words();
            assert!(kept.starts_with("failed: out of luck\n[...]\n") && kept.ends_with("the innermost call"), "{kept}");
            assert!((LAST_WORDS_BYTES - 4..LAST_WORDS_BYTES).contains(&kept.len()), "{} bytes", kept.len());
        }
        slot.set_last_words(&"ü".repeat(LAST_WORDS_BYTES));
        assert!(slot.last_words().starts_with('ü') && slot.last_words().ends_with('ü'));
        slot.set_last_words("short");
        assert_eq!(slot.last_words(), "short");
    }
}
