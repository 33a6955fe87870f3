//! Writes to a disk at the disk's pace.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;

use rustix::fs::{Advice, fadvise};

/// Bytes that are written before the disk has to have them.
const PART_BYTES: u64 = 64 << 20;

/// A file that reaches its disk as it is written, and leaves the page cache then.
///
/// Otherwise a file of some gigabytes takes as much of the memory that the segment and others could have, and the kernel writes it out in one go,
/// on whichever core: a learner loses what that takes.
pub(super) struct Settled<'a> {
    file: &'a File,
    written: u64,
    settled: u64,
}

impl<'a> Settled<'a> {
    /// What is written from the beginning of `file` on.
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, written: 0, settled: 0 }
    }
}

impl Write for Settled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.settled >= PART_BYTES {
            self.file.sync_data()?;
            // Advice that is not taken costs memory for a while and nothing else.
            let _ = fadvise(self.file, self.settled, NonZeroU64::new(self.written - self.settled), Advice::DontNeed);
            self.settled = self.written;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
