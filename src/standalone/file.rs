//! Saves a replay to one file and makes one from it, or from that of a run's checkpoint.

use std::io;
use std::path::Path;

use super::{DEFAULT_PARTICIPANTS, Options, ReplayError, ReplayHandle, Schedule};
use crate::checkpoint::{ReplayFile, ReplayFileError, RunCheckpoint, replace_file, write_replay};
use crate::replay::ZeroPriority;

impl ReplayHandle {
    /// Write everything to `path`, which is replaced only by a whole file.
    ///
    /// # Errors
    /// [`ReplayError::OfARun`] for a guest; [`ReplayError::File`] if the system does not write it, or if the replay is
    /// emptied meanwhile.
    pub fn save(&self, path: &Path) -> Result<(), ReplayError> {
        self.not_of_a_run("saving it")?;
        self.repair();
        let written = replace_file(path, |file| self.write(file));
        written.map_err(|source| ReplayError::File { action: "write", path: path.into(), source })
    }

    /// Write everything to `out`.
    pub(super) fn write(&self, out: impl io::Write) -> io::Result<()> {
        let options = toml::to_string(&self.options).map_err(io::Error::other)?;
        let replay = self.view();
        let before = replay.counts();
        // The counts in the file are those of before the transitions.
        let check = || match replay.was_emptied_since(&before) {
            true => Err(io::Error::other("the replay was emptied while it was saved; save it again")),
            false => Ok(()),
        };
        write_replay(&replay, ZeroPriority::Unfinished, options, out, check).map(drop)
    }

    /// The replay saved at `path`, or that of a run's checkpoint, with everything it had, private or `shared`.
    ///
    /// # Errors
    /// The file cannot be read or is damaged; it is of a checkpoint whose other files cannot be read or whose run learns from fragments;
    /// and the errors of [`Self::create`].
    pub fn load(path: &Path, shared: bool, participants: Option<usize>, seed: Option<u64>) -> Result<Self, ReplayError> {
        let file = ReplayFile::open(path)?;
        let mut options = options_in(&file, path)?;
        options.participants = match participants {
            _ if !shared => 1,
            Some(participants) => participants,
            None if options.participants > 1 => options.participants,
            // The replay was private.
            None => {
                let slots = if options.frames > 0 { options.capacity.min(options.frames) } else { options.capacity };
                DEFAULT_PARTICIPANTS.min(slots.saturating_sub(1))
            }
        };
        let replay = Self::create(options, shared, seed)?;
        file.fill(&replay.memory.segment, replay.schema().clone())?;
        Ok(replay)
    }
}

/// The options of the replay in `file`, which is at `path`.
fn options_in(file: &ReplayFile, path: &Path) -> Result<Options, ReplayError> {
    if file.options().is_empty() {
        return options_of_checkpoint(path);
    }
    toml::from_str(file.options())
        .map_err(|error| ReplayError::Corrupt { path: path.into(), problem: format!("its options cannot be read ({})", error.message()) })
}

/// The options of the replay at `path`, which is in a checkpoint: those of its run, except that draws wait for no inserts, which no actor
/// makes any more, and that beta stays where it was, since it follows the steps of the run.
fn options_of_checkpoint(path: &Path) -> Result<Options, ReplayError> {
    let incomplete = |source| ReplayError::OfACheckpoint { path: path.into(), source };
    let checkpoint = RunCheckpoint::open_to_begin(path.parent().unwrap_or(path)).map_err(incomplete)?;
    let manifest = checkpoint.manifest();
    let options = Options::of_run(&checkpoint.config_toml().map_err(incomplete)?, &manifest.fields, manifest.layout.frames)?;
    let beta = options.beta.at(manifest.env_steps);
    Ok(Options { min_size: 1, samples_per_insert: None, beta: Schedule { start: beta, end: beta, samples: 0 }, ..options })
}

impl From<ReplayFileError> for ReplayError {
    fn from(error: ReplayFileError) -> Self {
        match error {
            ReplayFileError::Read { path, source } => Self::File { action: "read", path, source },
            ReplayFileError::Corrupt { path, problem } => Self::Corrupt { path, problem },
        }
    }
}
