//! A file that grows by lines, of which each look reads what it has gained.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::bounded_file::open_file;

/// Bytes that one look reads at most.
const MOST_BYTES: u64 = 8 << 20;

/// How far a file has been read.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    read_bytes: u64,
}

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read_bytes: 0 }
    }

    /// The whole lines that the file has gained, as far as one look reads them; none if it cannot be read. A file
    /// that has become shorter is another one, and is read from its beginning.
    pub(super) fn new_lines(&mut self) -> Vec<String> {
        self.gained().map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect())
    }

    fn gained(&mut self) -> Option<String> {
        let mut file = open_file(&self.path).ok()?;
        let length_bytes = file.metadata().ok()?.len();
        if length_bytes < self.read_bytes {
            self.read_bytes = 0;
        }
        if length_bytes == self.read_bytes {
            return None;
        }
        file.seek(SeekFrom::Start(self.read_bytes)).ok()?;
        let mut gained = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut gained).ok()?;
        // A last line without an end is still being written, unless it fills the whole look: no real line is that long.
        let whole = match gained.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => end + 1,
            None if gained.len() as u64 == MOST_BYTES => gained.len(),
            None => return None,
        };
        gained.truncate(whole);
        self.read_bytes += whole as u64;
        Some(String::from_utf8_lossy(&gained).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use super::*;

    #[test]
    fn every_whole_line_is_read_once_and_half_a_line_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut tail = Tail::new(path.clone());
        assert!(tail.new_lines().is_empty(), "the file is not there yet");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(tail.new_lines(), ["one", "two"]);
        assert!(tail.new_lines().is_empty());
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"ee\n").unwrap();
        assert_eq!(tail.new_lines(), ["three"]);
        fs::write(&path, "four\n").unwrap();
        assert_eq!(tail.new_lines(), ["four"], "a shorter file is another one");
    }

    #[test]
    fn what_is_no_file_is_not_waited_for_and_a_line_without_an_end_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Tail::new(path.clone()).new_lines().is_empty());
        fs::remove_file(&path).unwrap();
        fs::write(&path, [vec![b'x'; MOST_BYTES as usize + 5], b"\nnext\n".to_vec()].concat()).unwrap();
        let mut tail = Tail::new(path);
        let lines: Vec<String> = (0..3).flat_map(|_| tail.new_lines()).collect();
        assert_eq!(lines.last().unwrap(), "next");
    }
}
