//! The process table: who is there, what it does, how fast, and what it spent its time on.

use serde::{Serialize, Serializer};

use super::printable::printable;
use super::rates::Rates;
use crate::segment::counters::{Counter, Counters};
use crate::segment::pidfd::is_alive;
use crate::segment::processes::{Phase, ProcessSlot, Role, SlotState};
use crate::sync::monotonic_ns;

/// One slot of the process table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessReport {
    /// Number of the slot.
    pub slot: usize,
    /// Role of the slot's process; absent if nobody ever had the slot, or if the word in the segment means nothing.
    pub role: Option<Role>,
    /// Number of the process among those of its role.
    pub number: Option<usize>,
    /// Whether a process owns the slot.
    pub state: SlotState,
    /// Process id of the owner; 0 without one.
    pub pid: u32,
    /// Whether the owner lives, as the kernel says.
    pub alive: bool,
    /// What the owner says that it is doing.
    pub phase: Option<Phase>,
    /// Milliseconds since the owner's newest heartbeat.
    pub heartbeat_age_ms: Option<u64>,
    /// Whether the owner is, or died, in the middle of changing the replay.
    pub in_operation: bool,
    /// How often the process was replaced.
    pub restarts: u64,
    /// What a process in this slot said before it died: a line, and below it what explains it, such as a traceback.
    pub last_words: Option<String>,
    /// Environment steps.
    pub env_steps: u64,
    /// Episodes finished.
    pub episodes: u64,
    /// Transitions inserted.
    pub inserted: u64,
    /// `inserted` as a share of what all processes inserted; absent if this one inserted nothing.
    pub insert_share: Option<f64>,
    /// Transitions sampled.
    pub sampled: u64,
    /// Updates taken part in.
    pub updates: u64,
    /// Updates that led to the parameters that the process uses.
    pub parameter_updates: u64,
    /// Work per second, measured.
    #[serde(flatten)]
    pub rates: Rates,
    /// What the process spent its time on since the run began.
    pub time: TimeShares,
}

/// What a process can spend its time on: its name in JSON and for people, and what counts it.
const KINDS_OF_TIME: [(&str, &str, Counter); 8] = [
    // Stepping environments.
    ("environment", "environment", Counter::EnvironmentNs),
    // Taking over parameters and choosing actions.
    ("inference", "inference", Counter::InferenceNs),
    // Staging and flushing.
    ("insert", "insert", Counter::InsertNs),
    // Waiting for the rate limiter.
    ("limiter_wait", "limiter", Counter::LimiterWaitNs),
    // Drawing batches and writing priorities back.
    ("replay", "replay", Counter::ReplayNs),
    // Forward and backward passes and the optimizer.
    ("compute", "compute", Counter::ComputeNs),
    // Waiting for other learners and adding up gradients.
    ("exchange", "exchange", Counter::ExchangeNs),
    // Publishing parameters.
    ("publish", "publish", Counter::PublishNs),
];

/// Shares of the time that a process has counted. They add up to one, or are all zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeShares {
    /// One for each of [`KINDS_OF_TIME`].
    shares: [f64; KINDS_OF_TIME.len()],
    /// Seconds that the shares are of.
    pub accounted_s: f64,
}

impl TimeShares {
    fn of(counters: Counters<'_>) -> Self {
        let spent_s = KINDS_OF_TIME.map(|(_, _, counter)| counters.get(counter) as f64 / 1e9);
        let accounted_s: f64 = spent_s.iter().sum();
        Self { shares: spent_s.map(|spent_s| if accounted_s > 0.0 { spent_s / accounted_s } else { 0.0 }), accounted_s }
    }

    /// Names for people, with their shares.
    pub fn named(&self) -> [(&'static str, f64); KINDS_OF_TIME.len()] {
        std::array::from_fn(|kind| (KINDS_OF_TIME[kind].1, self.shares[kind]))
    }
}

impl Serialize for TimeShares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shares = KINDS_OF_TIME.into_iter().zip(self.shares).map(|((name, _, _), share)| (name, share));
        serializer.collect_map(shares.chain([("accounted_s", self.accounted_s)]))
    }
}

impl ProcessReport {
    /// The report of `slot` as it is now. `inserted_by_all` is what all processes inserted; without `of_this_boot`,
    /// process ids and times of the monotonic clock mean nothing.
    pub(super) fn of(slot: ProcessSlot<'_>, rates: Rates, inserted_by_all: u64, of_this_boot: bool) -> Self {
        let state = slot.state();
        let owned = state != SlotState::Free;
        let role = slot.role().filter(|_| owned || slot.generation() > 0);
        let counters = slot.counters();
        let inserted = counters.get(Counter::Inserted);
        let last_words = slot.last_words().lines().map(printable).collect::<Vec<_>>().join("\n");
        Self {
            slot: slot.index(),
            role: role.map(|(role, _)| role),
            number: role.map(|(_, number)| number),
            state,
            pid: if state == SlotState::Live { slot.pid() } else { 0 },
            alive: state == SlotState::Live && of_this_boot && is_alive(slot.pid(), slot.start_time()),
            phase: slot.phase().filter(|_| owned),
            heartbeat_age_ms: (owned && of_this_boot).then(|| monotonic_ns().saturating_sub(slot.heartbeat_ns()) / 1_000_000),
            in_operation: slot.in_operation(),
            restarts: slot.restarts(),
            last_words: (!last_words.is_empty()).then_some(last_words),
            env_steps: counters.get(Counter::EnvSteps),
            episodes: counters.get(Counter::Episodes),
            inserted,
            insert_share: (inserted > 0).then(|| inserted as f64 / inserted_by_all.max(inserted) as f64),
            sampled: counters.get(Counter::Sampled),
            updates: counters.get(Counter::Updates),
            parameter_updates: slot.parameter_updates(),
            rates,
            time: TimeShares::of(counters),
        }
    }

    /// Role and number, for people.
    pub fn name(&self) -> String {
        match (self.role, self.number) {
            (Some(role), Some(number)) => format!("{} {number}", role.name()),
            _ => "-".into(),
        }
    }

    /// Whether the slot has anything to tell.
    pub fn is_of_interest(&self) -> bool {
        let worked = self.inserted > 0 || self.env_steps > 0 || self.updates > 0;
        self.state != SlotState::Free || self.restarts > 0 || self.last_words.is_some() || worked
    }
}
