//! What can go wrong with a replay outside the processes of a run.

use std::path::PathBuf;

use thiserror::Error;

use crate::checkpoint::CheckpointError;
use crate::config::ConfigErrors;
use crate::rendezvous::RendezvousError;
use crate::rendezvous::handshake::JoinError;
use crate::replay::{SampleError, leaderless};
use crate::segment::{LayoutError, Segment, SegmentError};

/// Why a replay could not be made, opened, used, saved or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A number out of its range.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Value given.
        value: f64,
        /// Smallest allowed.
        least: f64,
        /// Largest allowed.
        most: f64,
    },
    /// No fields.
    #[error("a transition needs at least one field")]
    NoFields,
    /// A field that is not possible.
    #[error("field `{name}`: {problem}")]
    Field {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A size that no segment can have.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The segment cannot be made, opened or read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The run was not found, or said no.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The options in the segment or file cannot be read.
    #[error("the options of the replay cannot be read: {reason}")]
    Options {
        /// Why.
        reason: String,
    },
    /// The run learns from fragments of trajectories, each of which one learner takes.
    #[error(
        "the run learns from fragments of trajectories ({algorithm}), each of which is taken once by one of its learners: there is nothing \
         that a program from outside could do to them; take a run that learns from transitions"
    )]
    Fragments {
        /// Name of its algorithm.
        algorithm: String,
    },
    /// No process shares the replay any more.
    #[error(
        "there is no shared replay `{name}` ({reason}): whoever shared it has closed it or has ended; open one that is there, or load one \
         that was saved"
    )]
    Gone {
        /// Name of the object.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// All places are taken.
    #[error("all {participants} participants are there already; give the replay more (participants=)")]
    Full {
        /// How many may take part.
        participants: usize,
    },
    /// Nothing can be drawn.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Most transitions that were drawn had lost a frame.
    #[error("{gone}; {remedy}")]
    FramesGone {
        /// How many, and in how many rounds.
        gone: SampleError,
        /// What helps.
        remedy: &'static str,
    },
    /// Nothing can be found in a tree without a replay.
    #[error("all leaves of the tree are zero: update some of them first")]
    AllZero,
    /// The sums of a tree without a replay changed with every look for a leaf.
    #[error("other threads kept changing the tree in {rounds} looks for a leaf; try again, or have them change it less often")]
    Contended {
        /// Times looked.
        rounds: usize,
    },
    /// An index beyond the capacity.
    #[error("index {index} is out of range: the replay has {capacity} slots")]
    Index {
        /// Value given.
        index: i64,
        /// Number of slots.
        capacity: usize,
    },
    /// Nothing was ever written there.
    #[error("slot {index} is empty: {inserted} transitions have been added")]
    EmptySlot {
        /// Which slot.
        index: usize,
        /// Transitions added so far.
        inserted: u64,
    },
    /// A frame of the transition there has been overwritten.
    #[error("the transition in slot {index} has lost a frame; {remedy}")]
    FrameGone {
        /// Which slot.
        index: usize,
        /// What helps.
        remedy: &'static str,
    },
    /// Overwritten meanwhile.
    #[error("{stale} of {all} transitions were overwritten since they were drawn, the first in slot {slot}; nothing was changed")]
    Stale {
        /// How many.
        stale: usize,
        /// Of how many.
        all: usize,
        /// Slot of the first.
        slot: usize,
    },
    /// Not a priority.
    #[error("priority {value} at position {position} is not a finite number of at least 0; nothing was changed")]
    Priority {
        /// Value given.
        value: f32,
        /// Where.
        position: usize,
    },
    /// A number that no learner of a run could learn from.
    #[error("field `{field}` is {value} in row {row}; a run takes finite numbers alone; nothing was added")]
    NotFinite {
        /// Name of the field.
        field: String,
        /// Value given.
        value: f32,
        /// Where, from 0.
        row: usize,
    },
    /// Uniform sampling knows no priorities.
    #[error("this replay draws uniformly and has no priorities; {remedy}")]
    NotPrioritized {
        /// How to get one that has.
        remedy: &'static str,
    },
    /// The priority of a step says nothing of the transition of several steps that begins with it.
    #[error("priorities are given for steps, and the replay makes n-step transitions of them, which have none yet: add without priorities")]
    PrioritiesOfSteps,
    /// The rate limiter did not let the call through in time.
    #[error(
        "the rate limiter held the call back for longer than its timeout: {inserted} transitions added, {sampled} sampled, at least \
         {min_size} needed"
    )]
    RateLimited {
        /// Transitions added.
        inserted: u64,
        /// Transitions sampled.
        sampled: u64,
        /// Transitions needed before the first sample.
        min_size: u64,
    },
    /// Another thread of this process used the replay all the time.
    #[error("another thread of this process was at work with the replay for longer than the timeout; wait longer, or try again")]
    Busy,
    /// Waiting was given up because the caller was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Another process stays inside an operation.
    #[error("a process stayed in the middle of an operation for too long (is it stopped?); try again")]
    Stuck,
    /// Another process repairs the replay and does not go on.
    #[error(
        "process {pid} repairs the replay and has not finished within the timeout; if it was stopped, let it go on (kill -CONT {pid}) \
         or end it, and another one will take over"
    )]
    Repairing {
        /// The process that repairs.
        pid: u32,
    },
    /// The tree is wrong.
    #[error("the priorities of the replay failed their audit after a repair: something outside of Shoal changed them; clear() empties it")]
    Inexact,
    /// The replay was stopped.
    #[error("the replay was stopped (replay.stop()): nothing can be added to it any more, and nobody waits for it")]
    Stopped,
    /// This process closed the replay.
    #[error("the replay was closed while the call waited")]
    Closed,
    /// No process is left that draws.
    #[error(
        "the rate limiter holds the call back, and nobody is left who draws: {sampled} transitions were sampled before; start a process \
         that samples and add again, or give a timeout to wait all the same"
    )]
    NobodyDraws {
        /// Transitions sampled.
        sampled: u64,
    },
    /// The run ended.
    #[error("the run has ended; where it goes on (`shoal resume FOLDER`), attach to its new supervisor, which `shoal inspect` lists")]
    RunEnded,
    /// Something that a guest may not do with the replay of a run.
    #[error("the replay belongs to a run: {action} is its supervisor's")]
    OfARun {
        /// What was asked.
        action: &'static str,
    },
    /// The system does not read or write the file.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was attempted.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is of a run's checkpoint, and the rest of that cannot be read.
    #[error("{path} is the replay of a run's checkpoint, which says how to read it: it has to lie in the checkpoint's folder ({source})")]
    OfACheckpoint {
        /// Which file.
        path: PathBuf,
        /// What is wrong with the checkpoint.
        source: CheckpointError,
    },
    /// The file's content is damaged.
    #[error("{path} is no whole replay file: {problem}")]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl ReplayError {
    /// The error for a call that a repair has held back for too long.
    pub(super) fn unrepaired(segment: &Segment) -> Self {
        leaderless::repairer(segment).map_or(Self::Stuck, |pid| Self::Repairing { pid })
    }
}

impl From<RendezvousError> for ReplayError {
    fn from(error: RendezvousError) -> Self {
        Self::Join(error.into())
    }
}
