//! A run that stays in memory, as those find it who want to adopt it, or to have it written to the disk.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::ResumeError;
use crate::checkpoint::Checkpoints;
use crate::replay::{ReplayView, Schema};
use crate::segment::keeping::{Keeping, Wanted};
use crate::segment::{Description, NamedProcess, Region, Segment, SegmentError, SegmentSizes, system};
use crate::telemetry::{RunFolder, TelemetryError};

/// How long a keeper may take to give the folder of its run to whoever adopts that.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what a segment says of itself may be in the middle of a change.
const HEADER_PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// What stays as it is.
pub(in crate::roles::supervisor) const ROWS: [Region; 3] = [Region::Tree, Region::Store, Region::Frames];

/// The memory of a run that somebody keeps.
pub(in crate::roles::supervisor) struct KeptRun {
    segment: Segment,
}

impl KeptRun {
    /// That of the run in `folder`, if a process keeps it.
    ///
    /// # Errors
    /// Somebody has it who may keep it, and it cannot be looked into, or nobody can tell.
    pub(super) fn of(folder: &RunFolder) -> Result<Option<Self>, ResumeError> {
        let path = folder.kept_segment();
        let name = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            name => name.map_err(TelemetryError::file("read", &path))?,
        };
        let deadline = Instant::now() + HEADER_PATIENCE;
        let segment = loop {
            match Segment::attach(&name) {
                Ok(segment) => break segment,
                // An adopter is changing what the segment says of itself, or its keeper is, after one that died meanwhile.
                Err(SegmentError::NotReady | SegmentError::Damaged { .. }) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(error) if system::is_shared(&name) => {
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

    /// In what the sizes for which its memory was laid out differ from `others`: names, with both values.
    pub(super) fn differences_from(&self, others: &SegmentSizes) -> Vec<String> {
        let table = |sizes| toml::Table::try_from(sizes).expect("numbers have a spelling in TOML");
        let (own, others) = (table(self.segment.layout().sizes()), table(others));
        let differing = own.iter().filter(|&(name, value)| others.get(name) != Some(value));
        differing.map(|(name, value)| format!("{name} {value}, not {}", others[name])).collect()
    }

    /// Bytes of memory that it has.
    pub(super) fn bytes(&self) -> u64 {
        self.segment.layout().total_bytes() as u64
    }

    /// What is to become of it.
    pub(super) fn wanted(&self) -> Wanted {
        self.keeping().wanted()
    }

    /// Have it written to the disk. `false` where somebody else has said before what is to become of it.
    pub(super) fn write_to_disk(&self) -> bool {
        let is_asked = self.keeping().write_to_disk().is_ok();
        self.segment.control().signal_progress();
        is_asked
    }

    /// Claim it, and take its folder, for this process, which has to end if it does not go on with the run: that is how the keeper is told.
    /// All that is known of it is `checkpoint`, its newest; a row has the fields of `schema`.
    ///
    /// # Errors
    /// Somebody came before, the folder is not given back, it has been another life of the run since that was looked at, or the sums of its
    /// priorities are wrong.
    pub(super) fn claim(&self, folder: &mut RunFolder, checkpoint: &Path, schema: Schema) -> Result<(), ResumeError> {
        let (name, path) = (NamedProcess::this(), folder.path().to_path_buf());
        let deadline = Instant::now() + PATIENCE;
        while self.keeping().is_kept() {
            match self.keeping().adopt(name) {
                Ok(()) => break,
                // One that has died is forgotten by the keeper in a moment.
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
                ResumeError::NotKept { folder: path }
            } else {
                ResumeError::Running { folder: path, pid: record.supervisor_pid }
            });
        }
        // Nobody else is there who could be in the middle of a change.
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
