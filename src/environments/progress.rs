//! Where an episode stands between two calls: the order of `reset` and `step` that every environment keeps.

use super::{EnvironmentError, EnvironmentSpec};

/// Where an environment stands between two calls.
#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    /// No episode has begun.
    BeforeFirstReset,
    /// An episode is under way.
    Running {
        /// Steps taken in it.
        elapsed_steps: u32,
    },
    /// The last episode is over.
    Ended,
}

impl Progress {
    /// Steps of the episode once one more is taken.
    ///
    /// # Errors
    /// [`EnvironmentError::NeedsReset`] if no episode is under way.
    pub(super) fn next_step(self, spec: &EnvironmentSpec) -> Result<u32, EnvironmentError> {
        match self {
            Self::Running { elapsed_steps } => Ok(elapsed_steps.saturating_add(1)),
            Self::BeforeFirstReset => Err(spec.needs_reset("before its first reset")),
            Self::Ended => Err(spec.needs_reset("after its episode ended")),
        }
    }

    /// After a step that was number `elapsed_steps` of its episode.
    pub(super) fn after_step(elapsed_steps: u32, ended: bool) -> Self {
        if ended { Self::Ended } else { Self::Running { elapsed_steps } }
    }
}
