//! The configuration with which a run goes on, before it is changed anew.

use std::fs;
use std::path::PathBuf;

use crate::checkpoint::{CheckpointError, RunCheckpoint};
use crate::config::Config;
use crate::telemetry::RunFolder;

/// What the run went by before.
pub(super) struct EarlierSettings {
    /// The configuration to go on with.
    pub(super) text: String,
    /// The file that has it.
    pub(super) path: PathBuf,
    /// Whether the run was synchronous at its checkpoint and is so in its folder: all that came since then comes again in a synchronous run.
    pub(super) was_synchronous: bool,
}

impl EarlierSettings {
    /// Those of the checkpoint where one was named, since its settings are wanted with it, else those of the folder. They differ where the
    /// run went on with changes and had no checkpoint since. `say` is told when the folder's file is lost or empty, as a power cut may leave it.
    ///
    /// # Errors
    /// The checkpoint's cannot be read.
    pub(super) fn find(
        folder: &RunFolder,
        checkpoint: &RunCheckpoint,
        is_named: bool,
        say: &dyn Fn(&str),
    ) -> Result<Self, CheckpointError> {
        let of_checkpoint = checkpoint.config_toml()?;
        let of_folder = fs::read_to_string(folder.config()).ok().filter(|text| !text.trim().is_empty());
        let is_synchronous = |text: &str| Config::parse(text, "config.toml", &[]).is_ok_and(|loaded| loaded.config.actor.count == 0);
        let was_synchronous = is_synchronous(&of_checkpoint) && of_folder.as_deref().is_none_or(is_synchronous);
        match of_folder {
            Some(text) if !is_named => Ok(Self { text, path: folder.config(), was_synchronous }),
            _ => {
                let path = checkpoint.config_path();
                if !is_named {
                    say(&format!("{} is lost; going on with {}", folder.config().display(), path.display()));
                }
                Ok(Self { text: of_checkpoint, path, was_synchronous })
            }
        }
    }
}
