//! Regular files, opened without waiting for anybody, and read as far as they may be long: others may write where runs are looked for.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the file at `path`. It is an error if that is no regular file: opening a pipe, say, must not wait for its other end.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")) }
}

/// The bytes of the file at `path`. It is an error if there are more than `limit_bytes`.
pub(crate) fn read_bytes(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let file = open_file(path)?;
    let length_bytes = file.metadata()?.len();
    if length_bytes > limit_bytes {
        let problem = format!("it has {length_bytes} bytes, and at most {limit_bytes} are read");
        return Err(Error::new(ErrorKind::FileTooLarge, problem));
    }
    let mut bytes = Vec::new();
    file.take(limit_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of the file at `path`, as [`read_bytes`] reads it.
pub(crate) fn read_text(path: &Path, limit_bytes: u64) -> Result<String> {
    String::from_utf8(read_bytes(path, limit_bytes)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_waited_for_and_no_more_is_read_than_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let [pipe, file] = ["pipe", "file"].map(|name| place.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_text(&pipe, 8).unwrap_err().to_string().contains("no regular file"));
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "four");
        let refusal = read_text(&file, 3).unwrap_err().to_string();
        assert!(refusal.contains("4 bytes, and at most 3"), "{refusal}");
        std::fs::write(&file, b"\xff").unwrap();
        assert_eq!(read_text(&file, 4).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
