//! A file that only grows by whole records: one `write(2)` each, and a write that the disk cut short is taken back.
//!
//! So a run may be killed at any instruction, or its disk may fill up, and no reader ever meets a damaged record in the
//! middle of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::TelemetryError;

/// An append-only file of records; the caller is its only writer.
#[derive(Debug)]
pub(crate) struct AppendFile {
    file: File,
    path: PathBuf,
    /// Bytes of the whole records.
    whole_bytes: u64,
    /// Whether part of a record lies behind the whole ones.
    torn: bool,
}

impl AppendFile {
    /// Creates the file, which must not exist yet.
    pub(crate) fn create(path: &Path) -> Result<Self, TelemetryError> {
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(TelemetryError::file("create", path))?;
        Ok(Self { file, path: path.to_path_buf(), whole_bytes: 0, torn: false })
    }

    /// Opens the file, or creates it, to append lines. A last line without its end is cut off.
    pub(crate) fn continue_lines(path: &Path) -> Result<Self, TelemetryError> {
        let failed = || TelemetryError::file("append to", path);
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed())?;
        let whole_bytes = whole_lines_bytes(&file).map_err(failed())?;
        file.set_len(whole_bytes).map_err(failed())?;
        Ok(Self { file, path: path.to_path_buf(), whole_bytes, torn: false })
    }

    /// Creates a file of lines or, if the run `goes_on`, opens the one that is there.
    pub(crate) fn of_lines(path: &Path, goes_on: bool) -> Result<Self, TelemetryError> {
        if goes_on { Self::continue_lines(path) } else { Self::create(path) }
    }

    /// Appends one record, or nothing at all.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), TelemetryError> {
        self.try_append(record).map_err(TelemetryError::file("append to", &self.path))
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn try_append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.torn {
            self.take_back()?;
        }
        let written = loop {
            match self.file.write(record) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written == record.len() {
            self.whole_bytes += record.len() as u64;
            return Ok(());
        }
        self.torn = true;
        self.take_back()?;
        // A second try would report the true cause; a regular file is cut short only when there is no room for the
        // rest.
        Err(io::ErrorKind::StorageFull.into())
    }

    fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole_bytes)?;
        self.torn = false;
        Ok(())
    }
}

/// Bytes up to the end of the last whole line.
fn whole_lines_bytes(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut part = vec![0; 1 << 16];
    while end > 0 {
        let begin = end.saturating_sub(part.len() as u64);
        let length = usize::try_from(end - begin).unwrap_or(part.len());
        file.read_exact_at(&mut part[..length], begin)?;
        if let Some(newline) = part[..length].iter().rposition(|&byte| byte == b'\n') {
            return Ok(begin + newline as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_stay_and_a_torn_one_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(70_000);
        for (before, after) in [("", ""), ("torn", ""), ("one\n", "one\n"), ("one\ntorn", "one\n"), (&format!("one\n{long}"), "one\n")] {
            std::fs::write(&path, before).unwrap();
            let mut file = AppendFile::continue_lines(&path).unwrap();
            file.append(b"new\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{after}new\n"));
        }
        std::fs::remove_file(&path).unwrap();
        AppendFile::continue_lines(&path).unwrap().append(b"new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    }
}
