//! The content of a replay in one file: its transitions with their priorities, its frames, its counts.
//!
//! ```text
//! | magic, version | length, header (bincode) |
//! | transitions: slot, generation, priority, row | frames: slot, generation, 0, words | CRC-32C |
//! ```
//!
//! A file is checked to its last byte before anything is made from it. Transitions are those that were whole when
//! the writer came by; others may go on adding meanwhile.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::summed::Summed;
use crate::replay::{Counts, Record, ReplayView, Restoring, Schema, ZeroPriority};
use crate::segment::Segment;

const MAGIC: &[u8; 8] = b"SHOALRPL";
const VERSION: u32 = 1;
/// Longest header that a reader accepts.
const HEADER_LIMIT_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 20;

/// Why the file of a replay cannot be used.
#[derive(Debug, Error)]
pub enum ReplayFileError {
    /// The system would not read it.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content of the file is of no use.
    #[error("`{}` is no whole file of a replay: {problem}", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// What became of the transitions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filled {
    /// How many the file has.
    pub transitions: u64,
    /// How many of them have lost a frame, which other processes overwrote before or while the file was written.
    pub without_frames: u64,
}

impl Filled {
    /// Whether all have lost a frame: the replay is empty then.
    pub fn is_nothing(&self) -> bool {
        self.without_frames > 0 && self.without_frames == self.transitions
    }

    /// What was lost, for people.
    pub fn loss(&self) -> Option<String> {
        let Self { transitions, without_frames } = self;
        let outcome = if self.is_nothing() { "the replay begins empty" } else { "those are not drawn" };
        let lost = format!("{without_frames} of {transitions} transitions have lost a frame to newer ones: {outcome}");
        (*without_frames > 0).then_some(lost)
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    options_toml: String,
    counts: Counts,
    transitions: u64,
    row_words: u64,
    frames: u64,
    frame_words: u64,
}

/// Write everything in `replay` to `out`, a mebibyte at a time. `options` is for the reader, and is kept as it is.
/// Returns the number of bytes. `between` is called after the transitions and before the frames: if there are
/// frames, these take most of the time.
///
/// # Errors
/// Errors of `out` and of `between`.
pub fn write(
    replay: &ReplayView<'_>,
    zero: ZeroPriority,
    options: String,
    out: impl Write,
    between: impl FnOnce() -> io::Result<()>,
) -> io::Result<u64> {
    let mut out = Summed::new(BufWriter::with_capacity(BUFFER_BYTES, out));
    let mut header = Header {
        options_toml: options,
        counts: replay.counts(),
        transitions: 0,
        row_words: replay.schema().words() as u64,
        frames: 0,
        frame_words: 0,
    };
    // While others write, the number of records is known only afterwards, so it is written in front of the
    // checksum.
    let encoded = bincode::serde::encode_to_vec(&header, bincode::config::legacy()).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(&(encoded.len() as u64).to_le_bytes())?;
    out.write_all(&encoded)?;
    replay.for_each_row(zero, |record, words| {
        header.transitions += 1;
        write_record(&mut out, &record, words)
    })?;
    between()?;
    replay.for_each_frame(|record, words| {
        header.frames += 1;
        header.frame_words = words.len() as u64;
        write_record(&mut out, &record, words)
    })?;
    for count in [header.transitions, header.frames, header.frame_words] {
        out.write_all(&count.to_le_bytes())?;
    }
    let sum = out.sum();
    out.write_all(&sum.to_le_bytes())?;
    out.flush()?;
    Ok(out.bytes())
}

/// A file that is whole, and whose header has been read.
pub struct ReplayFile {
    path: PathBuf,
    input: BufReader<File>,
    header: Header,
}

impl ReplayFile {
    /// Open the file at `path` and check all of it.
    ///
    /// # Errors
    /// The file cannot be read, is of another version, or is not whole: too short, or not as its checksum says.
    pub fn open(path: &Path) -> Result<Self, ReplayFileError> {
        let failed = |source| ReplayFileError::Read { path: path.into(), source };
        let corrupt = |problem: String| ReplayFileError::Corrupt { path: path.into(), problem };
        let file = File::open(path).map_err(failed)?;
        let rows = checked(&file).map_err(failed)?.map_err(|problem| corrupt(problem.into()))?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
        input.seek_relative(12).map_err(failed)?;
        let length = usize::try_from(word(&mut input).map_err(failed)?).unwrap_or(usize::MAX);
        let mut encoded = vec![0; length.min(HEADER_LIMIT_BYTES)];
        input.read_exact(&mut encoded).map_err(failed)?;
        let limited = bincode::config::legacy().with_limit::<HEADER_LIMIT_BYTES>();
        let decoded = bincode::serde::decode_from_slice::<Header, _>(&encoded, limited);
        let (mut header, _) = decoded.map_err(|error| corrupt(format!("its header cannot be read ({error})")))?;
        [header.transitions, header.frames, header.frame_words] = rows;
        Ok(Self { path: path.into(), input, header })
    }

    /// The `options` of the file's writer.
    pub fn options(&self) -> &str {
        &self.header.options_toml
    }

    /// Put everything into the replay in `segment`, which nobody uses yet and whose rows follow `schema`. A transition
    /// that has lost a frame is there, and is never drawn.
    ///
    /// # Errors
    /// The file cannot be read to its end, or its rows or frames have another length than those of `segment`, or
    /// lie beyond its capacity.
    pub fn fill(self, segment: &Segment, schema: Schema) -> Result<Filled, ReplayFileError> {
        let Self { path, mut input, header } = self;
        let failed = |source| ReplayFileError::Read { path: path.clone(), source };
        let corrupt = |problem: &str| ReplayFileError::Corrupt { path: path.clone(), problem: problem.into() };
        let mut words = vec![0; schema.words()];
        if header.row_words != words.len() as u64 {
            return Err(corrupt("its rows have another length than its fields"));
        }
        let mut replay = Restoring::new(segment, schema);
        for _ in 0..header.transitions {
            let record = read_record(&mut input, &mut words).map_err(failed)?;
            if !replay.put_transition(&record, &words) {
                return Err(corrupt("a transition lies beyond the capacity"));
            }
        }
        let stored = segment.layout().sizes().frame_slot_words() as u64 - 1;
        if header.frames > 0 && header.frame_words != stored {
            return Err(corrupt("its frames have another length than its fields"));
        }
        let mut words = vec![0; if header.frames > 0 { usize::try_from(stored).unwrap_or(0) } else { 0 }];
        for _ in 0..header.frames {
            let record = read_record(&mut input, &mut words).map_err(failed)?;
            if !replay.put_frame(&record, &words) {
                return Err(corrupt("a frame lies beyond the capacity"));
            }
        }
        let filled = Filled { transitions: header.transitions, without_frames: replay.give_up_incomplete() };
        if !filled.is_nothing() {
            replay.put_counts(&header.counts);
        }
        Ok(filled)
    }
}

fn write_record(out: &mut impl Write, record: &Record, words: &[u64]) -> io::Result<()> {
    for value in [record.slot, record.generation, record.priority] {
        out.write_all(&value.to_le_bytes())?;
    }
    out.write_all(bytemuck::cast_slice(words))
}

/// Read the whole file once. Returns what its last words say of its rows, or what is wrong with it.
fn checked(mut file: &File) -> io::Result<Result<[u64; 3], &'static str>> {
    const TRAILER_BYTES: u64 = 28;
    let length = file.metadata()?.len();
    if length < 20 + TRAILER_BYTES {
        return Ok(Err("it is too short"));
    }
    let mut start = [0; 12];
    file.read_exact(&mut start)?;
    if &start[..8] != MAGIC {
        return Ok(Err("it does not begin like one"));
    }
    if start[8..] != VERSION.to_le_bytes() {
        return Ok(Err("it was written by another version"));
    }
    file.rewind()?;
    let mut left = length - 4;
    let mut sum = 0;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut last = Vec::new();
    while left > 0 {
        let part = usize::try_from(left.min(BUFFER_BYTES as u64)).unwrap_or(BUFFER_BYTES);
        file.read_exact(&mut buffer[..part])?;
        sum = crc32c::crc32c_append(sum, &buffer[..part]);
        last.extend_from_slice(&buffer[part.saturating_sub(24)..part]);
        last.drain(..last.len().saturating_sub(24));
        left -= part as u64;
    }
    let mut expected = [0; 4];
    file.read_exact(&mut expected)?;
    file.rewind()?;
    if sum != u32::from_le_bytes(expected) {
        return Ok(Err("its checksum is wrong"));
    }
    let counts: Vec<u64> = last.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    Ok(<[u64; 3]>::try_from(counts).map_err(|_| "it is too short"))
}

fn word(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_record(input: &mut impl Read, words: &mut [u64]) -> io::Result<Record> {
    let record = Record { slot: word(input)?, generation: word(input)?, priority: word(input)? };
    input.read_exact(bytemuck::cast_slice_mut(words))?;
    Ok(record)
}
