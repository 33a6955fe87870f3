//! The first page: what the segment is, which run it belongs to, and where its regions lie. Immutable once published,
//! unless another supervisor adopts the run.
//!
//! The state word is stored last with Release. A reader takes a copy of the page, the state word first, and believes
//! nothing of it before magic, version, sizes, offsets and checksum agree: the page may be anything.

use super::layout::{Layout, PAGE_BYTES, Region, SegmentSizes};
use super::mapping::Mapping;
use super::object::Object;
use super::{Identity, SegmentError};
use crate::sync::{Ordering, fence};

/// Version of everything in the segment. To be raised with every change of a region's meaning.
pub const ABI_VERSION: u64 = 16;

const MAGIC: u64 = u64::from_le_bytes(*b"SHOALSEG");
const READY: u64 = u64::from_le_bytes(*b"READY\0\0\0");

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
