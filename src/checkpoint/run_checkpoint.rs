//! A checkpoint of a run: a folder that is complete or absent, from which the run goes on.
//!
//! ```text
//! 000003-step1200000/
//!     replay.shoal        rows, priorities, frames       (replay_file)
//!     state.bin           everything else of the segment (segment_state)
//!     config.toml         the resolved configuration
//!     best.safetensors    the best weights so far, if there are any
//!     manifest.json       what is above, with lengths and checksums
//!     manifest.crc32c     the checksum of that; written last
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bincode::error::EncodeError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CheckpointError;
use super::paced::Paced;
use super::replay_file::{self, Filled, ReplayFile};
use super::segment_state::{SavedStatistics, SegmentState};
use super::summed::Summed;
use super::weights::{PolicyWeights, WeightsMetadata};
use crate::bounded_file::{open_file, read_bytes, read_text};
use crate::replay::{ReplayView, Schema, ZeroPriority};
use crate::segment::description::FieldDescription;
use crate::segment::processes::Role;
use crate::segment::{Layout, Region, Segment, SegmentSizes};

/// Version of the layout of checkpoints.
pub(super) const FORMAT_VERSION: u32 = 3;

const MANIFEST: &str = "manifest.json";
const MANIFEST_SUM: &str = "manifest.crc32c";
const REPLAY: &str = "replay.shoal";
const STATE: &str = "state.bin";
const CONFIG: &str = "config.toml";
const BEST: &str = "best.safetensors";
/// Words of a row or a frame in the file of a replay, beside its own.
const RECORD_WORDS: usize = 3;
/// Largest manifest that is read.
const MANIFEST_LIMIT_BYTES: u64 = 16 << 20;
/// The most bytes of its checksum.
const SUM_LIMIT_BYTES: u64 = 64;
/// Largest state that is read, whatever the layout.
const STATE_LIMIT_BYTES: usize = 64 << 30;

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this layout.
    pub format: u32,
    /// Version of the program.
    pub program_version: String,
    /// Which of the run, from 1.
    pub sequence: u64,
    /// When it was written, UTC.
    pub written: Timestamp,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// Environment steps of the run.
    pub env_steps: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Sizes of the segment.
    pub layout: SegmentSizes,
    /// Fields of a row.
    pub fields: Vec<FieldDescription>,
    /// Environment steps after which the best weights were published, if there are any.
    pub best_env_steps: Option<u64>,
    /// What the supervisor remembers of the run.
    #[serde(rename = "memory")]
    pub supervisor_record: Value,
    files: Vec<FileEntry>,
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileEntry {
    name: String,
    bytes: u64,
    /// CRC-32C; absent for a file that ends with its own.
    crc32c: Option<u32>,
}

/// What a checkpoint is made of.
#[derive(Clone)]
pub struct Content<'a> {
    /// The shared memory; others may use it meanwhile.
    pub segment: &'a Segment,
    /// Fields of a row.
    pub schema: Schema,
    /// What a priority of zero means in the replay.
    pub zero: ZeroPriority,
    /// Incarnations of the synchronous trainer so far, if it is one that trains.
    pub incarnation: Option<u64>,
    /// Whether rows and frames are to be kept too.
    pub with_replay: bool,
    /// The longest that the writer may rest in all, so that it takes little of a core beside training; zero where somebody waits for it.
    pub longest_rest: Duration,
    /// The best weights so far, which need not exist.
    pub best_weights: &'a Path,
    /// Environment steps after which they were published.
    pub best_env_steps: Option<u64>,
    /// What the supervisor remembers of the run, some time after it began to have the checkpoint written.
    pub supervisor_record: &'a dyn Fn(Duration) -> Value,
}

impl Content<'_> {
    /// Bytes that it takes, rather more than less, with the rows and frames that there are by now.
    pub fn bytes(&self) -> u64 {
        let records = || {
            let counts = ReplayView::new(self.segment, self.schema.clone()).counts();
            [counts.claimed, counts.frames]
        };
        bytes_of(self.segment.layout(), self.with_replay.then(records))
    }

    /// Fill `folder`, which is empty, for a writer who `began` earlier. Returns what is in it and how many bytes that takes.
    pub(super) fn write(self, sequence: u64, folder: &Path, began: Instant) -> io::Result<(Manifest, u64)> {
        let damaged = |_| io::Error::other(CheckpointError::Unreadable { content: "description of the run" });
        let description = self.segment.description().map_err(damaged)?;
        let mut files = Vec::new();
        // First, since what is remembered of the run knows of these, and others may follow.
        if self.best_env_steps.is_some() && self.best_weights.is_file() {
            let mut best = File::open(self.best_weights)?;
            files.push(write_file(folder, BEST, |out| io::copy(&mut best, out).map(drop))?);
        }
        let mut counted = None;
        let mut count = || {
            let supervisor_record = (self.supervisor_record)(began.elapsed());
            counted = Some((SegmentState::of(self.segment, self.schema.clone(), self.incarnation)?, supervisor_record));
            Ok(())
        };
        // Everything else is read behind the rows, so that none of them is one that was never counted, and before the frames, so that
        // little has changed meanwhile.
        if self.with_replay {
            let file = File::create(folder.join(REPLAY))?;
            let view = ReplayView::new(self.segment, self.schema.clone());
            let paced = Paced::new(&file, self.bytes(), self.longest_rest);
            let bytes = replay_file::write(&view, self.zero, String::new(), paced, &mut count)?;
            file.sync_all()?;
            files.push(FileEntry { name: REPLAY.into(), bytes, crc32c: None });
        } else {
            count()?;
        }
        let (state, supervisor_record) = counted.expect("it was counted");
        files.push(write_file(folder, STATE, |mut out| {
            bincode::serde::encode_into_std_write(&state, &mut out, bincode::config::legacy()).map(drop).map_err(of_system)
        })?);
        files.push(write_file(folder, CONFIG, |out| out.write_all(description.config_toml.as_bytes()))?);
        let manifest = Manifest {
            format: FORMAT_VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            sequence,
            written: Timestamp::now(),
            environment: description.environment,
            algorithm: description.algorithm,
            env_steps: state.env_steps,
            updates: state.updates,
            layout: *self.segment.layout().sizes(),
            fields: description.fields,
            best_env_steps: self.best_env_steps,
            supervisor_record,
            files,
        };
        let text = serde_json::to_string_pretty(&manifest)?;
        let FileEntry { crc32c, .. } = write_file(folder, MANIFEST, |out| out.write_all(text.as_bytes()))?;
        write_file(folder, MANIFEST_SUM, |out| writeln!(out, "{:08x}", crc32c.unwrap_or(0)))?;
        let bytes = manifest.files.iter().map(|file| file.bytes).sum();
        Ok((manifest, bytes))
    }
}

/// Bytes that a checkpoint of a run with this `layout` takes at most, rather more than less: without its replay, or with so many `records`
/// of each kind as fit there.
pub fn bytes_of_largest_checkpoint(layout: &Layout, records: Option<u64>) -> u64 {
    bytes_of(layout, records.map(|records| [records; 2]))
}

/// As [`Content::bytes`]; `records` are the rows and frames that were ever written, if they are to be kept.
fn bytes_of(layout: &Layout, records: Option<[u64; 2]>) -> u64 {
    let length = |region| layout.section(region).length_bytes as u64;
    let counts = [Region::Control, Region::Processes, Region::Description].map(length).iter().sum::<u64>();
    let boards = [Region::Parameters, Region::LearnerState, Region::Statistics].map(length).iter().sum::<u64>();
    let sizes = layout.sizes();
    let of = |records: u64, slots: usize, words: usize| records.min(slots as u64) * 8 * (RECORD_WORDS + words) as u64;
    let replay = records
        .map_or(0, |[rows, frames]| of(rows, sizes.capacity, sizes.slot_words()) + of(frames, sizes.frames, sizes.frame_slot_words()));
    counts + boards + replay
}

/// What the system said, if it did not take what was encoded.
fn of_system(error: EncodeError) -> io::Error {
    match error {
        EncodeError::Io { inner, .. } => inner,
        other => io::Error::other(other),
    }
}

fn write_file(folder: &Path, name: &str, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<FileEntry> {
    let file = File::create(folder.join(name))?;
    let mut out = Summed::new(io::BufWriter::with_capacity(1 << 20, &file));
    fill(&mut out)?;
    out.flush()?;
    let (bytes, sum) = (out.bytes(), out.sum());
    drop(out);
    file.sync_all()?;
    Ok(FileEntry { name: name.into(), bytes, crc32c: Some(sum) })
}

/// Where the rows of a replay are that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsIn {
    /// In the checkpoint, if it has them.
    Checkpoint,
    /// In the segment, where they have stayed.
    Segment,
    /// Nowhere: the replay begins empty.
    Nothing,
}

/// A complete checkpoint whose files were checked, those apart that check themselves when they are read.
#[derive(Debug, Clone)]
pub struct RunCheckpoint {
    path: PathBuf,
    manifest: Manifest,
}

impl RunCheckpoint {
    /// Open the checkpoint in the folder `path`.
    ///
    /// # Errors
    /// It is none, is damaged, or was written by a later version.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        Self::open_for(path, |_| true)
    }

    /// Open the checkpoint in the folder `path` for a run that begins with what was learned. It takes neither rows nor the best weights:
    /// these may be gone.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_begin(path: &Path) -> Result<Self, CheckpointError> {
        Self::open_for(path, |name| name != REPLAY && name != BEST)
    }

    fn open_for(path: &Path, is_taken: impl Fn(&str) -> bool) -> Result<Self, CheckpointError> {
        let damaged = |problem: String| CheckpointError::Damaged { path: path.into(), problem };
        let manifest = Self::manifest_in(path)?;
        for FileEntry { name, bytes, crc32c } in manifest.files.iter().filter(|file| is_taken(&file.name)) {
            if ![REPLAY, STATE, CONFIG, BEST].contains(&name.as_str()) {
                return Err(damaged(format!("{name:?} is no file of a checkpoint")));
            }
            let found = checksum(&path.join(name), *bytes, crc32c.is_some()).map_err(|error| damaged(format!("`{name}`: {error}")))?;
            if found.0 != *bytes {
                return Err(damaged(format!("`{name}` has {} bytes, and had {bytes}", found.0)));
            }
            if crc32c.is_some_and(|sum| sum != found.1) {
                return Err(damaged(format!("`{name}` is not as it was written: its checksum differs")));
            }
        }
        Ok(Self { path: path.into(), manifest })
    }

    /// Whether the folder `path` looks like that of a checkpoint.
    pub fn is_at(path: &Path) -> bool {
        path.join(MANIFEST).is_file()
    }

    /// Read the file of the replay, which may be large, and which [`Self::open`] does not.
    ///
    /// # Errors
    /// It is damaged.
    pub fn check_replay(&self) -> Result<(), CheckpointError> {
        if self.has_replay() {
            ReplayFile::open(&self.path.join(REPLAY))?;
        }
        Ok(())
    }

    /// What the checkpoint in `path` says of itself; its files are not looked at.
    ///
    /// # Errors
    /// There is none that can be read, it is not as its checksum says, or it is of another version.
    pub fn manifest_in(path: &Path) -> Result<Manifest, CheckpointError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let file = path.join(MANIFEST);
        let read = || {
            let mut text = Vec::new();
            File::open(&file)?.take(MANIFEST_LIMIT_BYTES).read_to_end(&mut text).map(|_| text)
        };
        let text = read().map_err(|source| CheckpointError::Read { path: file.clone(), source })?;
        let damaged = |problem: String| CheckpointError::Damaged { path: path.into(), problem: format!("`{MANIFEST}`: {problem}") };
        let sum_file = path.join(MANIFEST_SUM);
        let sum = read_text(&sum_file, SUM_LIMIT_BYTES).map_err(|source| CheckpointError::Read { path: sum_file, source })?;
        if u32::from_str_radix(sum.trim(), 16) != Ok(crc32c::crc32c(&text)) {
            return Err(damaged(format!("its checksum is not that in `{MANIFEST_SUM}`")));
        }
        let Format { format } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if format != FORMAT_VERSION {
            return Err(CheckpointError::Format { path: path.into(), found: format, expected: FORMAT_VERSION });
        }
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The configuration of the run when it was written.
    ///
    /// # Errors
    /// The file that has it cannot be read.
    pub fn config_toml(&self) -> Result<String, CheckpointError> {
        let path = self.config_path();
        fs::read_to_string(&path).map_err(|source| CheckpointError::Read { path, source })
    }

    /// The file that has it.
    pub fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// Fill `segment`, which nobody uses yet, also with the rows if they are in the checkpoint. `planned` maps a role, its number and the
    /// slot it had last to its slot now. What a process that has no slot now has counted goes to the first of its role, or else to the
    /// first slot. If all rows have lost a frame, none counts.
    ///
    /// # Errors
    /// A file is damaged, or of another shape than the segment.
    pub fn restore(
        &self,
        segment: &Segment,
        schema: &Schema,
        rows: RowsIn,
        planned: impl Fn(Role, usize, usize) -> Option<usize>,
    ) -> Result<Restored, CheckpointError> {
        let mut state = self.state()?;
        check_fits(&state, segment, &self.path)?;
        let filled = match rows {
            RowsIn::Checkpoint if self.has_replay() => Some(ReplayFile::open(&self.path.join(REPLAY))?.fill(segment, schema.clone())?),
            RowsIn::Segment => Some(Filled::default()),
            RowsIn::Checkpoint | RowsIn::Nothing => None,
        };
        if filled.is_none_or(|filled| filled.is_nothing()) {
            state.forget_rows();
        }
        Ok(Restored { filled: filled.unwrap_or_default(), without_board: state.restore(segment, schema.clone(), planned) })
    }

    /// What was learned, for runs that begin: what learners keep and publish, and what inputs are scaled with.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn learned(&self) -> Result<Learned, CheckpointError> {
        Ok(Learned { path: self.path.clone(), state: self.state()? })
    }

    /// The policy that learners had published last, whose network is that of `other`, a policy of the same run; `None` before the first
    /// publication.
    ///
    /// # Errors
    /// A file is damaged, or `other` has another length.
    pub fn policy(&self, other: PolicyWeights) -> Result<Option<PolicyWeights>, CheckpointError> {
        let Some((parameter_version, [updates, environment_steps, ..], published)) = self.state()?.published() else { return Ok(None) };
        let (found, expected) = (published.len(), other.published().len());
        if found != expected {
            let problem = format!("the policy in `{STATE}` has {found} numbers, and another of its run {expected}");
            return Err(CheckpointError::Damaged { path: self.path.clone(), problem });
        }
        let metadata = WeightsMetadata { parameter_version, environment_steps, updates, evaluation: None, ..other.metadata };
        Ok(Some(PolicyWeights::new(other.spec, &published, metadata)))
    }

    /// Everything but rows and frames.
    fn state(&self) -> Result<SegmentState, CheckpointError> {
        let damaged = |problem: String| CheckpointError::Damaged { path: self.path.clone(), problem };
        let layout = Layout::new(self.manifest.layout).map_err(|error| damaged(error.to_string()))?;
        let path = self.path.join(STATE);
        let bytes = read_bytes(&path, bytes_of(&layout, None)).map_err(|source| CheckpointError::Read { path, source })?;
        let limited = bincode::config::legacy().with_limit::<STATE_LIMIT_BYTES>();
        let decoded = bincode::serde::decode_from_slice::<SegmentState, _>(&bytes, limited);
        decoded.map(|(state, _)| state).map_err(|error| damaged(format!("`{STATE}` cannot be read ({error})")))
    }

    /// Make the best weights of that moment those at `path`, if there were any then; else there are none.
    ///
    /// # Errors
    /// Those of the checkpoint cannot be read, or the file at `path` cannot be replaced or removed.
    pub fn restore_best_weights(&self, path: &Path) -> io::Result<()> {
        let kept = self.path.join(BEST);
        if kept.is_file() {
            let bytes = fs::read(kept)?;
            return super::atomic::replace(path, &bytes);
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether rows and frames were kept.
    pub fn has_replay(&self) -> bool {
        self.manifest.files.iter().any(|file| file.name == REPLAY)
    }
}

/// What became of a checkpoint that was put into a segment.
#[derive(Debug)]
pub struct Restored {
    /// The rows that were read from it.
    pub filled: Filled,
    /// The statistics that have no board in the segment.
    pub without_board: Vec<SavedStatistics>,
}

/// What a run had learned when a checkpoint of it was written, read from that.
pub struct Learned {
    path: PathBuf,
    state: SegmentState,
}

impl Learned {
    /// Put it into `segment`, of a run that begins and that nobody uses yet.
    ///
    /// # Errors
    /// It is of another shape than the segment.
    pub fn put_into(&self, segment: &Segment) -> Result<(), CheckpointError> {
        check_fits(&self.state, segment, &self.path)?;
        self.state.begin(segment);
        Ok(())
    }
}

/// Refuse the `state` of the checkpoint in `path` if it does not fit `segment`.
fn check_fits(state: &SegmentState, segment: &Segment, path: &Path) -> Result<(), CheckpointError> {
    let problem = || format!("what learners had published in `{STATE}` is of another length than this run's");
    if state.fits(segment) { Ok(()) } else { Err(CheckpointError::Damaged { path: path.into(), problem: problem() }) }
}

/// Length of a file and, if that is `bytes` and it is `summed`, its CRC-32C.
fn checksum(path: &Path, bytes: u64, summed: bool) -> io::Result<(u64, u32)> {
    let file = open_file(path)?;
    let found = file.metadata()?.len();
    if !summed || found != bytes {
        return Ok((found, 0));
    }
    let mut sum = Summed::new(io::sink());
    io::copy(&mut BufReader::with_capacity(1 << 20, file.take(bytes)), &mut sum)?;
    Ok((sum.bytes(), sum.sum()))
}
