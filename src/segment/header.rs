//! The first page: what the segment is, which run it belongs to, and where its regions lie. Immutable once published,
//! unless another supervisor adopts the run.
//!
//! The state word is stored last with Release. A reader takes a copy of the page, the state word first, and believes
//! nothing of it before magic, version, sizes, offsets and checksum agree: the page may be anything.

use std::io::ErrorKind;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::SegmentError;
use super::layout::{Layout, PAGE_BYTES, Region, SegmentSizes};
use super::mapping::Mapping;
use super::object::Object;
use crate::sync::{Ordering, fence};

/// Version of everything in the segment. To be raised with every change of a region's meaning.
pub const ABI_VERSION: u64 = 16;

const MAGIC: u64 = u64::from_le_bytes(*b"SHOALSEG");
const READY: u64 = u64::from_le_bytes(*b"READY\0\0\0");
/// In place of the kernel's name of the boot, if that cannot be read.
const UNKNOWN_BOOT: u128 = 0;

pub(super) const PAGE_WORDS: usize = PAGE_BYTES / 8;
pub(super) const STATE: usize = 0;
const MAGIC_AT: usize = 1;
const VERSION: usize = 2;
const TOTAL_BYTES: usize = 3;
const RUN_ID: usize = 4;
const BOOT_ID: usize = 6;
const SUPERVISOR: usize = 8;
const START_TIME: usize = 9;
const CREATED: usize = 10;
const PID_NAMESPACE: usize = 11;
const TIME_NAMESPACE: usize = 12;
const SIZES: usize = 16;
const SECTIONS: usize = SIZES + SegmentSizes::COUNT;
const CHECKSUM: usize = SECTIONS + 3 * Region::ALL.len();

/// What identifies a segment: a random name, the process that made or adopted it, and the boot and namespaces of that
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random name of the run.
    pub run_id: u128,
    /// The kernel's name for this boot of the machine.
    pub boot_id: u128,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// Start time of the supervisor in clock ticks since boot. Process id and start time together are never reused.
    pub supervisor_start_time: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// The PID namespace in which the processes of the run name each other, by the number that `/proc/PID/ns/pid`
    /// shows; 0 if that is not known.
    pub pid_namespace: u64,
    /// The time namespace in which the processes of the run read each other's start times, by the number that
    /// `/proc/PID/ns/time` shows; 0 if the kernel has none.
    pub time_namespace: u64,
}

impl Identity {
    pub(super) fn of_this_process() -> Self {
        let supervisor_pid = std::process::id();
        Self {
            run_id: uuid::Uuid::new_v4().as_u128(),
            boot_id: boot_id(),
            supervisor_pid,
            supervisor_start_time: super::pidfd::start_time(supervisor_pid).unwrap_or(0),
            created_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
            pid_namespace: pid_namespace().unwrap_or(0),
            time_namespace: time_namespace(),
        }
    }

    /// An error unless the kernel can be asked whether the processes of this namespace live.
    pub(super) fn check_that_processes_are_known(&self) -> Result<(), SegmentError> {
        if self.pid_namespace != 0 {
            return Ok(());
        }
        // Asked again, for the reason.
        Err(pid_namespace().err().unwrap_or(SegmentError::UnknownProcesses))
    }

    /// An error unless process ids and start times mean the same processes in the segment called `name` and here.
    pub(crate) fn check_that_processes_mean_the_same(&self, name: &str) -> Result<(), SegmentError> {
        let own = pid_namespace()?;
        let found = self.pid_namespace;
        if own != found {
            return Err(SegmentError::OtherPidNamespace { name: name.into(), found, own });
        }
        let own = time_namespace();
        let found = self.time_namespace;
        if own != found { Err(SegmentError::OtherTimeNamespace { name: name.into(), found, own }) } else { Ok(()) }
    }

    /// Whether the machine has not been restarted since the segment was made: after a restart process ids mean
    /// nothing. In doubt it has not.
    pub fn is_of_this_boot(&self) -> bool {
        [self.boot_id, UNKNOWN_BOOT].contains(&boot_id())
    }

    /// Whether process ids and start times mean the same processes in that run and here.
    pub fn is_of_these_namespaces(&self) -> bool {
        self.check_that_processes_mean_the_same("").is_ok()
    }

    /// Name of the shared-memory object: it tells Shoal, the user and the supervisor, and cannot be guessed.
    pub fn segment_name(&self) -> String {
        format!("{}{}-{:032x}", segment_name_prefix(), self.supervisor_pid, self.run_id)
    }

    /// Name of the shared-memory object of a replay that belongs to no run.
    pub(super) fn replay_name(&self) -> String {
        format!("{}{}-{:032x}", replay_name_prefix(), self.supervisor_pid, self.run_id)
    }
}

/// How the names of this user's segments of runs begin.
pub fn segment_name_prefix() -> String {
    format!("/shoal-{}-", nix::unistd::getuid())
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
        .map_or(UNKNOWN_BOOT, |id| id.as_u128())
}

/// The PID namespace of this process, if `/proc` shows its processes. A `/proc` that was mounted in another namespace
/// knows other processes by the same ids, so that living ones would be taken for dead.
fn pid_namespace() -> Result<u64, SegmentError> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|source| match source.kind() {
        ErrorKind::NotFound => SegmentError::UnknownProcesses,
        _ => SegmentError::System { action: "reading /proc/self/status", source },
    })?;
    // The ids of this process, from the namespace of the mount inwards: a single id if that namespace is its own.
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let is_own = ids.is_some_and(|ids| ids.split_ascii_whitespace().count() == 1);
    namespace("pid").filter(|_| is_own).ok_or(SegmentError::UnknownProcesses)
}

/// The time namespace of this process, by whose clock the kernel tells when other processes started; 0 if the kernel
/// has none.
fn time_namespace() -> u64 {
    namespace("time").unwrap_or(0)
}

/// The number of this process's namespace of a kind.
fn namespace(kind: &str) -> Option<u64> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

pub(super) fn publish(mapping: &Mapping, layout: &Layout, identity: &Identity) {
    let mut page = [0; PAGE_WORDS];
    page[MAGIC_AT] = MAGIC;
    page[VERSION] = ABI_VERSION;
    page[TOTAL_BYTES] = layout.total_bytes() as u64;
    put_u128(&mut page, RUN_ID, identity.run_id);
    put_u128(&mut page, BOOT_ID, identity.boot_id);
    page[SUPERVISOR] = u64::from(identity.supervisor_pid);
    page[START_TIME] = identity.supervisor_start_time;
    page[CREATED] = identity.created_unix_ms;
    page[PID_NAMESPACE] = identity.pid_namespace;
    page[TIME_NAMESPACE] = identity.time_namespace;
    page[SIZES..SECTIONS].copy_from_slice(&layout.sizes().to_list().map(|size| size as u64));
    for (index, section) in layout.sections().iter().enumerate() {
        let place = [section.region as u64, section.offset_bytes as u64, section.length_bytes as u64];
        page[SECTIONS + 3 * index..][..3].copy_from_slice(&place);
    }
    page[CHECKSUM] = checksum(&page);
    let words = mapping.words(0, PAGE_WORDS);
    // Release fence: a page that was published before is marked as not ready before anything in it changes.
    words[STATE].store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    words.iter().zip(page).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    // Release: a process that sees READY sees the page, and every byte of the regions written so far.
    words[STATE].store(READY, Ordering::Release);
}

/// The run that a mapped header names at this moment.
pub(super) fn run_id_in(mapping: &Mapping) -> u128 {
    let words = mapping.words(0, PAGE_WORDS);
    // Relaxed: the kernel has told the caller that nobody changes it any more.
    let word = |index: usize| u128::from(words[index].load(Ordering::Relaxed));
    word(RUN_ID) | word(RUN_ID + 1) << 64
}

/// The content of the header of `object`, once every word of it agrees with all others and with the object.
pub(super) fn validate(object: &Object) -> Result<(Layout, Identity), SegmentError> {
    let length_bytes = object.length_bytes();
    if length_bytes == 0 {
        return Err(SegmentError::Open { name: object.name().into(), reason: "it is empty".into() });
    }
    if length_bytes < PAGE_BYTES {
        return Err(damaged("the length of the object", length_bytes as u64, PAGE_BYTES as u64));
    }
    let page = object.first_page()?;
    if page[MAGIC_AT] != MAGIC {
        if page[STATE] == 0 && page[MAGIC_AT] == 0 {
            return Err(SegmentError::NotReady);
        }
        return Err(SegmentError::NotASegment { name: object.name().into(), found: page[MAGIC_AT], expected: MAGIC });
    }
    if page[VERSION] != ABI_VERSION {
        return Err(SegmentError::Version { found: page[VERSION], expected: ABI_VERSION });
    }
    match page[STATE] {
        READY => {}
        0 => return Err(SegmentError::NotReady),
        found => return Err(damaged("the state word", found, READY)),
    }
    if page[CHECKSUM] != checksum(&page) {
        return Err(damaged("the checksum", page[CHECKSUM], checksum(&page)));
    }
    let sizes = std::array::from_fn(|index| usize::try_from(page[SIZES + index]).unwrap_or(usize::MAX));
    let layout = Layout::new(SegmentSizes::from_list(sizes)).map_err(|error| {
        let limit = if error.found < error.least { error.least } else { error.most };
        damaged(error.what, error.found as u64, limit as u64)
    })?;
    for (index, section) in layout.sections().iter().enumerate() {
        let expected = [section.region as u64, section.offset_bytes as u64, section.length_bytes as u64];
        for (part, what) in ["the section's kind", "the section's offset", "the section's length"].into_iter().enumerate() {
            let found = page[SECTIONS + 3 * index + part];
            if found != expected[part] {
                return Err(damaged(what, found, expected[part]));
            }
        }
    }
    for (what, found) in [("the total length", page[TOTAL_BYTES]), ("the length of the object", length_bytes as u64)] {
        if found != layout.total_bytes() as u64 {
            return Err(damaged(what, found, layout.total_bytes() as u64));
        }
    }
    let identity = Identity {
        run_id: get_u128(&page, RUN_ID),
        boot_id: get_u128(&page, BOOT_ID),
        supervisor_pid: u32::try_from(page[SUPERVISOR]).map_err(|_| damaged("the supervisor's pid", page[SUPERVISOR], u32::MAX.into()))?,
        supervisor_start_time: page[START_TIME],
        created_unix_ms: page[CREATED],
        pid_namespace: page[PID_NAMESPACE],
        time_namespace: page[TIME_NAMESPACE],
    };
    Ok((layout, identity))
}

fn damaged(what: &'static str, found: u64, expected: u64) -> SegmentError {
    SegmentError::Damaged { what, found, expected }
}

fn checksum(page: &[u64; PAGE_WORDS]) -> u64 {
    u64::from(crc32fast::hash(bytemuck::cast_slice(&page[MAGIC_AT..CHECKSUM])))
}

/// The lower half first.
fn put_u128(page: &mut [u64; PAGE_WORDS], index: usize, value: u128) {
    page[index..index + 2].copy_from_slice(&[value as u64, (value >> 64) as u64]);
}

fn get_u128(page: &[u64; PAGE_WORDS], index: usize) -> u128 {
    u128::from(page[index]) | u128::from(page[index + 1]) << 64
}
