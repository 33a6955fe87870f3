//! Table `[algorithm]`.

use super::{FRAGMENT_ALGORITHMS, TRANSITION_ALGORITHMS};
use crate::config::define::{choice, table};
use crate::config::limits::{Limits, at_least, between, finite, positive_up_to, whole};

table! {
    /// The algorithm and its settings. A key that has no effect on the named algorithm is refused where it is set.
    [algorithm] AlgorithmConfig {
        /// Name of the algorithm: `dqn` for discrete actions; `ddpg`, `td3` and `sac` for continuous ones; `appo`
        /// and `ppo` for both.
        name: String = "dqn".into(),
            Limits::Text { form: "the name of an algorithm, such as \"dqn\"", accepts: |name| !name.is_empty() }, "";
        /// Discount factor, per environment step.
        gamma: f64 = 0.99, between(0.0, 1.0), "";
        /// Steps of an n-step return.
        n_step: usize = 1, whole(1, 1_000), "environment steps", only TRANSITION_ALGORITHMS;
        /// Loss on the temporal-difference error. `"none"` takes `huber` for DQN and `mse` for the others.
        loss: Option<Loss> = None, Limits::Any, "", only TRANSITION_ALGORITHMS;
        /// Updates between two changes of the target networks. `"none"` takes 100 for DQN (1 if `target_tau` is
        /// below 1), `policy_delay_updates` for TD3, 16 for APPO, and 1 for the others.
        target_interval_updates: Option<u64> = None, at_least(1), "updates", only ["dqn", "ddpg", "td3", "sac", "appo"];
        /// Weight of the learned networks in each change of the target networks: 1 copies them (hard update), below
        /// 1 averages them (soft update, Polyak). `"none"` takes 1 for DQN and 0.005 for the others.
        target_tau: Option<f64> = None, positive_up_to(1.0), "", only TRANSITION_ALGORITHMS;
        /// Choose the bootstrap action with the online network (double DQN).
        double: bool = true, Limits::Any, "", only ["dqn"];
        /// How exploration is spread over the environments.
        exploration: Exploration = Exploration::Global, Limits::Any, "", only ["dqn"];
        /// Exploration rate at the first step, with `global` exploration.
        epsilon_start: f64 = 1.0, between(0.0, 1.0), "", only ["dqn"];
        /// Exploration rate at the end of the schedule; with `ape_x`, the base of each environment's rate.
        epsilon_end: f64 = 0.05, between(0.0, 1.0), "", only ["dqn"];
        /// Environment steps over which the exploration rate falls linearly.
        epsilon_anneal_steps: u64 = 10_000, at_least(1), "environment steps", only ["dqn"];
        /// Exponent of Ape-X's rates: environment i of N has epsilon_i = epsilon_end ^ (1 + i / (N - 1) *
        /// epsilon_alpha).
        epsilon_alpha: f64 = 7.0, between(0.0, 100.0), "", only ["dqn"];
        /// Standard deviation of the noise that is added to the actions in the first environment.
        exploration_noise_std: f64 = 0.1, between(0.0, 10.0), "half the action range", only ["ddpg", "td3"];
        /// Noise in the last environment, as a multiple of the first environment's; those between are spaced
        /// geometrically.
        exploration_noise_spread: f64 = 1.0, positive_up_to(100.0), "", only ["ddpg", "td3"];
        /// Updates of the critics per update of the policy.
        policy_delay_updates: u64 = 2, at_least(1), "updates", only ["td3"];
        /// Standard deviation of the noise on the target policy's actions.
        target_noise_std: f64 = 0.2, between(0.0, 10.0), "half the action range", only ["td3"];
        /// Largest absolute noise on the target policy's actions.
        target_noise_clip: f64 = 0.5, between(0.0, 10.0), "half the action range", only ["td3"];
        /// Entropy temperature; `"none"` learns it.
        entropy_temperature: Option<f64> = None, between(0.0, 1_000.0), "", only ["sac"];
        /// Entropy temperature from which learning it starts.
        initial_entropy_temperature: f64 = 1.0, positive_up_to(1_000.0), "", only ["sac"];
        /// Entropy that a learned temperature holds, at most ln 2 for each action dimension; `"none"` takes minus the
        /// number of action dimensions.
        target_entropy: Option<f64> = None, finite(), "nats", only ["sac"];
        /// Adam's step size for the policy at the beginning; it falls by the same factor as the critics' step size.
        /// `"none"` takes `learner.learning_rate`, as the critics have it.
        policy_learning_rate: Option<f64> = None, positive_up_to(1.0), "", only ["ddpg", "td3", "sac"];
        /// What the policy's loss is made from.
        surrogate: Surrogate = Surrogate::Clipped, Limits::Any, "", only ["appo"];
        /// How far the probability of an action may move before the loss follows it no further, as a ratio to its
        /// probability under the target network (APPO) or under the policy that acted (PPO). `"none"` takes 0.3 for
        /// APPO and 0.2 for PPO.
        clip_ratio: Option<f64> = None, positive_up_to(10.0), "", only FRAGMENT_ALGORITHMS;
        /// Weight of longer returns: lambda of V-trace (APPO) and of generalized advantage estimation (PPO).
        /// `"none"` takes 1 for APPO and 0.95 for PPO.
        trace_decay: Option<f64> = None, between(0.0, 1.0), "", only FRAGMENT_ALGORITHMS;
        /// Largest importance weight of a temporal difference in V-trace (rho bar), for values and for the policy.
        max_importance_weight: f64 = 1.0, positive_up_to(1_000.0), "", only ["appo"];
        /// Largest importance weight that carries a temporal difference to earlier steps in V-trace (c bar).
        max_trace_weight: f64 = 1.0, positive_up_to(1_000.0), "", only ["appo"];
        /// Weight of the value's loss. `"none"` takes 1 for APPO and 0.5 for PPO.
        value_coefficient: Option<f64> = None, between(0.0, 1_000.0), "", only FRAGMENT_ALGORITHMS;
        /// Weight of the policy's entropy at the beginning.
        entropy_start: f64 = 0.01, between(0.0, 100.0), "", only FRAGMENT_ALGORITHMS;
        /// Weight of the policy's entropy at the end of the schedule.
        entropy_end: f64 = 0.0, between(0.0, 100.0), "", only FRAGMENT_ALGORITHMS;
        /// Environment steps over which the entropy's weight falls linearly.
        entropy_anneal_steps: u64 = 3_000_000, at_least(1), "environment steps", only FRAGMENT_ALGORITHMS;
        /// Divergence between target network and policy that a penalty holds, by adapting its weight. `"none"` has
        /// no penalty.
        kl_target: Option<f64> = None, positive_up_to(100.0), "nats", only ["appo"];
        /// Scale the advantages of a learner's part of an update to mean 0 and variance 1, unless that is a single
        /// step. `"none"` does so for PPO and not for APPO.
        normalise_advantages: Option<bool> = None, Limits::Any, "", only FRAGMENT_ALGORITHMS;
        /// Standard deviation that a continuous policy starts with.
        initial_action_std: f64 = 1.0, between(0.01, 7.0), "half the action range", only FRAGMENT_ALGORITHMS;
        /// Learn the standard deviations of a continuous policy as parameters of their own, the same in every
        /// state, instead of as outputs of the network.
        free_action_std: bool = false, Limits::Any, "", only FRAGMENT_ALGORITHMS;
        /// Passes over each batch.
        epochs: usize = 4, whole(1, 1_000), "", only ["ppo"];
        /// Parts into which each pass divides the batch; each part is one update.
        minibatches: usize = 4, whole(1, 100_000), "updates", only ["ppo"];
        /// Scale observations to mean 0 and variance 1, with statistics of all actors, and limit them to 10. A standard
        /// deviation below 1e-4 counts as about 1e-4.
        normalise_observations: bool = false, Limits::Any, "";
        /// Divide rewards by the standard deviation of the discounted return, with statistics of all actors, and
        /// limit them (or their sums over `n_step` steps) to 10. A deviation below 1e-4 counts as about 1e-4.
        normalise_rewards: bool = false, Limits::Any, "";
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
    /// What the loss of a policy is made from.
    Surrogate {
        /// The clipped ratio of probabilities (Schulman et al. 2017).
        Clipped = "clipped",
        /// The logarithm of the probability, as in IMPALA (Espeholt et al. 2018).
        PolicyGradient = "policy_gradient",
    }
}

choice! {
    /// How exploration is spread over the environments.
    Exploration {
        /// One epsilon for all environments, annealed over the environment steps of the run.
        Global = "global",
        /// A constant epsilon per environment, from exploring to greedy (Horgan et al. 2018).
        ApeX = "ape_x",
    }
}
