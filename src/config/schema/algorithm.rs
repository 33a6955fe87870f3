//! Table `[algorithm]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, above_up_to, at_least, between, whole};

table! {
    /// The algorithm and its settings.
    [algorithm] AlgorithmConfig {
        /// Name in the registry of algorithms.
        name: String = "dqn".into(), Limits::Text { form: "the name of an algorithm, such as \"dqn\"", accepts: |name| !name.is_empty() }, "";
        /// Discount factor, per environment step.
        gamma: f64 = 0.99, between(0.0, 1.0), "";
        /// Steps of an n-step return.
        n_step: usize = 1, whole(1, 1_000), "environment steps";
        /// Choose the bootstrap action with the online network (double DQN).
        double: bool = true, Limits::Any, "";
        /// Loss on the temporal-difference error.
        loss: Loss = Loss::Huber, Limits::Any, "";
        /// Updates between two changes of the target network.
        target_interval_updates: u64 = 100, at_least(1), "updates";
        /// Weight of the online network in each change: 1 copies it (hard), below 1 averages (soft, Polyak).
        target_tau: f64 = 1.0, above_up_to(0.0, 1.0), "";
        /// How exploration is spread over the environments.
        exploration: Exploration = Exploration::Global, Limits::Any, "";
        /// Exploration rate at the first step (global exploration).
        epsilon_start: f64 = 1.0, between(0.0, 1.0), "";
        /// Exploration rate at the end of the schedule; with `ape_x`, the base of the per-environment rates.
        epsilon_end: f64 = 0.05, between(0.0, 1.0), "";
        /// Environment steps over which the rate falls linearly.
        epsilon_anneal_steps: u64 = 10_000, at_least(1), "environment steps";
        /// Exponent of Ape-X's rates: epsilon_i = epsilon_end ^ (1 + i / (N - 1) * epsilon_alpha).
        epsilon_alpha: f64 = 7.0, between(0.0, 100.0), "";
    }
}

choice! {
    /// Loss on the temporal-difference error.
    Loss {
        /// Quadratic up to an error of 1, linear beyond.
        Huber = "huber",
        /// Half the squared error.
        Mse = "mse",
    }
}

choice! {
    /// How exploration is spread over the environments.
    Exploration {
        /// One epsilon for all environments, annealed over the environment steps of the run.
        Global = "global",
        /// A constant epsilon per environment, from greedy to exploring (Horgan et al. 2018).
        ApeX = "ape_x",
    }
}
