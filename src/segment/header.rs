//! The first page: what the segment is, whose it is, and where its regions lie. Immutable once published.
//!
//! The state word is stored last with Release; whoever reads it as READY with Acquire sees the rest of the page. A
//! reader believes nothing of it before magic, version, sizes, offsets and checksum agree: the page may be anything.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::SegmentError;
use super::layout::{Layout, LayoutParameters, PAGE_BYTES, REGIONS};
use super::mapping::Mapping;
use crate::sync::{AtomicU64, Ordering};

/// Version of everything in the segment. To be raised with every change of a region's meaning.
pub const ABI_VERSION: u64 = 5;

const MAGIC: u64 = u64::from_le_bytes(*b"SHOALSEG");
const READY: u64 = u64::from_le_bytes(*b"READY\0\0\0");

const STATE: usize = 0;
const MAGIC_AT: usize = 1;
const VERSION: usize = 2;
const TOTAL_BYTES: usize = 3;
const RUN_ID: usize = 4;
const BOOT_ID: usize = 6;
const SUPERVISOR: usize = 8;
const START_TIME: usize = 9;
const CREATED: usize = 10;
const PARAMETERS: usize = 16;
const PARAMETER_COUNT: usize = 14;
const SECTIONS: usize = 32;
const CHECKSUM: usize = SECTIONS + 3 * REGIONS.len();

/// Whose segment it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random name of the run.
    pub run_id: u128,
    /// The kernel's name for this boot of the machine.
    pub boot_id: u128,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// Start time of the supervisor in clock ticks since boot, which with the process id is never reused.
    pub supervisor_start_time: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_unix_ms: u64,
}

impl Identity {
    pub(super) fn of_this_process() -> Result<Self, SegmentError> {
        let supervisor_pid = std::process::id();
        Ok(Self {
            run_id: uuid::Uuid::new_v4().as_u128(),
            boot_id: boot_id(),
            supervisor_pid,
            supervisor_start_time: super::processes::start_time(supervisor_pid).unwrap_or(0),
            created_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    /// Whether the machine has not been restarted since: else process ids mean nothing.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    /// Name of the shared-memory object: ours, this user's, this supervisor's, and not to be guessed.
    pub fn segment_name(&self) -> String {
        format!("/shoal-{}-{}-{:032x}", nix::unistd::getuid(), self.supervisor_pid, self.run_id)
    }
}

impl Identity {
    /// Name of the shared-memory object of a replay that belongs to no run.
    pub(super) fn replay_name(&self) -> String {
        format!("{}{}-{:032x}", replay_name_prefix(), self.supervisor_pid, self.run_id)
    }
}

/// How the names of replays that belong to no run begin.
pub(super) const REPLAY_NAMES: &str = "/shoal-replay-";

/// How the names of this user's replays that belong to no run begin.
pub fn replay_name_prefix() -> String {
    format!("{REPLAY_NAMES}{}-", nix::unistd::getuid())
}

fn boot_id() -> u128 {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .and_then(|text| uuid::Uuid::parse_str(text.trim()).ok())
        .map_or(0, |id| id.as_u128())
}

pub(super) fn publish(mapping: &Mapping, layout: &Layout, identity: &Identity) {
    let words = mapping.words(0, PAGE_BYTES / 8);
    let put = |index: usize, value: u64| words[index].store(value, Ordering::Relaxed);
    put(MAGIC_AT, MAGIC);
    put(VERSION, ABI_VERSION);
    put(TOTAL_BYTES, layout.total_bytes() as u64);
    put_u128(words, RUN_ID, identity.run_id);
    put_u128(words, BOOT_ID, identity.boot_id);
    put(SUPERVISOR, u64::from(identity.supervisor_pid));
    put(START_TIME, identity.supervisor_start_time);
    put(CREATED, identity.created_unix_ms);
    for (index, value) in encode(layout.parameters()).into_iter().enumerate() {
        put(PARAMETERS + index, value);
    }
    for (index, section) in layout.sections().iter().enumerate() {
        put(SECTIONS + 3 * index, section.region as u64);
        put(SECTIONS + 3 * index + 1, section.offset_bytes as u64);
        put(SECTIONS + 3 * index + 2, section.length_bytes as u64);
    }
    put(CHECKSUM, checksum(words));
    // Release: whoever sees READY sees the page, and every byte of the regions written so far.
    words[STATE].store(READY, Ordering::Release);
}

pub(super) fn validate(mapping: &Mapping) -> Result<(Layout, Identity), SegmentError> {
    if mapping.length_bytes() < PAGE_BYTES {
        return Err(damaged("the length of the object", mapping.length_bytes() as u64, PAGE_BYTES as u64));
    }
    let words = mapping.words(0, PAGE_BYTES / 8);
    // Acquire: pairs with the Release of `publish`.
    let state = words[STATE].load(Ordering::Acquire);
    let get = |index: usize| words[index].load(Ordering::Relaxed);
    if get(MAGIC_AT) != MAGIC {
        if state == 0 && get(MAGIC_AT) == 0 {
            return Err(SegmentError::NotReady);
        }
        return Err(SegmentError::NotASegment { name: mapping.name().into(), found: get(MAGIC_AT), expected: MAGIC });
    }
    if get(VERSION) != ABI_VERSION {
        return Err(SegmentError::Version { found: get(VERSION), expected: ABI_VERSION });
    }
    match state {
        READY => {}
        0 => return Err(SegmentError::NotReady),
        found => return Err(damaged("the state word", found, READY)),
    }
    if get(CHECKSUM) != checksum(words) {
        return Err(damaged("the checksum", get(CHECKSUM), checksum(words)));
    }
    let layout = Layout::new(decode(&std::array::from_fn(|index| get(PARAMETERS + index)))).map_err(|error| {
        let limit = if error.found < error.least { error.least } else { error.most };
        damaged(error.what, error.found as u64, limit as u64)
    })?;
    for (index, section) in layout.sections().iter().enumerate() {
        let expected = [section.region as u64, section.offset_bytes as u64, section.length_bytes as u64];
        for (part, what) in ["the section's kind", "the section's offset", "the section's length"].into_iter().enumerate() {
            let found = get(SECTIONS + 3 * index + part);
            if found != expected[part] {
                return Err(damaged(what, found, expected[part]));
            }
        }
    }
    for (what, found) in [("the total length", get(TOTAL_BYTES)), ("the length of the object", mapping.length_bytes() as u64)] {
        if found != layout.total_bytes() as u64 {
            return Err(damaged(what, found, layout.total_bytes() as u64));
        }
    }
    let identity = Identity {
        run_id: get_u128(words, RUN_ID),
        boot_id: get_u128(words, BOOT_ID),
        supervisor_pid: u32::try_from(get(SUPERVISOR)).map_err(|_| damaged("the supervisor's pid", get(SUPERVISOR), u32::MAX.into()))?,
        supervisor_start_time: get(START_TIME),
        created_unix_ms: get(CREATED),
    };
    Ok((layout, identity))
}

fn damaged(what: &'static str, found: u64, expected: u64) -> SegmentError {
    SegmentError::Damaged { what, found, expected }
}

fn checksum(words: &[AtomicU64]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    for word in &words[MAGIC_AT..CHECKSUM] {
        hasher.update(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    u64::from(hasher.finalize())
}

fn encode(parameters: &LayoutParameters) -> [u64; PARAMETER_COUNT] {
    [
        parameters.processes,
        parameters.stagers,
        parameters.staged_transitions,
        parameters.capacity,
        parameters.fanout,
        parameters.transition_words,
        parameters.published_values,
        parameters.learned_parameters,
        parameters.learner_state_values,
        parameters.statistics_values,
        parameters.learners,
        parameters.description_bytes,
        parameters.frames,
        parameters.frame_bytes,
    ]
    .map(|value| value as u64)
}

fn decode(values: &[u64; PARAMETER_COUNT]) -> LayoutParameters {
    let value = |index: usize| usize::try_from(values[index]).unwrap_or(usize::MAX);
    LayoutParameters {
        processes: value(0),
        stagers: value(1),
        staged_transitions: value(2),
        capacity: value(3),
        fanout: value(4),
        transition_words: value(5),
        published_values: value(6),
        learned_parameters: value(7),
        learner_state_values: value(8),
        statistics_values: value(9),
        learners: value(10),
        description_bytes: value(11),
        frames: value(12),
        frame_bytes: value(13),
    }
}

fn put_u128(words: &[AtomicU64], index: usize, value: u128) {
    let bytes = value.to_le_bytes();
    super::view::store_bytes(&words[index..index + 2], &bytes);
}

fn get_u128(words: &[AtomicU64], index: usize) -> u128 {
    let mut bytes = [0; 16];
    super::view::load_bytes(&words[index..index + 2], &mut bytes);
    u128::from_le_bytes(bytes)
}
