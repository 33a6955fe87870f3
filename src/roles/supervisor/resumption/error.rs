//! Why a run cannot go on.

use std::path::PathBuf;

use thiserror::Error;

use crate::checkpoint::{CheckpointError, WeightsError};
use crate::shell::word;
use crate::telemetry::{RunFolder, RunRecord, TelemetryError};

/// Why a run cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Folder of the run.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// The run has not ended.
    #[error("the run in {} is under way: its supervisor is process {pid}; `shoal inspect {pid}` looks into it", folder.display())]
    Running {
        /// Folder of the run.
        folder: PathBuf,
        /// Process id of its supervisor.
        pid: u32,
    },
    /// Others use the folder of the run, though its supervisor is gone.
    #[error(
        "{} has been in use for long, though its supervisor is no process here: if no checkpoint is being written there, end what \
         the run has left (`fuser` names it)",
        folder.display()
    )]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is in use on another machine.
    #[error(
        "the run in {} is under way on {machine}, or has left its folder locked there: end there what is left of it (`fuser` names it), \
         or train anew with run.resume=never",
        folder.display()
    )]
    Elsewhere {
        /// Folder of the run.
        folder: PathBuf,
        /// The machine on which it was started.
        machine: String,
    },
    /// A checkpoint of something else was named.
    #[error("the checkpoint {} is not one of the run in {}; name one in its folder `checkpoints`", path.display(), folder.display())]
    OfAnotherRun {
        /// The checkpoint.
        path: PathBuf,
        /// The run.
        folder: PathBuf,
    },
    /// The run was killed and is not kept in memory.
    #[error(
        "the run in {} is not kept in memory; if it wrote a checkpoint, `shoal resume {}` goes on from there",
        folder.display(), word(folder)
    )]
    NotKept {
        /// Folder of the run.
        folder: PathBuf,
    },
    /// The run has ended and is not kept in memory.
    #[error(
        "the run in {} has ended ({reason}) and is not kept in memory; `shoal inspect {}` shows what it reached and, if it left a \
         checkpoint, how to go on with it",
        folder.display(), word(folder)
    )]
    Ended {
        /// Folder of the run.
        folder: PathBuf,
        /// How it ended.
        reason: String,
    },
    /// Another process is adopting the run.
    #[error("the run in {} is being adopted by process {pid}", folder.display())]
    AdoptedByAnother {
        /// Folder of the run.
        folder: PathBuf,
        /// Process id of the adopter.
        pid: u32,
    },
    /// The run is being written to the disk.
    #[error("the run in {} is being written to the disk: `shoal resume {}` goes on with it from there", folder.display(), word(folder))]
    BeingWritten {
        /// Folder of the run.
        folder: PathBuf,
    },
    /// The run stays in memory, because the disk does not take it.
    #[error(
        "the run in {} stays in memory, since the disk does not take it (its run.log says why): `shoal adopt {}` goes on with it there",
        folder.display(), word(folder)
    )]
    StaysInMemory {
        /// Folder of the run.
        folder: PathBuf,
    },
    /// The memory in which the run is kept is damaged.
    #[error(
        "the memory of the run in {} is of no use here: {problem}; SIGTERM to the process that keeps it, which its run.log names, has it \
         written to the disk",
        folder.display()
    )]
    KeptDamaged {
        /// Folder of the run.
        folder: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The memory in which the run is kept was laid out for other settings.
    #[error(
        "the memory of the run in {} was laid out for other settings ({}); go on without these changes, or by way of the disk: \
         `shoal resume {}`",
        folder.display(), sizes.join(", "), word(folder)
    )]
    OtherMemory {
        /// Folder of the run.
        folder: PathBuf,
        /// What differs, and how.
        sizes: Vec<String>,
    },
    /// The run was to write no checkpoint.
    #[error(
        "the run in {} has no complete checkpoint, since it was to write none: its {key} is \"none\"; start a new run with a number: \
         `shoal train {} --set {key}=NUMBER`",
        folder.display(), word(&folder.join("config.toml"))
    )]
    WritesNone {
        /// Folder of the run.
        folder: PathBuf,
        /// What its configuration lacks.
        key: &'static str,
    },
    /// The best weights of the run would be replaced without having been beaten.
    #[error("{0}. If that file is moved out of its folder, the run looks for its best weights anew")]
    BestWeights(#[from] WeightsError),
    /// The checkpoint cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run has as many environment steps as it is to have.
    #[error(
        "the run in {} has come to {env_steps} environment steps, and run.stop_env_steps is {limit}: there is nothing left to do; go on \
         with more of them by `--set run.stop_env_steps=NUMBER`",
        folder.display()
    )]
    Complete {
        /// Folder of the run.
        folder: PathBuf,
        /// Steps that its checkpoint knows of.
        env_steps: u64,
        /// The value of `run.stop_env_steps`.
        limit: u64,
    },
    /// The run has taken as long as it may.
    #[error(
        "the run in {} has come to {wall_s:.1} s, and run.stop_wall_s is {limit_s}: there is nothing left to do; go on with more of \
         them by `--set run.stop_wall_s=NUMBER`",
        folder.display()
    )]
    OutOfTime {
        /// Folder of the run.
        folder: PathBuf,
        /// Seconds that its checkpoint knows of, in all its lives.
        wall_s: f64,
        /// The value of `run.stop_wall_s`.
        limit_s: f64,
    },
    /// The run has reached its goal, and has the same one.
    #[error(
        "the run in {} has reached its goal, a mean return of {goal}: there is nothing left to do; train on with `--set \
         run.stop_eval_return=none`, or with a higher goal",
        folder.display()
    )]
    Solved {
        /// Folder of the run.
        folder: PathBuf,
        /// The value of `run.stop_eval_return`.
        goal: f64,
    },
    /// Keys were changed that decide what a checkpoint holds.
    #[error(
        "a run cannot go on with another {}: what its checkpoint holds would no longer fit, or mean something else; start a new run \
         for that (where run.resume is \"auto\": with run.resume=never, or another run.name)",
        keys.join(", ")
    )]
    Fixed {
        /// Their paths.
        keys: Vec<String>,
    },
    /// It has begun long ago.
    #[error(
        "the run in {} has begun, and run.start_from is what a run begins with; start a new run: `shoal train {} --set \
         run.start_from=CHECKPOINT` (where run.resume is \"auto\": with run.resume=never, or another run.name)",
        folder.display(), word(&folder.join("config.toml"))
    )]
    HasStarted {
        /// Its folder.
        folder: PathBuf,
    },
    /// The segment would have other sizes than the one that was saved.
    #[error(
        "the checkpoint {} was written with {what} {found}, and this run would have {expected}; go on with the version and the \
         configuration that wrote it",
        path.display()
    )]
    OtherShape {
        /// Folder of the checkpoint.
        path: PathBuf,
        /// Which size.
        what: &'static str,
        /// That of the checkpoint.
        found: String,
        /// That of this run.
        expected: String,
    },
}

impl ResumeError {
    /// The run in `folder`, which has this `record`, is under way.
    pub(super) fn running(folder: &RunFolder, record: &RunRecord) -> Self {
        Self::Running { folder: folder.path().into(), pid: record.supervisor_pid }
    }

    /// Why the run in `folder`, which has this `record` and is not kept in memory, cannot be adopted.
    pub(super) fn not_kept(folder: &RunFolder, record: &RunRecord) -> Self {
        let path = folder.path().into();
        match &record.finished {
            Some(finished) => Self::Ended { folder: path, reason: finished.headline().into() },
            None => Self::NotKept { folder: path },
        }
    }
}
