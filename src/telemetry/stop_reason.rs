//! Why a run stopped, and how `run.json` says it.

use std::fmt;

use nix::sys::signal::Signal;
use serde::{Serialize, Serializer};

/// How the reason begins of a run that gave up.
pub(super) const GAVE_UP: &str = "gave up: ";
/// The reason of a run that a signal ended which says nothing of it.
pub(super) const TERMINATED: &str = "terminated";

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// An evaluation reached `run.stop_eval_return`, and fresh episodes with the same weights confirmed it.
    Solved,
    /// `run.stop_env_steps` were taken.
    StepLimit,
    /// `run.stop_wall_s` passed.
    TimeLimit,
    /// The user stopped it, by Ctrl+C.
    Interrupted,
    /// Another stop signal ended it, such as SIGTERM: so end a machine, a service, a job and a terminal, which says nothing of the run.
    Terminated,
    /// Too many processes of the run died. The reason is a line, and below it what explains it, such as a traceback.
    GaveUp(String),
    /// Training has diverged: what was learned last is nothing to go on from. The reason is a line that says where.
    Failed(String),
    /// The content of the memory is known to be wrong, for this reason. A complete checkpoint, if there is one, was
    /// written before, and the run can go on from it.
    Poisoned(String),
}

impl StopReason {
    /// Why a run stops that the signal of this number ends.
    pub fn of_signal(number: u32) -> Self {
        if number == Signal::SIGINT as u32 { Self::Interrupted } else { Self::Terminated }
    }

    /// Whether something went wrong, so that the run stopped before it should have.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::GaveUp(_) | Self::Failed(_) | Self::Poisoned(_))
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Solved => formatter.write_str("solved"),
            Self::StepLimit => formatter.write_str("step limit"),
            Self::TimeLimit => formatter.write_str("time limit"),
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Terminated => formatter.write_str(TERMINATED),
            // A run that stopped for either reason may go on from a checkpoint.
            Self::GaveUp(why) | Self::Poisoned(why) => write!(formatter, "{GAVE_UP}{why}"),
            Self::Failed(why) => write!(formatter, "failed: {why}"),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
