//! Saves a replay to one file and makes one from it.

use std::io;
use std::path::Path;

use super::{DEFAULT_PARTICIPANTS, Options, ReplayError, ReplayHandle};
use crate::checkpoint::{ReplayFile, ReplayFileError, replace_file, write_replay};
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

    /// The replay saved at `path`, with everything it had, private or `shared`.
    ///
    /// # Errors
    /// The file cannot be read or is damaged; and the errors of [`Self::create`].
    pub fn load(path: &Path, shared: bool, participants: Option<usize>, seed: Option<u64>) -> Result<Self, ReplayError> {
        let file = ReplayFile::open(path)?;
        let mut options: Options = toml::from_str(file.options()).map_err(|error| ReplayError::Corrupt {
            path: path.into(),
            problem: format!("its options cannot be read ({})", error.message()),
        })?;
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

impl From<ReplayFileError> for ReplayError {
    fn from(error: ReplayFileError) -> Self {
        match error {
            ReplayFileError::Read { path, source } => Self::File { action: "read", path, source },
            ReplayFileError::Corrupt { path, problem } => Self::Corrupt { path, problem },
        }
    }
}
