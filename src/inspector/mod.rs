//! The inspector: a look into a running or dead run from outside.
//!
//! It maps the segment read-only and takes no lock, so it cannot disturb the run. It trusts nothing that it reads:
//! the header is validated before anything else, every index and length from the segment is checked, and no byte
//! pattern makes it panic. What it finds is plain data, [`Report`], that several renderers share.

// What is found, as plain data.
mod folder;
mod histogram;
mod metrics;
mod printable;
mod processes;
mod rates;
mod replay;
mod report;
mod runs;
mod transition;
mod tree;

// As text.
mod decoded;
mod listing;
mod text;
mod words;

// The live view.
mod live;
mod live_view;

mod error;

pub use error::InspectError;
pub use folder::FolderReport;
pub use histogram::{Bin, Histogram};
pub use live::{Ending, watch};
pub use live_view::{History, draw};
pub use metrics::MetricReport;
pub use processes::{ProcessReport, TimeShares};
pub use rates::{Look, Rates};
pub use replay::{ReplayReport, StagingReport};
pub use report::{FieldReport, Header, LearnerReport, ParameterReport, PictureReport, RegionReport, Report, RunDescription, RunReport};
pub use runs::{Cleaned, RunList, RunSummary, is_kept};
pub use transition::{FieldValues, Owner, Transition, Values};
pub use tree::{Exactness, TreeReport};

use std::time::Duration;

use crate::rendezvous::{Entry, Liveliness, Registry, RendezvousError};
use crate::segment::{Segment, SegmentError};

/// Looks at the sum tree, at most, until one falls into a quiet moment.
const TREE_LOOKS: u32 = 10;

/// A run, opened for looking.
pub struct Inspection {
    registry: Registry,
    entry: Entry,
    segment: Segment,
}

impl Inspection {
    /// Opens the run of the supervisor `pid`, dead or alive.
    ///
    /// # Errors
    /// There is no such run, or its segment is gone, is damaged or belongs to another run.
    pub fn open(registry: &Registry, pid: u32) -> Result<Self, InspectError> {
        let entry = registry.find(pid)?;
        let segment = open(&entry)?;
        Ok(Self { registry: registry.clone(), entry, segment })
    }

    /// Whether the supervisor `pid` is dead and nothing but the registry's record is left of its run.
    pub fn has_lost_its_memory(registry: &Registry, pid: u32) -> bool {
        let is_gone = |entry: &Entry| matches!(open(entry), Err(InspectError::Segment(SegmentError::Open { .. })));
        registry.find(pid).is_ok_and(|entry| entry.state == Liveliness::Dead && is_gone(&entry))
    }

    /// The segment.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether the supervisor lived when the run was opened.
    pub fn state(&self) -> Liveliness {
        self.entry.state
    }

    /// Everything about the run, with rates measured over `interval`. A dead run has no rates and is not waited for.
    pub fn report(&self, interval: Duration) -> Report {
        let earlier = (self.state() == Liveliness::Running).then(|| {
            let look = Look::at(&self.segment);
            std::thread::sleep(interval);
            look
        });
        Report::collect(&self.segment, self.state(), earlier.as_ref(), TREE_LOOKS)
    }

    /// Everything about the run, at once, with rates since `earlier`.
    pub fn report_since(&self, earlier: &Look) -> Report {
        Report::collect(&self.segment, self.state(), Some(earlier), 1)
    }

    /// Like [`Self::report_since`], but without the sum tree and its priorities: looking at every leaf of a large
    /// replay takes milliseconds.
    pub fn counts_since(&self, earlier: &Look) -> Report {
        Report::collect(&self.segment, self.state(), Some(earlier), 0)
    }

    /// The transition in slot `slot` of the replay.
    ///
    /// # Errors
    /// There is no such slot, it is empty, it was never whole, or the run's description is not valid.
    pub fn transition(&self, slot: usize) -> Result<Transition, InspectError> {
        Transition::read(&self.segment, slot)
    }

    /// Whether the run is still announced and its supervisor still lives.
    pub fn is_running(&self) -> bool {
        let found = self.registry.find(self.entry.record.identity.supervisor_pid);
        found.is_ok_and(|now| now.state == Liveliness::Running && now.record.identity == self.entry.record.identity)
    }
}

/// Maps the segment that `entry` names, and checks that it is of the same run.
fn open(entry: &Entry) -> Result<Segment, InspectError> {
    let record = &entry.record;
    let segment = Segment::attach_read_only(&record.segment)?;
    if *segment.identity() != record.identity {
        let other = RendezvousError::OtherRun { pid: record.identity.supervisor_pid, segment: record.segment.clone() };
        return Err(other.into());
    }
    Ok(segment)
}
