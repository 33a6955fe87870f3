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
use super::evaluation::ReturnStatistics;
use super::{EvaluatedWeights, Evaluation, EvaluationKind, TelemetryError};

/// More than any line has.
const LONGEST_LINE_BYTES: u64 = 64 << 10;

/// A file of JSON objects, one per line and per `write(2)`.
#[derive(Debug)]
pub struct JsonLines {
    file: AppendFile,
}

impl JsonLines {
    /// Creates the file.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub fn create(path: &Path) -> Result<Self, TelemetryError> {
        Ok(Self { file: AppendFile::create(path)? })
    }

    /// Opens the file of an earlier life of the run, to append to it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn resume(path: &Path) -> Result<Self, TelemetryError> {
        Ok(Self { file: AppendFile::continue_lines(path)? })
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
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).ok()?;
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluationLine {
    wall_s: f64,
    env_steps: u64,
    updates: u64,
    version: u64,
    kind: EvaluationKind,
    is_best: bool,
    confirms_goal: bool,
    #[serde(flatten)]
    statistics: ReturnStatistics,
}

impl EvaluationLine {
    /// The weights that were played, and what that said.
    pub fn weights(&self) -> EvaluatedWeights {
        EvaluatedWeights { version: self.version, env_steps: self.env_steps, kind: self.kind, statistics: self.statistics }
    }

    /// Whether it made the weights the best so far.
    pub fn is_best(&self) -> bool {
        self.is_best
    }

    /// Whether it confirmed the goal of the run.
    pub fn confirms_goal(&self) -> bool {
        self.confirms_goal
    }
}

impl From<&Evaluation> for EvaluationLine {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { wall_s, env_steps, updates, version, kind, is_best, confirms_goal, .. } = *evaluation;
        Self { wall_s, env_steps, updates, version, kind, is_best, confirms_goal, statistics: evaluation.statistics() }
    }
}
