//! A file descriptor that is written only when it takes the bytes at once, so that a paused terminal or a full pipe
//! never stops the supervisor.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WouldBlock};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes written at a time: what a pipe takes whole or not at all (`PIPE_BUF` on Linux).
const PIECE_BYTES: usize = 4096;

/// Opens a terminal or pipe a second time, for writes that return instead of waiting.
///
/// `O_NONBLOCK` belongs to the open file, which the shell and other programs share; a second opening leaves theirs as
/// it is. A terminal needs it besides `poll`: it polls as writable while there is any room at all, and a write then
/// waits for room for the rest. If the second opening is refused (a socket, a terminal of another user), the file is
/// used as it is, and only `poll` protects from waiting. Regular files never wait.
pub(super) fn without_waiting(file: File) -> File {
    let may_wait = file.metadata().is_ok_and(|about| about.file_type().is_char_device() || about.file_type().is_fifo());
    if !may_wait {
        return file;
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).unwrap_or(file)
}

/// Standard error, or what stands for it, and the bytes that it has not taken yet.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    backlog: VecDeque<u8>,
    /// Whether the reader is gone for good.
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
                Ok(0) => return,
                Ok(written) => drop(self.backlog.drain(..written)),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A file on a full disk takes more when there is room again.
                Err(error) if matches!(error.kind(), WouldBlock | StorageFull | QuotaExceeded | FileTooLarge) => return,
                Err(_) => self.gone = true,
            }
        }
        if self.gone {
            // Nobody reads any more (closed pipe, closed terminal): training goes on without an audience.
            self.backlog.clear();
        }
    }

    fn takes_bytes(&self, patience: Duration) -> bool {
        let mut descriptors = [PollFd::new(&self.file, PollFlags::OUT)];
        // An error condition counts as ready, too: the write that follows reports it.
        poll(&mut descriptors, Timespec::try_from(patience).ok().as_ref()).is_ok_and(|ready| ready > 0)
    }
}
