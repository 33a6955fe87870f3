//! Counters of one process, on its own cache lines: only it writes them, readers add them up.
//!
//! They outlive the process: its replacement in the same slot counts on.

use crate::sync::{AtomicU64, Ordering};

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Counter {
    /// Environment steps.
    EnvSteps = 0,
    /// Episodes finished.
    Episodes = 1,
    /// Transitions inserted.
    Inserted = 2,
    /// Updates taken part in.
    Updates = 3,
    /// Transitions sampled.
    Sampled = 4,
    /// Transitions drawn again because their slot changed meanwhile.
    Redrawn = 5,
    /// Priority updates dropped because their transition was overwritten.
    StalePriorities = 6,
    /// Priorities that were not finite or negative, and were refused.
    RefusedPriorities = 7,
    /// Slots passed over because another process was writing them.
    SkippedSlots = 8,
    /// Sum of the policy lags of inserted transitions, in updates.
    PolicyLagSum = 9,
    /// Largest policy lag, in updates.
    PolicyLagMax = 10,
    /// Nanoseconds stepping environments.
    EnvironmentNs = 11,
    /// Nanoseconds taking over parameters and choosing actions.
    InferenceNs = 12,
    /// Nanoseconds staging and flushing.
    InsertNs = 13,
    /// Nanoseconds waiting for the rate limiter.
    LimiterWaitNs = 14,
    /// Nanoseconds drawing batches and writing priorities back.
    ReplayNs = 15,
    /// Nanoseconds in forward and backward passes and the optimizer.
    ComputeNs = 16,
    /// Nanoseconds waiting for other learners and adding up gradients.
    ExchangeNs = 17,
    /// Nanoseconds publishing parameters.
    PublishNs = 18,
    /// Priorities that were larger than the largest that the tree keeps, and count as that.
    SaturatedPriorities = 19,
    /// Rows that were taken and not learned from, because they were too old, and those that nobody had taken when the
    /// run went on without its replay.
    DroppedRows = 20,
    /// Rows learned from again after they had been taken.
    ReplayedRows = 21,
    /// Products that the networks of an actor or a learner computed: multiplications of an input by a weight, and of
    /// gradients likewise.
    Products = 22,
    /// Transitions, or steps of fragments, that a learner learned from, once for each update that they were in.
    Learned = 23,
    /// Inserted transitions whose policy lag was counted: all but those of guests, and the last ones of an actor that
    /// leaves.
    LaggedRows = 24,
}

/// Words that the counters of one process take: whole cache lines.
pub const COUNTER_WORDS: usize = 32;

/// Counters of one process.
#[derive(Clone, Copy)]
pub struct Counters<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Counters<'a> {
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Self { words: &words[..COUNTER_WORDS] }
    }

    /// Value now. Relaxed: counters order nothing.
    pub fn get(self, counter: Counter) -> u64 {
        self.words[counter as usize].load(Ordering::Relaxed)
    }

    /// All of them, in the order of their numbers.
    pub fn all(self) -> Vec<u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// Add the counts from before the run went on from a checkpoint, as [`Self::all`] gave them. Only in a table that
    /// nobody uses yet.
    pub fn add_all(self, counted: &[u64]) {
        for (index, (word, &amount)) in self.words.iter().zip(counted).enumerate() {
            let before = word.load(Ordering::Relaxed);
            // All others are sums.
            let is_largest = index == Counter::PolicyLagMax as usize;
            word.store(if is_largest { before.max(amount) } else { before.wrapping_add(amount) }, Ordering::Relaxed);
        }
    }

    /// Add `amount` to a counter. Only the owner writes, each counter from one thread, so a load and a store do,
    /// without a locked instruction.
    pub fn add(self, counter: Counter, amount: u64) {
        let word = &self.words[counter as usize];
        word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// Raise a counter to `value` if that is larger.
    pub fn raise(self, counter: Counter, value: u64) {
        let word = &self.words[counter as usize];
        if value > word.load(Ordering::Relaxed) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
