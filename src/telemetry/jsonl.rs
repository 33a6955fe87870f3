//! `metrics.jsonl`, `evaluations.jsonl` and `adaptation.jsonl`: one JSON object per line, which pandas and jq read.
//!
//! JSON has no infinities and no NaN: such numbers are written as `null`.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::append::AppendFile;
use super::{EvaluatedWeights, Evaluation, TelemetryError};
use crate::bounded_file::open_file;

/// More bytes than any line has.
const LONGEST_LINE_BYTES: u64 = 64 << 10;

/// A file of JSON objects, one per line and per `write(2)`.
#[derive(Debug)]
pub struct JsonLines {
    file: AppendFile,
}

impl JsonLines {
    /// Creates the file or, if the run `goes_on`, opens the one that is there to append to it.
    ///
    /// # Errors
    /// The file exists although the run does not go on, or it cannot be created or opened.
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

/// The objects of type `T` in a file, in their order. Lines of another type are passed over; a file that cannot be read
/// has none.
pub fn read<T: DeserializeOwned>(path: &Path) -> impl Iterator<Item = T> + use<T> {
    let lines = open_file(path).map(|file| BufReader::new(file).lines());
    lines.into_iter().flatten().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok())
}

/// The last whole object in a file, however long the file is. `None` if the file cannot be read or has no such object
/// in its last `LONGEST_LINE_BYTES`.
pub fn last<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut file = open_file(path).ok()?;
    let length_bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length_bytes.saturating_sub(LONGEST_LINE_BYTES))).ok()?;
    let mut end = Vec::new();
    file.read_to_end(&mut end).ok()?;
    // A line that is still being written, or was cut off, is no object.
    end.rsplit(|&byte| byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
}

/// One line of `evaluations.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EvaluationLine {
    wall_s: f64,
    updates: u64,
    /// Whether the evaluation made the weights the best so far.
    pub(super) is_best: bool,
    /// Whether the evaluation confirmed the goal of the run.
    confirms_goal: bool,
    /// The weights that were played, and the figures of their episodes.
    #[serde(flatten)]
    pub(super) weights: EvaluatedWeights,
}

impl From<&Evaluation> for EvaluationLine {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { wall_s, updates, is_best, confirms_goal, .. } = *evaluation;
        Self { wall_s, updates, is_best, confirms_goal, weights: evaluation.into() }
    }
}
