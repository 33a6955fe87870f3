//! The supervisor: plans, allocates, forks, watches, repairs, records. Single-threaded, never runs a tensor operation,
//! takes no lock that a child can hold.

// Before a run: its configuration becomes a plan of processes, cores and bytes, and what can be tried is tried.
mod neighbours; // cores that other runs are bound to
mod plan;
mod preflight;
mod prepared;
mod remarks; // what can run, and is hardly meant so
mod resumption; // a run that goes on from a checkpoint, or in memory
mod starting_point; // the checkpoint of another run that a new one begins with

// A run under way.
mod attachments; // actors and guests from outside
mod child; // what a forked process does, from its first instruction to its exit code
mod core_times;
mod observe; // counters, added up into a snapshot
mod session; // the loop, with a file for each of its concerns
mod slots; // who gets which place in the process table

// Fitting a run to the machine.
mod fitting;
mod windows;

// Watching.
mod binding; // whether bound processes are better left to the kernel by now
mod death; // how a process ended, and how that is told
mod hang; // a process that gives no sign of life
mod leaving; // processes that do not leave at the end of a run
mod standstill; // a run in which nothing advances, although every process gives signs of life
mod watch; // who has died, and when its replacement starts

// What a run keeps, and what a helper finds out beside it: a child that does one thing and tells what came of it.
mod checkpoint_writer;
mod helper;
mod products_peak;
mod record;
mod weights;

// After a supervisor was killed.
mod keeper; // offers the run, which stays in memory, until it is adopted or on the disk
mod salvage; // writes one more checkpoint
mod sentinel; // outlives the supervisor, and removes what is left

pub use neighbours::Neighbour;
pub use plan::{Plan, PlanError};
pub use prepared::Prepared;
pub use resumption::{ResumeError, Resumption};
pub use session::Session;

use thiserror::Error;

use crate::config::{ConfigError, ConfigErrors};
use crate::segment::SegmentError;
use crate::telemetry::TelemetryError;

/// Why a run could not start or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The plan does not fit the machine.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The shared memory failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A result could not be written.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The run could not be announced.
    #[error(transparent)]
    Rendezvous(#[from] crate::rendezvous::RendezvousError),
    /// The run cannot go on.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A call to the system failed.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<ConfigError> for SupervisorError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.into())
    }
}

/// How a run ended, for whoever started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// The run came to its end, and its results are saved.
    Completed,
    /// A signal ended the run early. What it had learned is saved.
    Interrupted {
        /// Number of the signal.
        signal: u32,
    },
    /// The run could not go on, or its last weights could not be saved.
    Failed,
}

impl RunOutcome {
    /// The exit code of the program: 0, 1, or 128 and the number of the signal, as shells say it (130 after Ctrl+C, 143 after SIGTERM).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}
