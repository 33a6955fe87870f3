//! The run-wide words, each on cache lines of its own.

use std::time::Duration;

use super::keeping::Keeping;
use super::named_enum::{named_enum, numbered};
use super::scores::{SCORE_WORDS, ScoreRecord};
use crate::sync::{AtomicU32, AtomicU64, Ordering, wait_as, wait_while_equal, wake_some};

/// Bytes between two words: two cache lines, since the processor prefetches lines in pairs.
const STRIDE_BYTES: usize = 128;
/// Longest sleep between two looks at a closed gate.
const GATE_LOOK: Duration = Duration::from_millis(10);

/// A word of the region. Its number is its place in the segment, the same in every program that opens it.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    RunState = 0,
    Claimed = 1,
    Inserted = 2,
    Sampled = 3,
    EnvSteps = 4,
    Updates = 5,
    LargestPriority = 6,
    Membership = 7,
    RepairNotBeforeNs = 8,
    Repairs = 9,
    Gate = 10,
    Progress = 11,
    Waiters = 12,
    ClaimedFrames = 13,
    Repairer = 14,
    Clearing = 15,
    /// The first of the words of the scores.
    Scores = 16,
    CheckpointWanted = 17,
    ProductsPeakPerS = 18,
    SamplesBeyond = 19,
    Keeper = 20,
    Adopter = 21,
    /// No word: the number of words.
    Count,
}

/// The words of 32 bits.
const HALF_WORDS: [Word; 3] = [Word::Gate, Word::Progress, Word::Waiters];
/// The words that name who keeps the run and who adopts it.
const KEEPING: [Word; 2] = [Word::Keeper, Word::Adopter];

pub(super) const CONTROL_BYTES: usize = STRIDE_BYTES * Word::Count as usize;
const _: () = assert!(SCORE_WORDS <= STRIDE_BYTES / 8, "the scores reach into the next word");

/// Futex bit of the processes that wait for the other side of the replay. Processes in line to insert have the other
/// bits.
const ANY_PROGRESS: u32 = 1 << 31;

named_enum! {
    /// What a run is doing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunState {
        /// Regions are written, processes are starting.
        Starting = "starting",
        /// Training.
        Running = "running",
        /// Every process finishes what it is doing and leaves.
        Stopping = "stopping",
        /// The sum tree failed an audit: nobody may train on it.
        Poisoned = "poisoned",
        /// The supervisor was killed, all processes have left, and the run stays in memory for another supervisor to
        /// [adopt](super::keeping).
        Kept = "kept",
    }
}

impl RunState {
    /// Whether the processes of the run have to leave.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Stopping | Self::Poisoned)
    }
}

/// The run-wide words.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    words: &'a [AtomicU64],
    half_words: &'a [AtomicU32],
}

impl<'a> Control<'a> {
    pub(super) fn new(words: &'a [AtomicU64], half_words: &'a [AtomicU32]) -> Self {
        Self { words, half_words }
    }

    fn word(self, word: Word) -> &'a AtomicU64 {
        &self.words[word as usize * STRIDE_BYTES / 8]
    }

    fn half_word(self, word: Word) -> &'a AtomicU32 {
        &self.half_words[word as usize * STRIDE_BYTES / 4]
    }

    /// What the run is doing.
    pub fn run_state(self) -> RunState {
        // Relaxed: the state orders nothing, it only tells processes to leave.
        numbered(&RunState::ALL, self.word(Word::RunState).load(Ordering::Relaxed)).unwrap_or(RunState::Poisoned)
    }

    /// Change what the run is doing. For the supervisor; without one, for the participant that stops the replay, or
    /// that finds or removes damage.
    pub fn set_run_state(self, state: RunState) {
        self.word(Word::RunState).store(state as u64, Ordering::Relaxed);
        self.wake_everybody();
    }

    fn wake_everybody(self) {
        self.waiters().store(u32::MAX, Ordering::SeqCst);
        self.signal_progress();
    }

    /// Go from running to stopping, and return whether the run was running. Any other state stays: it tells the other
    /// processes what they must not miss.
    pub fn stop_running(self) -> bool {
        let (running, stopping) = (RunState::Running as u64, RunState::Stopping as u64);
        // Relaxed, as every access to the state.
        let stops = self.word(Word::RunState).compare_exchange(running, stopping, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if stops {
            self.wake_everybody();
        }
        stops
    }

    /// Transitions for which a slot has been claimed: the insert cursor.
    pub fn claimed(self) -> &'a AtomicU64 {
        self.word(Word::Claimed)
    }

    /// Transitions whose insertion is complete.
    pub fn inserted(self) -> &'a AtomicU64 {
        self.word(Word::Inserted)
    }

    /// Count `rows` more transitions as inserted. To be called once their priorities are in the tree.
    pub fn count_inserted(self, rows: usize) {
        // Release: who sees the count sees the sum that has their priorities.
        self.inserted().fetch_add(rows as u64, Ordering::Release);
    }

    /// Transitions drawn.
    pub fn sampled(self) -> &'a AtomicU64 {
        self.word(Word::Sampled)
    }

    /// The part of [`Self::sampled`] that the rate limiter does not count. If updates are held in step with inserts
    /// and another batch than the configured one is in force, these are the transitions beyond those that the same
    /// updates would draw with the configured batch: less than 0, in two's complement, if the batch in force is
    /// smaller.
    pub fn samples_beyond(self) -> &'a AtomicU64 {
        self.word(Word::SamplesBeyond)
    }

    /// Count `rows` more transitions as drawn, `counted` of them for the rate limiter, and wake the processes that
    /// wait for samples.
    pub fn count_sampled(self, rows: usize, counted: usize) {
        self.sampled().fetch_add(rows as u64, Ordering::Relaxed);
        if rows != counted {
            self.samples_beyond().fetch_add((rows as u64).wrapping_sub(counted as u64), Ordering::Relaxed);
        }
        self.signal_progress();
    }

    /// Transitions drawn, as the rate limiter counts them.
    // Relaxed: a reader that comes between the two words of a batch is off by the part of that batch that does not
    // count, and by the batches that are drawn between its two loads. Never below 0, which a replay's first batch
    // between the two loads would make of it.
    pub fn counted_samples(self) -> u64 {
        let sampled = self.sampled().load(Ordering::Relaxed);
        let counted = sampled.wrapping_sub(self.samples_beyond().load(Ordering::Relaxed));
        counted.cast_signed().max(0).cast_unsigned()
    }

    /// Environment steps of all actors.
    pub fn env_steps(self) -> &'a AtomicU64 {
        self.word(Word::EnvSteps)
    }

    /// Updates of the parameters.
    pub fn updates(self) -> &'a AtomicU64 {
        self.word(Word::Updates)
    }

    /// Largest priority seen, in the tree's fixed point.
    pub fn largest_priority(self) -> &'a AtomicU64 {
        self.word(Word::LargestPriority)
    }

    /// Raise [`Self::largest_priority`] to `priority`, in the tree's fixed point, if that is larger; hardly ever
    /// writes. To be called in the operation that has set this priority: an emptied replay must not get its largest
    /// priority back from before.
    pub fn raise_largest_priority(self, priority: u64) {
        // Relaxed: the word orders nothing. The load spares the other processes a write to this line in nearly every
        // call.
        if self.largest_priority().load(Ordering::Relaxed) < priority {
            self.largest_priority().fetch_max(priority, Ordering::Relaxed);
        }
    }

    /// The learners that take part in the exchange and their leader: a [`View`](super::membership::View).
    pub fn membership(self) -> &'a AtomicU64 {
        self.word(Word::Membership)
    }

    /// In a replay without a supervisor: the moment of the monotonic clock before which no repair is tried again,
    /// after a process inside an operation has put one off.
    pub fn repair_not_before_ns(self) -> &'a AtomicU64 {
        self.word(Word::RepairNotBeforeNs)
    }

    /// Times that the replay was repaired.
    pub fn repairs(self) -> &'a AtomicU64 {
        self.word(Word::Repairs)
    }

    /// Closed (1) while somebody repairs: nobody may start to change the tree.
    pub fn gate(self) -> &'a AtomicU32 {
        self.half_word(Word::Gate)
    }

    /// Sleep until the gate may have been opened, ten milliseconds at most.
    pub fn wait_for_gate(self) {
        wait_while_equal(self.gate(), 1, GATE_LOOK);
    }

    /// Frames for which a slot has been claimed.
    pub fn claimed_frames(self) -> &'a AtomicU64 {
        self.word(Word::ClaimedFrames)
    }

    /// In a replay without a supervisor: the participant that repairs now, as a [`NamedProcess`](super::NamedProcess)
    /// has it: its process id, and above it the lower half of its start time. 0 for nobody.
    pub fn repairer(self) -> &'a AtomicU64 {
        self.word(Word::Repairer)
    }

    /// Not 0 while a replay without a supervisor is being emptied: if the process that empties it dies, the next one
    /// to repair finishes that before the gate opens.
    pub fn clearing(self) -> &'a AtomicU64 {
        self.word(Word::Clearing)
    }

    /// The incarnation of the synchronous trainer while it waits for a checkpoint of this moment; otherwise 0.
    pub fn checkpoint_wanted(self) -> &'a AtomicU64 {
        self.word(Word::CheckpointWanted)
    }

    /// Products per second that the run's cores could compute if they did nothing else, measured when the run starts;
    /// 0 before that is known.
    pub fn products_peak_per_s(self) -> &'a AtomicU64 {
        self.word(Word::ProductsPeakPerS)
    }

    /// Who keeps the run after the death of its supervisor, and who adopts it.
    pub fn keeping(self) -> Keeping<'a> {
        let [keeper, adopter] = KEEPING.map(|word| self.word(word));
        Keeping::new(keeper, adopter)
    }

    /// Make all words as in a new segment, except those that name who keeps the run and who adopts it.
    pub(super) fn reset(self) {
        // A 32-bit word is never accessed as part of a 64-bit word.
        let stays = |index: usize| HALF_WORDS.iter().chain(&KEEPING).any(|&word| word as usize == index);
        for (index, line) in self.words.chunks_exact(STRIDE_BYTES / 8).enumerate() {
            if !stays(index) {
                line.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            }
        }
        self.gate().store(0, Ordering::SeqCst);
        self.wake_everybody();
    }

    /// The newest returns, for whoever looks from outside.
    pub fn scores(self) -> ScoreRecord<'a> {
        ScoreRecord::new(&self.words[Word::Scores as usize * STRIDE_BYTES / 8..][..SCORE_WORDS])
    }

    /// Wake every process that waits for the other side of the replay.
    pub fn signal_progress(self) {
        // A waiter whose bits are taken here is woken below, or finds `progress` raised before it sleeps. A waiter
        // that announces itself later checks its condition after that, and finds what was done before this call. With
        // the two steps swapped, another signaller could come between a waiter's load of `progress` and its sleep,
        // and find the bits taken already. A lost wake-up costs the timeout.
        let waiting = self.waiters().swap(0, Ordering::SeqCst);
        self.progress().fetch_add(1, Ordering::SeqCst);
        wake_some(self.progress(), waiting);
    }

    /// Sleep until `ready` may have changed, at most `timeout`. Spurious returns are possible.
    pub fn wait_for_progress(self, timeout: Duration, ready: impl FnOnce() -> bool) {
        self.sleep(ANY_PROGRESS, true, timeout, ready);
    }

    /// As [`Self::wait_for_progress`], for the process in `slot` that stands in line to insert. Without
    /// `wants_progress` it sleeps on until [`Self::call_line`].
    pub fn wait_for_turn(self, slot: usize, wants_progress: bool, timeout: Duration, ready: impl FnOnce() -> bool) {
        self.sleep(turn_bit(slot), wants_progress, timeout, ready);
    }

    /// Wake every process that stands in line to insert.
    pub fn call_line(self) {
        self.progress().fetch_add(1, Ordering::SeqCst);
        wake_some(self.progress(), !ANY_PROGRESS);
    }

    fn sleep(self, bit: u32, wants_progress: bool, timeout: Duration, ready: impl FnOnce() -> bool) {
        let seen = self.progress().load(Ordering::SeqCst);
        if wants_progress {
            self.waiters().fetch_or(bit, Ordering::SeqCst);
        }
        if !ready() {
            wait_as(self.progress(), bit, seen, timeout);
        }
    }

    fn progress(self) -> &'a AtomicU32 {
        self.half_word(Word::Progress)
    }

    /// The futex bits of the processes that want to be woken by progress.
    fn waiters(self) -> &'a AtomicU32 {
        self.half_word(Word::Waiters)
    }
}

/// Futex bit of the process in `slot` while it stands in line. Slots may share a bit: that costs a needless look.
fn turn_bit(slot: usize) -> u32 {
    1 << (slot % 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_reaches_words_of_32_bits_as_such_alone_and_leaves_those_that_name_who_keeps_the_run() {
        // Apart here, and the same memory in a segment.
        let words: Vec<_> = (0..CONTROL_BYTES / 8).map(|_| AtomicU64::new(u64::MAX)).collect();
        let half_words: Vec<_> = (0..CONTROL_BYTES / 4).map(|_| AtomicU32::new(u32::MAX)).collect();
        let control = Control::new(&words, &half_words);
        control.progress().store(6, Ordering::Relaxed);
        control.reset();
        assert_eq!(control.progress().load(Ordering::Relaxed), 7, "who sleeps must see that it has changed");
        for (index, (line, halves)) in words.chunks(STRIDE_BYTES / 8).zip(half_words.chunks(STRIDE_BYTES / 4)).enumerate() {
            let is_one_of = |some: &[Word]| some.iter().any(|&word| word as usize == index);
            let expected = if is_one_of(&HALF_WORDS) || is_one_of(&KEEPING) { u64::MAX } else { 0 };
            assert!(line.iter().all(|word| word.load(Ordering::Relaxed) == expected), "word {index}");
            let changed = halves.iter().filter(|half| half.load(Ordering::Relaxed) != u32::MAX).count();
            assert_eq!(changed, usize::from(is_one_of(&HALF_WORDS)), "word {index}");
        }
    }
}
