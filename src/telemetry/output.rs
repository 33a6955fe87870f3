//! A file descriptor that is written only when it takes the bytes at once: a paused terminal or a full pipe never stops the supervisor.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes written at a time: what a pipe that polls as writable is guaranteed to take (`PIPE_BUF` on Linux).
const PIECE_BYTES: usize = 4096;

/// Standard error, or what stands for it, and what it has not taken yet.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    backlog: VecDeque<u8>,
    gone: bool,
}

impl Output {
    pub(super) fn new(file: File) -> Self {
        Self { file, backlog: VecDeque::new(), gone: false }
    }

    /// Queues bytes and writes what can be written now.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.backlog.extend(bytes);
        self.pump(Duration::ZERO);
    }

    /// Bytes not written yet.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.backlog.len()
    }

    /// Writes the backlog, waiting for a slow reader no longer than `patience`.
    pub(super) fn pump(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.backlog.is_empty() && !self.gone {
            if !self.takes_bytes(deadline.saturating_duration_since(Instant::now())) {
                return;
            }
            let (front, _) = self.backlog.as_slices();
            match self.file.write(&front[..front.len().min(PIECE_BYTES)]) {
                Ok(written) => drop(self.backlog.drain(..written)),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
        if self.gone {
            // Nobody reads any more (closed pipe, closed terminal): training goes on without an audience.
            self.backlog.clear();
        }
    }

    fn takes_bytes(&self, patience: Duration) -> bool {
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        let mut descriptors = [PollFd::new(&self.file, PollFlags::OUT)];
        // An error condition also counts as ready: the write that follows then reports it.
        poll(&mut descriptors, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }
}
