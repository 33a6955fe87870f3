//! Replaces a file so that a reader, or the next start after a crash, sees the old content or the new one.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Ending of the temporary file that a save fills before the renaming. A killed save leaves such a file behind.
const PARTIAL_SUFFIX: &str = ".partial";

/// Writes `bytes` under `path`.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |mut file| file.write_all(bytes))
}

/// Lets `write` fill a temporary file in the folder of `path`, flushes it to the disk, and renames it.
///
/// # Errors
/// `path` names no file, `write` fails, or the system does not take the file. What was there is untouched then, unless all that failed was
/// to flush the folder after the renaming.
pub fn replace_with<T>(path: &Path, write: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut prefix = name.to_os_string();
    prefix.push(".");
    let temporary = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(PARTIAL_SUFFIX)
        // The mode of any other file, less the umask: by default only its owner can read a temporary file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    let written = write(temporary.as_file())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    // The rename itself is only safe once the folder is on the disk.
    flush_folder(folder)?;
    Ok(written)
}

/// Flushes the folder at `path` to the disk, if its file system can do that: some, such as the shared folders of
/// virtual machines, flush only files.
pub(super) fn flush_folder(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(()),
        flushed => flushed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_file_system_flushes_no_folders_is_taken_as_it_is() {
        let proc = Path::new("/proc");
        assert!(File::open(proc).unwrap().sync_all().is_err(), "this proves nothing any more");
        flush_folder(proc).unwrap();
        flush_folder(tempfile::tempdir().unwrap().path()).unwrap();
        flush_folder(Path::new("/nowhere")).unwrap_err();
    }
}
