//! What the models share.

use std::mem::forget;

use loom::sync::Arc;
use shoal_models::replay::{Batch, Element, Field, Priority, Replay, Schema, StagingArea};
use shoal_models::segment::processes::Role;
use shoal_models::segment::{Region, Segment, SegmentSizes};
use shoal_models::sync::AtomicU64;

/// A process id beyond all that the kernel gives: its process is dead.
pub const DEAD: u32 = 0x3fff_ffff;

/// Words from one control word to the next.
pub const CONTROL_STRIDE: usize = 16;
/// Numbers of control words, see `control.rs`.
pub const CLAIMED: usize = 1;
pub const INSERTED: usize = 2;
pub const SAMPLED: usize = 3;
pub const ENV_STEPS: usize = 4;
pub const GATE: usize = 10;
pub const PROGRESS: usize = 11;
pub const WAITERS: usize = 12;
pub const REPAIRER: usize = 14;
pub const CLEARING: usize = 15;
pub const KEEPER: usize = 20;
pub const ADOPTER: usize = 21;
/// Words of a process slot, see `processes.rs`.
pub use shoal_models::segment::processes::SLOT_WORDS;
pub const OWNER: usize = 0;
pub const START_TIME: usize = 1;
pub const PLACE: usize = 5;
pub const IN_OPERATION: usize = 16;

/// Rows of two equal words, so that a mixture shows.
pub fn schema() -> Schema {
    Schema::new(vec![Field::new("value", Element::U64, 2)])
}

/// Sizes of a small replay for `processes` processes, all of which stage.
pub fn sizes(processes: usize, capacity: usize) -> SegmentSizes {
    SegmentSizes { processes, stagers: processes, staged_rows: 4, fanout: 4, ..SegmentSizes::of_rows(2, capacity) }
}

/// A segment in which the control words with these numbers, and whatever else `takes_part` says, are explored.
pub fn segment(sizes: SegmentSizes, control: &'static [usize], takes_part: impl Fn(Region, usize) -> bool) -> Arc<Segment> {
    let is_control = |region, word: usize| {
        region == Region::Control && word.is_multiple_of(CONTROL_STRIDE) && control.contains(&(word / CONTROL_STRIDE))
    };
    let segment = Segment::new(sizes, |region, word| is_control(region, word) || takes_part(region, word));
    for slot in segment.processes().iter() {
        occupy(&segment, slot.index(), std::process::id());
    }
    Arc::new(segment)
}

/// Give the free slot `index` to process `pid`.
pub fn occupy(segment: &Segment, index: usize, pid: u32) {
    let slot = segment.processes().slot(index);
    slot.release();
    let generation = slot.reserve(Role::Participant, index).expect("a free slot");
    assert!(slot.occupy(pid, generation));
}

/// Give the slot `index` to a process that has died, inside an operation or not.
pub fn die(segment: &Segment, index: usize, inside: bool) {
    occupy(segment, index, DEAD);
    if inside {
        forget(segment.processes().slot(index).begin_operation(segment.control(), || ()));
    }
}

/// Stage a row for the process in slot `index`.
pub fn stage(segment: &Segment, index: usize, value: u64, priority: Priority) {
    let schema = schema();
    let area = StagingArea::of(segment, index);
    let mut writer = area.write(&schema);
    writer.bytes(0, &[value.to_ne_bytes(), value.to_ne_bytes()].concat());
    writer.commit(Some(priority));
}

/// Insert what the process in slot `index` has staged.
pub fn flush(segment: &Segment, index: usize) -> usize {
    let area = StagingArea::of(segment, index);
    Replay::new(segment, schema(), segment.processes().slot(index)).flush(area)
}

/// Stage and insert one row.
pub fn insert(segment: &Segment, index: usize, value: u64, priority: Priority) {
    stage(segment, index, value, priority);
    flush(segment, index);
}

/// The value of row `at` of a batch, which must be whole.
pub fn value(batch: &Batch, at: usize) -> u64 {
    let words = batch.column(0).bytes()[16 * at..][..16].as_chunks::<8>().0;
    assert_eq!(words[0], words[1], "a mixture of two rows");
    u64::from_ne_bytes(words[0])
}

/// The values of all rows, once all processes have left. The tree must be exact, and every row must have the leaf of
/// its generation.
pub fn rows(segment: &Segment) -> Vec<u64> {
    let replay = Replay::new(segment, schema(), segment.processes().slot(0));
    let audit = replay.tree().expect("a tree").audit();
    assert!(audit.is_exact(), "{audit:?}");
    let (mut batch, mut names) = (Batch::new(&schema(), 1), Vec::new());
    let mut found = Vec::new();
    for slot in 0..replay.store().capacity() {
        assert!(!replay.store().word(slot).is_writing(), "slot {slot} is still being written");
        if let Ok(generation) = replay.reader().read(slot, &mut batch.as_rows(), 0, &mut names) {
            assert!(replay.is_current(slot, generation) || replay.leaf_tag(slot).is_none(), "slot {slot} has another's leaf");
            found.push(value(&batch, 0));
        }
    }
    found.sort_unstable();
    found
}

/// Words in memory, of which those are explored that `takes_part` selects.
pub fn words(count: usize, takes_part: impl Fn(usize) -> bool) -> Arc<Vec<AtomicU64>> {
    Arc::new((0..count).map(|index| if takes_part(index) { AtomicU64::explored(0) } else { AtomicU64::new(0) }).collect())
}
