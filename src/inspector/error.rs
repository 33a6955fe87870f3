//! Why a run could not be inspected.

use thiserror::Error;

use crate::rendezvous::RendezvousError;
use crate::segment::SegmentError;

/// Why a run could not be inspected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// There is no such run, or the registry cannot be used.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// The segment cannot be opened or is not valid.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The replay has no slot of that number.
    #[error("there is no slot {slot}: the replay has {capacity} slots, 0 to {}", capacity - 1)]
    NoSuchSlot {
        /// Slot asked for.
        slot: usize,
        /// Slots of the replay.
        capacity: usize,
    },
    /// Nothing was written there yet, or the run goes on from a checkpoint without it.
    #[error("slot {slot} is empty: {inserted} transitions have been inserted so far; choose another slot or wait")]
    EmptySlot {
        /// Slot asked for.
        slot: usize,
        /// Transitions inserted by the run.
        inserted: u64,
    },
    /// The transition was never whole while it was looked at.
    #[error("the transition in slot {slot} is torn: it was being written in each of {attempts} looks; try again")]
    Torn {
        /// Slot asked for.
        slot: usize,
        /// Looks taken.
        attempts: u32,
    },
    /// A frame that the transition shows has been overwritten.
    #[error("the transition in slot {slot} (generation {generation}) shows a frame that has been overwritten; look at a newer slot")]
    FrameGone {
        /// Slot asked for.
        slot: usize,
        /// Its generation.
        generation: u64,
    },
    /// The description has a field that is impossible.
    #[error("field {position} of the run's description is impossible ({problem}); the segment is damaged")]
    ImpossibleField {
        /// Position among the fields.
        position: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Description and layout contradict each other.
    #[error("the run's description makes transitions of {described_words} words and its store has {stored_words}; the segment is damaged")]
    SchemaMismatch {
        /// Words by the description.
        described_words: usize,
        /// Words by the layout.
        stored_words: usize,
    },
    /// A live view of a dead run was asked for.
    #[error("the run of supervisor {pid} is dead and will not change; leave out --live to see what it left")]
    NothingLives {
        /// Its process id.
        pid: u32,
    },
    /// The live view cannot be shown.
    #[error("the live view needs a terminal ({source}); leave out --live for one report")]
    Terminal {
        /// What the terminal said.
        #[from]
        source: std::io::Error,
    },
}
