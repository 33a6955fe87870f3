//! A segment on the heap, with the product's files for the regions of a segment.

#[path = "../../../src/segment/board.rs"]
mod board;
#[path = "../../../src/segment/control.rs"]
pub mod control;
#[path = "../../../src/segment/counters.rs"]
pub mod counters;
#[path = "../../../src/segment/description.rs"]
pub mod description;
#[path = "../../../src/segment/error.rs"]
mod error;
#[path = "../../../src/segment/float_board.rs"]
pub mod float_board;
#[path = "../../../src/segment/gradients.rs"]
pub mod gradients;
#[path = "../../../src/segment/keeping.rs"]
pub mod keeping;
#[path = "../../../src/segment/layout.rs"]
pub mod layout;
#[path = "../../../src/segment/membership.rs"]
pub mod membership;
#[path = "../../../src/segment/metrics.rs"]
pub mod metrics;
#[path = "../../../src/segment/named_enum.rs"]
pub(crate) mod named_enum;
#[path = "../../../src/segment/named_process.rs"]
mod named_process;
#[path = "../../../src/segment/pictures.rs"]
pub mod pictures;
#[path = "../../../src/segment/pidfd.rs"]
pub mod pidfd;
#[path = "../../../src/segment/processes.rs"]
pub mod processes;
#[path = "../../../src/segment/role.rs"]
mod role;
#[path = "../../../src/segment/scores.rs"]
pub mod scores;
#[path = "../../../src/segment/shared_words.rs"]
pub mod shared_words;

/// In place of copies of many bytes at once: here every word is accessed by itself.
mod copy {
    use crate::sync::AtomicU64;

    pub(super) const LEAST_BYTES: usize = 1 << 40;

    pub(super) fn from_words(_: &[AtomicU64], _: &mut [u8]) {
        unreachable!()
    }

    pub(super) fn to_words(_: &[AtomicU64], _: &[u8]) {
        unreachable!()
    }

    pub(super) fn between_words(_: &[AtomicU64], _: &[AtomicU64]) {
        unreachable!()
    }
}

/// In place of the product's calls to the processor and the kernel.
pub mod system {
    use crate::sync::AtomicU64;

    /// Does nothing: there is no memory to fetch early.
    pub fn prefetch(_: &AtomicU64) {}
}

pub use error::SegmentError;
pub use layout::{Layout, Region, SegmentSizes};
pub use named_process::NamedProcess;

use crate::sync::{AtomicU32, AtomicU64};
use control::Control;
use processes::ProcessTable;

/// The identity of the segment, which has no supervisor.
pub struct Identity {
    pub supervisor_pid: u32,
    pub supervisor_start_time: u64,
}

/// A segment without a name.
pub struct Segment {
    layout: Layout,
    regions: Vec<Vec<AtomicU64>>,
    half_words: Vec<AtomicU32>,
    identity: Identity,
}

impl Segment {
    /// A segment of zeros in which `takes_part` says which words a model explores.
    pub fn new(sizes: SegmentSizes, takes_part: impl Fn(Region, usize) -> bool) -> Self {
        let layout = Layout::new(sizes).expect("a possible layout");
        let regions = Region::ALL.map(|region| {
            let words = layout.section(region).length_bytes / 8;
            let word = |index| if takes_part(region, index) { AtomicU64::explored(0) } else { AtomicU64::new(0) };
            (0..words).map(word).collect()
        });
        // The futex words of the control region are halves of words that are nothing else.
        let halves = 2 * layout.section(Region::Control).length_bytes / 8;
        let half_word = |index| if takes_part(Region::Control, index / 2) { AtomicU32::explored(0) } else { AtomicU32::new(0) };
        let half_words = (0..halves).map(half_word).collect();
        Self { layout, regions: regions.into(), half_words, identity: Identity { supervisor_pid: 0, supervisor_start_time: 0 } }
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All words of a region.
    pub fn words(&self, region: Region) -> &[AtomicU64] {
        &self.regions[region as usize]
    }

    /// The run-wide words.
    pub fn control(&self) -> Control<'_> {
        Control::new(self.words(Region::Control), &self.half_words)
    }

    /// The process table.
    pub fn processes(&self) -> ProcessTable<'_> {
        ProcessTable::new(self.words(Region::Processes), self.layout.sizes().processes)
    }

    /// There is no supervisor: participants repair after each other.
    pub fn has_supervisor(&self) -> bool {
        false
    }

    /// The identity, which names no supervisor.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Process ids mean the same to everybody.
    pub fn check_namespaces(&self) -> Result<(), SegmentError> {
        Ok(())
    }
}
