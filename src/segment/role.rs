//! What a process of a run is for, and what it is doing.

/// What a process does in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Steps environments.
    Actor,
    /// Steps environments, started from outside.
    AttachedActor,
    /// Computes gradients.
    Learner,
    /// Measures the newest parameters.
    Evaluator,
    /// Does everything in one process, reproducibly.
    Synchronous,
    /// Uses a replay that belongs to no run.
    Participant,
    /// Uses the replay of a run from outside, beside whatever else it does.
    Guest,
    /// Plays the newest parameters for people to watch.
    Visualizer,
}

impl Role {
    const ALL: [Self; 8] = [
        Self::Actor,
        Self::AttachedActor,
        Self::Learner,
        Self::Evaluator,
        Self::Synchronous,
        Self::Participant,
        Self::Guest,
        Self::Visualizer,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::AttachedActor => "attached actor",
            Self::Learner => "learner",
            Self::Evaluator => "evaluator",
            Self::Visualizer => "visualizer",
            Self::Synchronous => "synchronous trainer",
            Self::Participant => "participant",
            Self::Guest => "guest",
        }
    }

    /// Whether training loses something when it dies: a visualizer plays for people alone.
    pub fn serves_training(self) -> bool {
        self != Self::Visualizer
    }

    pub(super) fn code(self) -> u64 {
        Self::ALL.iter().position(|&role| role == self).unwrap_or(0) as u64
    }

    pub(super) fn from_code(code: u64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|code| Self::ALL.get(code).copied())
    }
}

/// What a process is doing, for whoever asks why it does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Setting up.
    Starting,
    /// Stepping environments.
    Environment,
    /// Choosing actions.
    Inference,
    /// Writing to the replay.
    Insert,
    /// Waiting for the rate limiter.
    LimiterWait,
    /// Waiting for the first parameters.
    ParameterWait,
    /// Drawing a batch.
    Sample,
    /// Computing an update.
    Compute,
    /// Waiting for other learners.
    Exchange,
    /// Evaluating.
    Evaluate,
    /// Nothing to do.
    Idle,
    /// Leaving.
    Leaving,
}

impl Phase {
    pub(super) const ALL: [Self; 12] = [
        Self::Starting,
        Self::Environment,
        Self::Inference,
        Self::Insert,
        Self::LimiterWait,
        Self::ParameterWait,
        Self::Sample,
        Self::Compute,
        Self::Exchange,
        Self::Evaluate,
        Self::Idle,
        Self::Leaving,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Environment => "environment step",
            Self::Inference => "inference",
            Self::Insert => "insert",
            Self::LimiterWait => "waiting for the rate limiter",
            Self::ParameterWait => "waiting for parameters",
            Self::Sample => "sampling",
            Self::Compute => "computing",
            Self::Exchange => "waiting for other learners",
            Self::Evaluate => "evaluating",
            Self::Idle => "idle",
            Self::Leaving => "leaving",
        }
    }
}
