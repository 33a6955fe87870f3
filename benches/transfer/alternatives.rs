//! The same bytes another way: through an anonymous pipe, and through a file in memory that is written whole and renamed.

use std::fs::{self, File};
use std::hint::spin_loop;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::inotify;
use tempfile::TempDir;

use crate::measure::{Path, Receiver, Sender};

/// Longest sleep of a reader, so that it finds out that the measurement is over.
const PATIENCE_MS: u8 = 2;

fn message(length_bytes: usize) -> Vec<u8> {
    assert!(length_bytes >= 8, "a message holds its number");
    vec![7; length_bytes]
}

fn sleep_until_readable(descriptor: &impl AsFd) {
    let _ = poll(&mut [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)], PollTimeout::from(PATIENCE_MS));
}

/// A pipe, whose reader reads all of each message. For one measurement: what was not read stays in it.
pub(crate) struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    length_bytes: usize,
    sleeps: bool,
}

impl Pipe {
    /// A pipe for messages of `length_bytes`. Its reader sleeps in the kernel or looks again and again, as the reader of the way that it is
    /// compared with.
    pub(crate) fn new(length_bytes: usize, sleeps: bool) -> Self {
        let (reader, writer) = pipe().expect("a pipe");
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe");
        Self { reader, writer, length_bytes, sleeps }
    }
}

impl Path for Pipe {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(PipeSender { writer: &self.writer, message: message(self.length_bytes) })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        Box::new(PipeReceiver { reader: &self.reader, message: message(self.length_bytes), filled: 0, sleeps: self.sleeps })
    }
}

struct PipeSender<'a> {
    writer: &'a PipeWriter,
    message: Vec<u8>,
}

impl Sender for PipeSender<'_> {
    fn send(&mut self, number: u64) {
        self.message[..8].copy_from_slice(&number.to_le_bytes());
        self.writer.write_all(&self.message).expect("the reader is there");
    }
}

struct PipeReceiver<'a> {
    reader: &'a PipeReader,
    message: Vec<u8>,
    /// Bytes of the next message that have come.
    filled: usize,
    sleeps: bool,
}

impl Receiver for PipeReceiver<'_> {
    fn look(&mut self) -> usize {
        match self.reader.read(&mut self.message[self.filled..]) {
            Ok(length) => self.filled += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return 0,
            Err(error) => panic!("reading a pipe: {error}"),
        }
        let is_whole = self.filled == self.message.len();
        if is_whole {
            self.filled = 0;
        }
        usize::from(is_whole)
    }

    fn wait(&mut self) {
        if self.sleeps {
            sleep_until_readable(self.reader);
        } else {
            spin_loop();
        }
    }
}

/// A file in `/dev/shm`. For one measurement, in which numbers begin at 1.
pub(crate) struct Renamed {
    folder: TempDir,
    length_bytes: usize,
    sleeps: bool,
}

impl Renamed {
    /// A file for messages of `length_bytes`. Its reader sleeps until the kernel reports another file, or looks again and again.
    pub(crate) fn new(length_bytes: usize, sleeps: bool) -> Self {
        Self { folder: tempfile::tempdir_in("/dev/shm").expect("room in /dev/shm"), length_bytes, sleeps }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Path for Renamed {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(FileSender { file: self.file("newest"), written: self.file("written"), message: message(self.length_bytes) })
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let watch = self.sleeps.then(|| {
            let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("a watch");
            inotify::add_watch(&watch, self.folder.path(), inotify::WatchFlags::MOVED_TO).expect("a folder of our own");
            File::from(watch)
        });
        Box::new(FileReceiver { file: self.file("newest"), message: message(self.length_bytes), newest: [0; 8], watch })
    }
}

struct FileSender {
    file: PathBuf,
    written: PathBuf,
    message: Vec<u8>,
}

impl Sender for FileSender {
    fn send(&mut self, number: u64) {
        self.message[..8].copy_from_slice(&number.to_le_bytes());
        fs::write(&self.written, &self.message).expect("room in /dev/shm");
        fs::rename(&self.written, &self.file).expect("a folder of our own");
    }
}

struct FileReceiver {
    file: PathBuf,
    message: Vec<u8>,
    newest: [u8; 8],
    /// Readable once a file was renamed; `None` if the reader does not sleep.
    watch: Option<File>,
}

impl Receiver for FileReceiver {
    fn look(&mut self) -> usize {
        let Ok(mut file) = File::open(&self.file) else { return 0 };
        let (number, rest) = self.message.split_at_mut(8);
        file.read_exact(number).expect("it was renamed when it was whole");
        if *number == self.newest {
            return 0;
        }
        file.read_exact(rest).expect("it was renamed when it was whole");
        self.newest.copy_from_slice(number);
        1
    }
    fn wait(&mut self) {
        match &mut self.watch {
            Some(watch) => {
                sleep_until_readable(watch);
                // The content of the notice does not matter: there is only one file.
                let _ = watch.read(&mut [0; 4096]);
            }
            None => spin_loop(),
        }
    }
}
