//! The configuration with which a run goes on, before it is changed anew.

use std::fs;
use std::path::PathBuf;

use crate::checkpoint::{CheckpointError, RunCheckpoint};
use crate::config::schema::RunConfig;
use crate::config::{Config, repeats};
use crate::telemetry::RunFolder;

/// What the run went by before.
pub(super) struct EarlierSettings {
    /// The configuration to go on with.
    pub(super) text: String,
    /// The file that has it.
    pub(super) path: PathBuf,
    /// The configuration at the checkpoint; `None` if it cannot be read.
    at_checkpoint: Option<Config>,
    /// The configuration at the checkpoint and that in the folder, by which its last life went. Empty if one of them cannot be read.
    went_by: Vec<Config>,
}

impl EarlierSettings {
    /// Those of the checkpoint where one was named, since its settings are wanted with it, else those of the folder. They differ where the
    /// run went on with changes and had no checkpoint since. `say` is told when the folder's file is empty, as a power cut may leave it,
    /// or cannot be read.
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
        let parse = |text: &String| Config::parse(text, "config.toml", &[]).map(|loaded| loaded.config);
        let went_by = [Some(&of_checkpoint), of_folder.as_ref()].into_iter().flatten().map(parse).collect::<Result<_, _>>();
        let (at_checkpoint, went_by) = (parse(&of_checkpoint).ok(), went_by.unwrap_or_default());
        match of_folder {
            Some(text) if !is_named => Ok(Self { text, path: folder.config(), at_checkpoint, went_by }),
            _ => {
                let path = checkpoint.config_path();
                if !is_named {
                    say(&format!("{} is lost; going on with {}", folder.config().display(), path.display()));
                }
                Ok(Self { text: of_checkpoint, path, at_checkpoint, went_by })
            }
        }
    }

    /// The value that `run.start_from` had when the run began.
    pub(super) fn started_from(&self) -> Option<String> {
        self.at_checkpoint.as_ref()?.run.start_from.clone()
    }

    /// The configuration at the checkpoint; `None` if it cannot be read.
    pub(super) fn at_checkpoint(&self) -> Option<&Config> {
        self.at_checkpoint.as_ref()
    }

    /// The upper ends of actors and environments in the search of its last life, if it had one.
    pub(super) fn upper_ends(&self) -> Option<[Option<usize>; 2]> {
        let table = &self.went_by.last()?.adaptation;
        table.enabled.then_some([table.most_actors, table.most_environments])
    }

    /// Whether all that came since the checkpoint comes again with `config`.
    pub(super) fn come_again_with(&self, config: &Config) -> bool {
        !self.went_by.is_empty() && self.went_by.iter().all(|before| repeats(before, config))
    }

    /// Whether the last life of the run had limits for which `is_its` holds. Nobody knows if its configuration cannot be read.
    pub(super) fn went_by(&self, is_its: impl Fn(&RunConfig) -> bool) -> bool {
        self.went_by.last().is_some_and(|before| is_its(&before.run))
    }
}
