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
    /// run went on with changes and had no checkpoint since. `say` is told when the folder's file cannot be used.
    ///
    /// # Errors
    /// The checkpoint's cannot be read.
    pub(super) fn find(
        folder: &RunFolder,
        checkpoint: &RunCheckpoint,
        is_named: bool,
        say: &dyn Fn(&str),
    ) -> Result<Self, CheckpointError> {
        let parsed = |text: &str| Config::parse(text, "config.toml", &[]).ok().map(|loaded| loaded.config);
        let (of_checkpoint, of_folder) = (checkpoint.config_toml()?, fs::read_to_string(folder.config()).ok());
        let newest = of_folder.as_deref().and_then(parsed);
        let was_synchronous = [parsed(&of_checkpoint), newest.clone()].iter().flatten().all(|config| config.actor.count == 0);
        match of_folder.filter(|_| newest.is_some() && !is_named) {
            Some(text) => Ok(Self { text, path: folder.config(), was_synchronous }),
            None => {
                if !is_named && parsed(&of_checkpoint).is_some() {
                    let (damaged, used) = (folder.config(), checkpoint.config_path());
                    say(&format!("{} cannot be used; going on with {}", damaged.display(), used.display()));
                }
                Ok(Self { text: of_checkpoint, path: checkpoint.config_path(), was_synchronous })
            }
        }
    }
}
