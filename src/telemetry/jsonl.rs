//! `metrics.jsonl`, `evaluations.jsonl` and `adaptation.jsonl`: one JSON object per line, for pandas, jq and whoever comes later.
//!
//! JSON has no infinities and no NaN: such numbers are written as `null`.

use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::append::AppendFile;
use super::{EvaluatedWeights, Evaluation, TelemetryError};

/// More than any line has.
const LONGEST_LINE_BYTES: u64 = 64 << 10;

/// A file of JSON objects, one per line and per `write(2)`.
#[derive(Debug)]
pub struct JsonLines {
    file: AppendFile,
}

impl JsonLines {
    /// Creates the file, or opens that of a run that `goes_on`, to append to it.
    ///
    /// # Errors
    /// The file exists and the run does not go on; or it cannot be created or opened.
    pub fn open(path: &Path, goes_on: bool) -> Result<Self, TelemetryError> {
        Ok(Self { file: AppendFile::of_lines(path, goes_on)? })
    }

    /// Appends one object as one line, or nothing at all.
    ///
    /// # Errors
    /// The disk is full or failing; the file then still ends with a whole line.
    pub fn append<T: Serialize>(&mut self, value: &T) -> Result<(), TelemetryError> {
        let mut line = serde_json::to_vec(value).map_err(|error| TelemetryError::file("append to", self.file.path())(error.into()))?;
        line.push(b'\n');
        self.file.append(&line)
    }
}

/// The file at `path`, if it is one: nobody waits here for the other end of something else.
pub fn open(path: &Path) -> Option<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok().filter(Metadata::is_file)?;
    Some(file)
}

/// The objects in a file, those that are none of this kind passed over; none if it cannot be read.
pub fn read<T: DeserializeOwned>(path: &Path) -> impl Iterator<Item = T> + use<T> {
    let lines = open(path).map(|file| BufReader::new(file).lines());
    lines.into_iter().flatten().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok())
}

/// The last whole object in a file, however long that is; none if it cannot be read or ends with no such object.
pub fn last<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut file = open(path)?;
    let length_bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length_bytes.saturating_sub(LONGEST_LINE_BYTES))).ok()?;
    let mut end = Vec::new();
    file.read_to_end(&mut end).ok()?;
    // A line that is still being written, or was cut off, is none.
    end.rsplit(|&byte| byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
}

/// One line of `evaluations.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EvaluationLine {
    wall_s: f64,
    updates: u64,
    /// Whether it made the weights the best so far.
    pub(super) is_best: bool,
    /// Whether it confirmed the goal of the run.
    pub(super) confirms_goal: bool,
    /// The weights that were played, and what that said.
    #[serde(flatten)]
    pub(super) weights: EvaluatedWeights,
}

impl From<&Evaluation> for EvaluationLine {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { wall_s, updates, is_best, confirms_goal, .. } = *evaluation;
        Self { wall_s, updates, is_best, confirms_goal, weights: evaluation.into() }
    }
}
