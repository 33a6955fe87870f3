//! A run that stays in memory, as seen by a process that wants to adopt it, or to have it written to the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::ResumeError;
use crate::checkpoint::Checkpoints;
use crate::replay::{ReplayView, Schema};
use crate::segment::keeping::{Keeping, Wanted};
use crate::segment::{Description, NamedProcess, Region, Segment, SegmentError, SegmentSizes, object};
use crate::telemetry::{RunFolder, TelemetryError};

/// How long a keeper may take to give the folder of its run to whoever adopts that.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the header of a segment may be in the middle of a change.
const HEADER_PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// Regions that stay as they are when a run is adopted.
pub(in crate::roles::supervisor) const ROWS: [Region; 3] = [Region::Tree, Region::Store, Region::Frames];

/// The memory of a run that somebody keeps.
pub(in crate::roles::supervisor) struct KeptRun {
    segment: Segment,
}

impl KeptRun {
    /// The memory of the run in `folder`, if a process keeps it.
    ///
    /// # Errors
    /// Processes share a segment of that name, which cannot be attached to, or the file with its name cannot be
    /// read.
    pub(super) fn of(folder: &RunFolder) -> Result<Option<Self>, ResumeError> {
        let name = match folder.kept_segment_name() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            name => name.map_err(TelemetryError::file("read", &folder.kept_segment()))?,
        };
        let deadline = Instant::now() + HEADER_PATIENCE;
        let segment = loop {
            match Segment::attach(&name) {
                Ok(segment) => break segment,
                // An adopter is changing the header of the segment, or the keeper is, after an adopter that has
                // died.
                Err(SegmentError::NotReady | SegmentError::Damaged { .. }) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(error) if object::is_shared(&name) => {
                    return Err(ResumeError::KeptDamaged { folder: folder.path().into(), problem: error.to_string() });
                }
                Err(_) => return Ok(None),
            }
        };
        let is_kept = segment.control().keeping().is_kept();
        Ok((is_kept && !is_copy(folder, &segment)).then_some(Self { segment }))
    }

    fn keeping(&self) -> Keeping<'_> {
        self.segment.control().keeping()
    }

    /// The sizes for which the memory was laid out and that differ from `others`: each name with both values.
    pub(super) fn differences_from(&self, others: &SegmentSizes) -> Vec<String> {
        let table = |sizes| toml::Table::try_from(sizes).expect("numbers have a spelling in TOML");
        let (own, others) = (table(self.segment.layout().sizes()), table(others));
        let differing = own.iter().filter(|&(name, value)| others.get(name) != Some(value));
        differing.map(|(name, value)| format!("{name} {value}, not {}", others[name])).collect()
    }

    /// Bytes of memory that the run has.
    pub(super) fn bytes(&self) -> u64 {
        self.segment.layout().total_bytes() as u64
    }

    /// What is to become of the run.
    pub(super) fn wanted(&self) -> Wanted {
        self.keeping().wanted()
    }

    /// Ask for the run to be written to the disk. Returns `false` if somebody else has asked for something before.
    pub(super) fn write_to_disk(&self) -> bool {
        let is_asked = self.keeping().write_to_disk().is_ok();
        self.segment.control().signal_progress();
        is_asked
    }

    /// Claim the run, and take its folder, for this process. If the process does not go on with the run it has to
    /// end: that is how the keeper is told. `checkpoint` is the newest that is known of the run; a row has the
    /// fields of `schema`.
    ///
    /// # Errors
    /// Another process was first, the keeper does not give the folder back, the run has had another life since it
    /// was looked at, or the sums of its priorities are wrong.
    pub(super) fn claim(&self, folder: &mut RunFolder, checkpoint: &Path, schema: Schema) -> Result<(), ResumeError> {
        let name = NamedProcess::this();
        let path = folder.path().to_path_buf();
        let deadline = Instant::now() + PATIENCE;
        while self.keeping().is_kept() {
            match self.keeping().adopt(name) {
                Ok(()) => break,
                // The keeper forgets a dead adopter in a moment.
                Err(Wanted::By(adopter)) if !adopter.has_ended() => {
                    return Err(ResumeError::AdoptedByAnother { folder: path, pid: adopter.pid() });
                }
                Err(Wanted::OnDisk) => return Err(ResumeError::BeingWritten { folder: path }),
                Err(_) if Instant::now() >= deadline => return Err(ResumeError::Taken { folder: path }),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        self.segment.control().signal_progress();
        let is_claimed = || self.keeping().keeper().is_some() && self.keeping().wanted() == Wanted::By(name);
        let deadline = Instant::now() + PATIENCE;
        while is_claimed() && !folder.take()? {
            if Instant::now() >= deadline {
                return Err(ResumeError::Taken { folder: path });
            }
            std::thread::sleep(PAUSE);
        }
        let newest = Checkpoints::new(folder.kept()).newest();
        if !is_claimed() || !newest.is_ok_and(|newest| newest.path() == checkpoint) {
            folder.give_back();
            let record = folder.record()?;
            return Err(if record.has_lost_its_supervisor() {
                ResumeError::not_kept(folder, &record)
            } else {
                ResumeError::running(folder, &record)
            });
        }
        // Nobody else uses the tree now, so that no change can be under way.
        match ReplayView::new(&self.segment, schema).tree().map(|tree| tree.audit()) {
            Some(audit) if !audit.is_exact() => {
                Err(ResumeError::KeptDamaged { folder: path, problem: "the sums of its priorities are wrong".into() })
            }
            _ => Ok(()),
        }
    }

    /// The segment of the run that this process has claimed: its rows as they were,
    /// everything else as in a new one that `description` describes.
    ///
    /// # Errors
    /// The description is too long.
    pub(in crate::roles::supervisor) fn take_over(self, description: &Description, huge_pages: bool) -> Result<Segment, SegmentError> {
        self.segment.adopt(&ROWS, description, huge_pages)
    }
}

/// Whether the run in `segment` has its results in another folder: then this one is a copy of that.
fn is_copy(folder: &RunFolder, segment: &Segment) -> bool {
    segment.description().is_ok_and(|description| folder.is_copy_of(&description.run_folder))
}
