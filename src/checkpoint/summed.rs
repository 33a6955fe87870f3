//! Sums and counts what is written.

use std::io::{self, Write};

/// A writer with the CRC-32C of all that went through it.
pub(super) struct Summed<W> {
    inner: W,
    sum: u32,
    bytes: u64,
}

impl<W> Summed<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, sum: 0, bytes: 0 }
    }

    /// CRC-32C of what was written.
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    /// Bytes written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
