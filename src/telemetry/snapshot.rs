//! What the supervisor knows of a run at one moment: the input of every sink.

use serde::Serialize;

/// Totals and rates of a run; counters are summed over the processes, dead ones included.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Seconds since the supervisor started.
    pub wall_s: f64,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Environment steps after which the run stops.
    pub stop_env_steps: u64,
    /// Episodes finished by the actors.
    pub episodes: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Transitions inserted into the replay.
    pub inserted: u64,
    /// Transitions sampled from the replay.
    pub sampled: u64,
    /// Priority updates dropped because their transition had been overwritten.
    pub stale_priorities: u64,
    /// Transitions now in the replay.
    pub replay_size: u64,
    /// Transitions that fit into the replay.
    pub replay_capacity: u64,
    /// Environment steps per second since the last snapshot.
    pub env_steps_per_s: f64,
    /// Updates per second since the last snapshot.
    pub updates_per_s: f64,
    /// Mean return of the last training episodes (up to 100), with exploration; absent before the first.
    pub train_return_mean: Option<f64>,
    /// Mean return of the newest evaluation.
    pub eval_return_mean: Option<f64>,
    /// Standard deviation of the newest evaluation.
    pub eval_return_std: Option<f64>,
    /// Episodes of the newest evaluation.
    pub eval_episodes: Option<u64>,
    /// Parameter version of the newest evaluation.
    pub eval_version: Option<u64>,
    /// Best mean return of all evaluations.
    pub best_eval_return: Option<f64>,
    /// The mean return at which the run stops.
    pub stop_eval_return: Option<f64>,
    /// Newest loss.
    pub loss: Option<f64>,
    /// Newest mean of the chosen actions' values.
    pub q_mean: Option<f64>,
    /// Newest norm of the gradient before clipping.
    pub gradient_norm: Option<f64>,
    /// Exploration rate now (global exploration).
    pub epsilon: Option<f64>,
    /// Importance-sampling exponent now.
    pub beta: Option<f64>,
    /// Version of the newest published parameters.
    pub parameter_version: u64,
    /// Updates between the parameters that acted and the newest, mean over the inserted transitions.
    pub policy_lag_mean: f64,
    /// Largest policy lag seen.
    pub policy_lag_max: u64,
    /// How the actors' time divides, summed over them, in seconds since the start of the run.
    pub actor_time: ActorTime,
    /// How the learners' time divides, summed over them, in seconds since the start of the run.
    pub learner_time: LearnerTime,
    /// Actors alive now, attached ones included.
    pub actors: u64,
    /// Of those, attached from outside.
    pub attached: u64,
    /// Learners alive now.
    pub learners: u64,
    /// Processes that died and were replaced.
    pub restarts: u64,
}

/// Where actors spend their time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ActorTime {
    /// Stepping environments.
    pub environment_s: f64,
    /// Choosing actions.
    pub inference_s: f64,
    /// Staging and flushing transitions, and reading new parameters.
    pub insert_s: f64,
    /// Waiting for the rate limiter.
    pub limiter_wait_s: f64,
}

/// Where learners spend their time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LearnerTime {
    /// Drawing batches and writing priorities back.
    pub replay_s: f64,
    /// Forward and backward passes and the optimizer.
    pub compute_s: f64,
    /// Waiting for the other learners' gradients and adding them up.
    pub exchange_s: f64,
    /// Publishing parameters.
    pub publish_s: f64,
    /// Waiting for the rate limiter.
    pub limiter_wait_s: f64,
}
