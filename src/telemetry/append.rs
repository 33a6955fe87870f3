//! A file that only grows by whole records: one `write(2)` each, and a write that the disk cut short is taken back.
//!
//! That is what lets a run be killed at any instruction, or its disk fill up, without a reader ever meeting a damaged record in the middle.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::TelemetryError;

/// An append-only file of records; the caller is its only writer.
#[derive(Debug)]
pub(crate) struct AppendFile {
    file: File,
    path: PathBuf,
    whole_bytes: u64,
    torn: bool,
}

impl AppendFile {
    /// Creates the file, which must not exist yet.
    pub(crate) fn create(path: &Path) -> Result<Self, TelemetryError> {
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(TelemetryError::file("create", path))?;
        Ok(Self { file, path: path.to_path_buf(), whole_bytes: 0, torn: false })
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
        // A second try would report the true cause; a regular file is cut short only when there is no room for the rest.
        Err(io::ErrorKind::StorageFull.into())
    }

    fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole_bytes)?;
        self.torn = false;
        Ok(())
    }
}
