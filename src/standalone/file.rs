//! Saves a replay to one file and makes one from it.
//!
//! ```text
//! | magic, version | length, header (bincode) | transitions: slot, generation, priority, row | frames: slot, generation, 0, words | CRC-32C |
//! ```
//!
//! The file takes its name only once it is whole and on the disk, and is checked to its last byte before anything is
//! made from it. Transitions are those that were whole when the writer came by; others may go on adding meanwhile.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Options, Standalone, StandaloneError};
use crate::replay::{Counts, Record, Restoring};

const MAGIC: &[u8; 8] = b"SHOALRPL";
const VERSION: u32 = 1;
/// Longest header that a reader accepts.
const HEADER_LIMIT_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Header {
    options_toml: String,
    counts: [u64; 5],
    transitions: u64,
    transition_words: u64,
    frames: u64,
    frame_words: u64,
}

impl Standalone {
    /// Write everything to `path`, which is replaced only by a whole file.
    pub fn save(&self, path: &Path) -> Result<(), StandaloneError> {
        self.not_of_a_run("saving it")?;
        self.repair();
        let failed = |source| StandaloneError::File { action: "write", path: path.into(), source };
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new().prefix(".replay-").suffix(".partial").tempfile_in(folder).map_err(failed)?;
        self.write(temporary.as_file()).map_err(failed)?;
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(path).map_err(|error| failed(error.error))?;
        // The rename itself is only safe once the folder is on the disk.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn write(&self, file: &File) -> io::Result<()> {
        let replay = self.view();
        let counts = replay.counts();
        let mut out = Summed::new(BufWriter::with_capacity(BUFFER_BYTES, file));
        let mut header = Header {
            options_toml: toml::to_string(&self.options).map_err(io::Error::other)?,
            counts: [counts.claimed, counts.inserted, counts.sampled, counts.largest_priority, counts.frames],
            transitions: 0,
            transition_words: self.schema.words() as u64,
            frames: 0,
            frame_words: 0,
        };
        // How many there are is known only afterwards, while others write; so they are kept in front of the checksum.
        let encode = |header: &Header| bincode::serde::encode_to_vec(header, bincode::config::legacy()).map_err(io::Error::other);
        let encoded = encode(&header)?;
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(encoded.len() as u64).to_le_bytes())?;
        out.write_all(&encoded)?;
        replay.for_each_transition(|record, words| {
            header.transitions += 1;
            out.record(&record, words)
        })?;
        replay.for_each_frame(|record, words| {
            header.frames += 1;
            header.frame_words = words.len() as u64;
            out.record(&record, words)
        })?;
        for count in [header.transitions, header.frames, header.frame_words] {
            out.write_all(&count.to_le_bytes())?;
        }
        let sum = out.sum;
        out.inner.write_all(&sum.to_le_bytes())?;
        out.inner.flush()
    }

    /// The replay saved at `path`, with everything it had, private or `shared`.
    pub fn load(path: &Path, shared: bool, seed: Option<u64>) -> Result<Self, StandaloneError> {
        let failed = |source| StandaloneError::File { action: "read", path: path.into(), source };
        let corrupt = |problem: &str| StandaloneError::Corrupt { path: path.into(), problem: problem.into() };
        let file = File::open(path).map_err(failed)?;
        let counts_of_rows = checked(&file).map_err(failed)?.map_err(corrupt)?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, &file);
        input.seek_relative(12).map_err(failed)?;
        let length = usize::try_from(word(&mut input).map_err(failed)?).unwrap_or(usize::MAX);
        let mut encoded = vec![0; length.min(HEADER_LIMIT_BYTES)];
        input.read_exact(&mut encoded).map_err(failed)?;
        let limited = bincode::config::legacy().with_limit::<HEADER_LIMIT_BYTES>();
        let decoded = bincode::serde::decode_from_slice::<Header, _>(&encoded, limited);
        let (header, _) = decoded.map_err(|error| corrupt(&format!("its header cannot be read ({error})")))?;
        let options: Options =
            toml::from_str(&header.options_toml).map_err(|error| corrupt(&format!("its options cannot be read ({})", error.message())))?;
        let [transitions, frames, frame_words] = counts_of_rows;
        let replay = Self::create(options, shared, seed)?;
        if header.transition_words != replay.schema.words() as u64 {
            return Err(corrupt("its rows have another length than its fields"));
        }
        let view = Restoring::new(&replay.segment, replay.schema.clone());
        let mut words = vec![0; replay.schema.words()];
        for _ in 0..transitions {
            let record = read_record(&mut input, &mut words).map_err(failed)?;
            if !view.put_transition(&record, &words) {
                return Err(corrupt("a transition lies beyond the capacity"));
            }
        }
        let stored = replay.segment.layout().parameters().frame_slot_words() as u64 - 1;
        if frames > 0 && frame_words != stored {
            return Err(corrupt("its frames have another length than its fields"));
        }
        let mut words = vec![0; usize::try_from(frame_words).unwrap_or(0)];
        for _ in 0..frames {
            let record = read_record(&mut input, &mut words).map_err(failed)?;
            if !view.put_frame(&record, &words) {
                return Err(corrupt("a frame lies beyond the capacity"));
            }
        }
        let [claimed, inserted, sampled, largest_priority, frames] = header.counts;
        view.put_counts(&Counts { claimed, inserted, sampled, largest_priority, frames });
        drop(view);
        Ok(replay)
    }
}

/// Writes, and sums what was written.
struct Summed<W> {
    inner: W,
    sum: u32,
}

impl<W: Write> Summed<W> {
    fn new(inner: W) -> Self {
        Self { inner, sum: 0 }
    }

    fn record(&mut self, record: &Record, words: &[u64]) -> io::Result<()> {
        for value in [record.slot, record.generation, record.priority] {
            self.write_all(&value.to_le_bytes())?;
        }
        self.write_all(bytemuck::cast_slice(words))
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Read the whole file once: what its last words say of its rows, or what is wrong with it.
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
    let (mut left, mut sum, mut buffer) = (length - 4, 0, vec![0; BUFFER_BYTES]);
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
