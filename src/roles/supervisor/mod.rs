//! The supervisor: plans, allocates, forks, watches, repairs, records. Single-threaded, never runs a tensor operation,
//! takes no lock that a child can hold.

mod attachments;
mod binding;
mod checkpoint_writer;
mod child;
mod core_times;
mod fitting;
mod hang;
mod helper;
mod keeper;
mod leaving;
mod neighbours;
mod observe;
mod plan;
mod preflight;
mod prepared;
mod products_limit;
mod record;
mod remarks;
mod resumption;
mod salvage;
mod sentinel;
mod session;
mod slots;
mod standstill;
mod starting_point;
mod watch;
mod weights;
mod windows;

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
