//! Which folders of runs there are, what a new one is called, and the link `latest` to the newest.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::TelemetryError;
use super::run_folder::{CONFIG, RECORD};
use super::run_record;

/// Names that are tried for a new folder.
const ATTEMPTS: usize = 64;
/// The link to the newest run, in the folder of all runs.
pub const LATEST: &str = "latest";
/// The time with which the name of a folder begins.
const TIME: &str = "%Y%m%d-%H%M%S";

/// The folders below `root` of the runs that were given `name`, the oldest first.
///
/// # Errors
/// The system would not say, as where the disk is that of another machine that is away.
pub fn folders_of(root: &Path, name: &str) -> Result<Vec<PathBuf>, TelemetryError> {
    let plain = plain_name(name);
    let has_plain_name = |path: &PathBuf| {
        // The time has two parts; the rest is the name and the suffix.
        let rest = path.file_name().and_then(|id| id.to_str()).and_then(|id| id.splitn(3, '-').nth(2));
        rest.and_then(|rest| rest.get(..rest.len().saturating_sub("-0000".len()))).is_some_and(|found| found == plain)
    };
    // Several names may have the same plain one. Whoever opens the folder of a damaged record is told of the damage.
    let has_name = |path: &PathBuf| run_record::read(&path.join(RECORD)).ok().is_none_or(|record| record.name == name);
    let read = || fs::read_dir(root)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut folders = match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        folders => folders.map_err(TelemetryError::file("read", root))?,
    };
    folders.retain(|path| has_plain_name(path) && path.join(RECORD).is_file() && has_name(path));
    folders.sort();
    Ok(folders)
}

/// Whether `path` is the folder of a command with several seeds, in which their run folders lie: it has a configuration,
/// as a run has, and no record.
pub fn is_of_seeds(path: &Path) -> bool {
    !path.join(RECORD).exists() && path.join(CONFIG).is_file()
}

/// Creates a folder with a free name and returns the name. `mkdir` alone decides which of several processes gets it.
pub(super) fn claim_id(root: &Path, name: &str, started: Timestamp) -> Result<String, TelemetryError> {
    let time = time_of_another(root, name, started).strftime(TIME);
    let name = plain_name(name);
    for _ in 0..ATTEMPTS {
        let id = format!("{time}-{name}-{:04x}", rand::random::<u16>());
        let path = root.join(&id);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(id),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(TelemetryError::file("create", &path)(error)),
        }
    }
    Err(TelemetryError::NoFreeName { root: root.to_path_buf(), attempts: ATTEMPTS })
}

/// The time for the name of one more folder of a run of `name`: `now`, or a second after the newest one has. The newest
/// run is the one whose folder sorts last, and the clock may have been set back.
fn time_of_another(root: &Path, name: &str, now: Timestamp) -> Timestamp {
    let second_after = |folder: PathBuf| {
        let time = folder.file_name()?.to_str()?.get(.."20261121-154502".len())?;
        let time = Timestamp::strptime(format!("{TIME}%z"), format!("{time}+0000")).ok()?;
        time.checked_add(SignedDuration::from_secs(1)).ok()
    };
    // Whoever may make a folder there may not be allowed to list those that are there.
    folders_of(root, name).unwrap_or_default().into_iter().filter_map(second_after).fold(now, Timestamp::max)
}

/// `name` with everything but characters that are harmless in file names and shells replaced by underscores. It is
/// short enough for the name of a file with a time before it and an ending behind.
pub fn plain_name(name: &str) -> String {
    let plain: String = name.chars().take(128).map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
    if plain.is_empty() { "run".into() } else { plain }
}

/// Lets `root/latest` lead to `run`, a path from `root`. The link is replaced by a rename, so that readers always find
/// either the previous run or the new one.
///
/// # Errors
/// The reason, in words: something that is no link has that name, or `root` cannot be written.
pub fn point_latest(root: &Path, run: &str) -> Result<(), String> {
    let latest = root.join(LATEST);
    match fs::symlink_metadata(&latest) {
        Ok(found) if !found.file_type().is_symlink() => return Err("something that is not a symbolic link has that name".into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.to_string()),
    }
    let temporary = root.join(format!(".{LATEST}-{}", run.replace('/', "-")));
    // A process that was killed before the rename has left its link.
    let _ = fs::remove_file(&temporary);
    symlink(run, &temporary).map_err(|error| error.to_string())?;
    fs::rename(&temporary, &latest).map_err(|error| {
        // The temporary link is of no use; if it stays, it does no harm.
        let _ = fs::remove_file(&temporary);
        error.to_string()
    })
}
