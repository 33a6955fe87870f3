//! A run that goes on from a checkpoint: which one, what may be changed, and what is put back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Plan;
use crate::algorithms::Algorithm;
use crate::checkpoint::{CheckpointError, Checkpoints, RunCheckpoint};
use crate::config::{Config, ConfigErrors, Loaded, Resume, changes_that_do_not_fit};
use crate::rendezvous::Registry;
use crate::roles::run_name::{RunName, RunNameError};
use crate::segment::processes::Role;
use crate::segment::{Description, LayoutParameters, Segment, system};
use crate::telemetry::{Remembered, RunFolder, TelemetryError, folders_of};

/// Time between two looks whether a killed run has been salvaged.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a run cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// It has not ended.
    #[error("the run in {} is under way: its supervisor is process {pid}; `inspect {pid}` looks into it", folder.display())]
    Running {
        /// Its folder.
        folder: PathBuf,
        /// Its supervisor.
        pid: u32,
    },
    /// Its checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Keys were changed that decide what a checkpoint holds.
    #[error("a run cannot go on with another {}: what its checkpoint holds would no longer fit, or mean something else; start a new run for that", keys.join(", "))]
    Fixed {
        /// Their paths.
        keys: Vec<String>,
    },
    /// The segment would have other sizes than the one that was saved.
    #[error("the checkpoint {} was written with {what} {found}, and this run would have {expected}; go on with the version and the configuration that wrote it", path.display())]
    OtherShape {
        /// Its folder.
        path: PathBuf,
        /// Which size.
        what: &'static str,
        /// That of the checkpoint.
        found: String,
        /// That of this run.
        expected: String,
    },
}

/// What the supervisor remembers of a run, in its checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Seconds that the run has taken.
    pub(super) wall_s: f64,
    /// Seconds of training among them.
    pub(super) training_s: f64,
    /// What was recorded.
    pub(super) remembered: Remembered,
}

/// A run that goes on.
pub struct Resumption {
    folder: PathBuf,
    checkpoint: RunCheckpoint,
    memory: Memory,
}

impl Resumption {
    /// The run in `folder`, from its newest checkpoint or the one in the folder `from`.
    ///
    /// # Errors
    /// It is none or under way, or has no checkpoint that is whole.
    pub fn find(folder: &Path, from: Option<&Path>) -> Result<Self, ResumeError> {
        let folder = RunFolder::open(folder)?;
        if let Some(pid) = supervisor_of(&folder) {
            return Err(ResumeError::Running { folder: folder.path().into(), pid });
        }
        wait_for_salvage(&folder)?;
        let checkpoint = from.map_or_else(|| Checkpoints::new(folder.checkpoints()).newest(), RunCheckpoint::open)?;
        let memory = serde_json::from_value(checkpoint.manifest().memory.clone());
        let memory = memory.map_err(|error| CheckpointError::Damaged { path: checkpoint.path().into(), problem: error.to_string() })?;
        Ok(Self { folder: folder.path().into(), checkpoint, memory })
    }

    /// The newest run of the name and seed of `config`, if that asks for it, the run was killed, and it has a checkpoint.
    ///
    /// # Errors
    /// Its newest checkpoint is damaged.
    pub fn of_a_killed_run(config: &Config) -> Result<Option<Self>, ResumeError> {
        if config.run.resume == Resume::Never {
            return Ok(None);
        }
        let Some(newest) = folders_of(config.run.folder.as_ref(), &run_name(config)).pop() else { return Ok(None) };
        let folder = RunFolder::open(&newest)?;
        let was_killed = folder.record()?.finished.is_none() && supervisor_of(&folder).is_none();
        if was_killed {
            wait_for_salvage(&folder)?;
        }
        if !was_killed || Checkpoints::new(folder.checkpoints()).list().is_empty() {
            return Ok(None);
        }
        Self::find(&newest, None).map(Some)
    }

    /// The configuration of the run with the changes in `overrides`.
    ///
    /// # Errors
    /// What is wrong with those.
    pub fn load(&self, overrides: &[String]) -> Result<Result<Loaded, ConfigErrors>, ResumeError> {
        Ok(Config::parse(&self.checkpoint.config_toml()?, &self.folder.join("config.toml").display().to_string(), overrides))
    }

    /// Refuse a resolved configuration, and sizes, with which the run cannot go on.
    pub(super) fn check(&self, config: &Config, algorithm: &dyn Algorithm, layout: &LayoutParameters) -> Result<(), ResumeError> {
        // What cannot be read any more is a matter for the sizes.
        if let Ok(before) = Config::parse(&self.checkpoint.config_toml()?, "config.toml", &[]) {
            let keys = changes_that_do_not_fit(&before.config, config);
            if !keys.is_empty() {
                return Err(ResumeError::Fixed { keys });
            }
        }
        let manifest = self.checkpoint.manifest();
        let other =
            |what, found: String, expected: String| ResumeError::OtherShape { path: self.checkpoint.path().into(), what, found, expected };
        let saved = &manifest.layout;
        for (what, found, expected) in [
            ("a replay.capacity of", saved.capacity, layout.capacity),
            ("words in a row:", saved.transition_words, layout.transition_words),
            ("frames:", saved.frames, layout.frames),
            ("bytes in a frame:", saved.frame_bytes, layout.frame_bytes),
            ("published values:", saved.published_values, layout.published_values),
            ("values of the learners' state:", saved.learner_state_values, layout.learner_state_values),
            ("statistics:", saved.statistics_values, layout.statistics_values),
        ] {
            if found != expected {
                return Err(other(what, found.to_string(), expected.to_string()));
            }
        }
        let fields = algorithm.schema().describe();
        if manifest.fields != fields {
            return Err(other("other fields of a row:", format!("{:?}", manifest.fields), format!("{fields:?}")));
        }
        Ok(())
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its supervisor remembered.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// How long the run has taken up to the checkpoint.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::try_from_secs_f64(self.memory.wall_s).unwrap_or_default()
    }

    /// Put what was saved into `segment`, which nobody uses yet.
    pub(super) fn restore(&self, segment: &Segment, algorithm: &dyn Algorithm, plan: &Plan) -> Result<(), ResumeError> {
        let slot_of = |role: Role, number: usize, slot: usize| match role {
            // Their places are anybody's; what they counted stays a line of its own.
            Role::AttachedActor => plan.attach_slots.contains(&slot).then_some(slot),
            _ => plan.processes.iter().find(|planned| planned.role == role && planned.number == number).map(|planned| planned.slot),
        };
        Ok(self.checkpoint.restore(segment, &algorithm.schema(), slot_of)?)
    }

    /// Make the run's best weights those of that moment: what came later is about to be repeated.
    pub(super) fn restore_best_weights(&self, folder: &RunFolder) -> Result<(), ResumeError> {
        let path = folder.best_weights();
        Ok(self.checkpoint.restore_best_weights(&path).map_err(TelemetryError::file("replace", &path))?)
    }

    /// For people: from where the run goes on.
    pub(super) fn describe(&self, description: &Description) -> String {
        let manifest = self.checkpoint.manifest();
        let replay = if self.checkpoint.has_replay() { "with the replay" } else { "with an empty replay" };
        let version = match manifest.program_version == description.program_version {
            true => String::new(),
            false => format!(", written by version {}", manifest.program_version),
        };
        format!(
            "goes on from checkpoint {}: {} environment steps, {} updates, {replay}{version}",
            manifest.sequence, manifest.env_steps, manifest.updates
        )
    }
}

/// The name under which the folders of the runs of a configuration are found.
pub(super) fn run_name(config: &Config) -> String {
    format!("{}-seed{}", config.run.name, config.run.seed)
}

/// Wait until the sentinel of a killed supervisor has written what was there: as long as it does, it is a member of the run.
fn wait_for_salvage(folder: &RunFolder) -> Result<(), ResumeError> {
    let pid = folder.record()?.supervisor_pid;
    let Some(entry) = Registry::existing().and_then(|registry| registry.find(pid).ok()) else { return Ok(()) };
    let is_of_it = Path::new(&entry.record.run_folder).file_name() == Some(folder.id().as_ref());
    while is_of_it && system::is_shared(&entry.record.segment) && !system::stop_requested() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The supervisor of the run in `folder`, if it lives.
fn supervisor_of(folder: &RunFolder) -> Option<u32> {
    let registry = Registry::existing()?;
    let name = RunName::Folder(folder.path().into());
    name.supervisor(&registry).map_err(|_: RunNameError| ()).ok()
}
