//! What a process of a run is for, and what it is doing.

use super::named_enum::named_enum;

named_enum! {
    /// What a process does in a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// Steps environments.
        Actor = "actor",
        /// Steps environments, started from outside.
        AttachedActor = "attached actor",
        /// Computes gradients.
        Learner = "learner",
        /// Measures the newest parameters.
        Evaluator = "evaluator",
        /// Does everything in one process, reproducibly.
        Synchronous = "synchronous trainer",
        /// Uses a replay that belongs to no run.
        Participant = "participant",
        /// Uses the replay of a run from outside, beside whatever else it does.
        Guest = "guest",
        /// Plays the newest parameters for people to watch.
        Visualizer = "visualizer",
    }
}

impl Role {
    /// Whether training loses something when it dies: a visualizer plays for people alone.
    pub fn serves_training(self) -> bool {
        self != Self::Visualizer
    }

    /// Whether it measures parameters and reports what they reach.
    pub fn evaluates(self) -> bool {
        matches!(self, Self::Evaluator | Self::Synchronous)
    }

    /// Whether it changes the parameters.
    pub fn learns(self) -> bool {
        matches!(self, Self::Learner | Self::Synchronous)
    }

    /// Whether a run that fits itself to its machine tries other numbers of these, or another batch for them.
    pub fn is_fitted(self) -> bool {
        matches!(self, Self::Actor | Self::Learner)
    }
}

named_enum! {
    /// What a process is doing, for whoever asks why it does not move.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// Setting up.
        Starting = "starting",
        /// Stepping environments.
        Environment = "environment step",
        /// Choosing actions.
        Inference = "inference",
        /// Writing to the replay.
        Insert = "insert",
        /// Waiting for the rate limiter.
        LimiterWait = "waiting for the rate limiter",
        /// Waiting for the first parameters.
        ParameterWait = "waiting for parameters",
        /// Drawing a batch; of a participant of a shared replay, that it has drawn.
        Sample = "sampling",
        /// Computing an update.
        Compute = "computing",
        /// Waiting for other learners.
        Exchange = "waiting for other learners",
        /// Evaluating.
        Evaluate = "evaluating",
        /// Nothing to do.
        Idle = "idle",
        /// Leaving.
        Leaving = "leaving",
    }
}
