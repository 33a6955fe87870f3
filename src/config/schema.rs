//! The configuration as a user types it: one struct per TOML table, every key with its unit, range and default.
//!
//! Keys are refused when unknown, and all violations are reported together (see `validate`).

use serde::{Deserialize, Serialize};

/// A whole run: the file `configs/*.toml` and what `--set` changes in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to run, until when, and where results go.
    #[serde(default)]
    pub run: RunConfig,
    /// The environment to train in (required).
    pub environment: EnvironmentConfig,
    /// The algorithm and its settings.
    #[serde(default)]
    pub algorithm: AlgorithmConfig,
    /// The network that the algorithm trains.
    #[serde(default)]
    pub network: NetworkConfig,
    /// The processes that step environments.
    #[serde(default)]
    pub actor: ActorConfig,
    /// The processes that compute gradients.
    #[serde(default)]
    pub learner: LearnerConfig,
    /// The prioritized replay between them.
    #[serde(default)]
    pub replay: ReplayConfig,
    /// The process that measures the newest parameters.
    #[serde(default)]
    pub evaluator: EvaluatorConfig,
    /// How the machine is used.
    #[serde(default)]
    pub machine: MachineConfig,
}

/// Table `[run]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Folder under which each run gets a folder of its own.
    pub folder: String,
    /// Stop after this many environment steps, summed over all actors.
    pub stop_env_steps: u64,
    /// Stop as soon as the evaluator's mean return reaches this.
    pub stop_eval_return: Option<f64>,
    /// Stop after this many seconds.
    pub stop_wall_s: Option<f64>,
    /// Seconds between two lines of `metrics.jsonl`.
    pub metrics_interval_s: f64,
}

/// Table `[environment]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentConfig {
    /// Name in the registry, for instance `CartPole-v1`.
    pub id: String,
    /// Extra microseconds that every step of an environment takes: simulates a slow environment.
    #[serde(default)]
    pub step_delay_us: u64,
}

/// Table `[algorithm]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlgorithmConfig {
    /// Name in the algorithm registry: `dqn`.
    pub name: String,
    /// Discount factor, per environment step.
    pub gamma: f64,
    /// Steps of an n-step return.
    pub n_step: usize,
    /// Choose the bootstrap action with the online network (double DQN).
    pub double: bool,
    /// Loss on the temporal-difference error.
    pub loss: Loss,
    /// Updates between two changes of the target network.
    pub target_interval_updates: u64,
    /// Weight of the online network in each change: 1 copies it (hard), below 1 averages (soft, Polyak).
    pub target_tau: f64,
    /// How exploration is spread over the environments.
    pub exploration: Exploration,
    /// Exploration rate at the first step (global exploration).
    pub epsilon_start: f64,
    /// Exploration rate at the end of the schedule; with `ape_x`, the base of the per-environment rates.
    pub epsilon_end: f64,
    /// Environment steps over which the rate falls linearly.
    pub epsilon_anneal_steps: u64,
    /// Exponent of Ape-X's rates: epsilon_i = epsilon_end ^ (1 + i / (N - 1) * epsilon_alpha).
    pub epsilon_alpha: f64,
}

/// Loss on the temporal-difference error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Quadratic up to an error of 1, linear beyond.
    Huber,
    /// Half the squared error.
    Mse,
}

/// How exploration is spread over the environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exploration {
    /// One epsilon for all environments, annealed over the environment steps of the run.
    Global,
    /// A constant epsilon per environment, from greedy to exploring (Horgan et al. 2018).
    ApeX,
}

/// Table `[network]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Separate value and advantage streams after the last hidden layer (dueling).
    pub dueling: bool,
    /// What computes the learner's gradients.
    pub engine: Engine,
}

/// What computes forward and backward passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// `cpu` for multi-layer perceptrons on a CPU, `torch` otherwise.
    Auto,
    /// The native engine: flat parameters, hand-written backward pass.
    Cpu,
    /// libtorch through the crate tch.
    Torch,
}

/// Table `[actor]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// Actor processes; 0 runs everything in one process, reproducible bit for bit from the seed.
    pub count: usize,
    /// Environments that each actor steps with one batched inference.
    pub environments: usize,
    /// Transitions staged before a flush.
    pub flush_transitions: usize,
    /// Longest time a staged transition waits for its flush.
    pub flush_interval_ms: u64,
    /// Environment steps taken at random, summed over all actors, before the policy is used.
    pub random_steps: u64,
    /// Slots kept for actors that join with `attach`.
    pub attach_slots: usize,
}

/// Table `[learner]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// Learner processes; each draws its share of the batch.
    pub count: usize,
    /// Transitions per update, over all learners.
    pub batch_size: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Adam's step size at `stop_env_steps`, approached linearly; absent keeps it constant.
    pub learning_rate_end: Option<f64>,
    /// Adam's first decay.
    pub adam_beta1: f64,
    /// Adam's second decay.
    pub adam_beta2: f64,
    /// Adam's denominator offset.
    pub adam_epsilon: f64,
    /// Largest Euclidean norm of the gradient; absent does not clip.
    pub max_gradient_norm: Option<f64>,
    /// Updates between two publications of the parameters.
    pub publish_interval_updates: u64,
    /// `cpu` or `cuda:N`.
    pub device: String,
}

/// Table `[replay]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Transitions kept.
    pub capacity: usize,
    /// Children per node of the sum tree: 4, 8, 16, 32 or 64.
    pub fanout: usize,
    /// Prioritized (Schaul et al. 2016) or uniform sampling.
    pub prioritized: bool,
    /// Exponent of the priorities.
    pub alpha: f64,
    /// Importance-sampling exponent at the first update.
    pub beta_start: f64,
    /// Importance-sampling exponent at the end of the schedule.
    pub beta_end: f64,
    /// Environment steps over which beta grows linearly.
    pub beta_anneal_steps: u64,
    /// Added to the absolute temporal-difference error.
    pub priority_epsilon: f64,
    /// Priority of a new transition.
    pub initial_priority: InitialPriority,
    /// Transitions stored before the first sample.
    pub min_size: usize,
    /// Transitions sampled per transition inserted; absent lets both sides run free.
    pub samples_per_insert: Option<f64>,
    /// How far the ratio may drift, in samples, before the faster side waits.
    pub error_band: Option<f64>,
}

/// Priority of a new transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitialPriority {
    /// The largest priority seen so far.
    Max,
    /// The temporal-difference error under the actor's own parameters (Ape-X).
    TdError,
}

/// Table `[evaluator]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluatorConfig {
    /// Whether an evaluator process runs.
    pub enabled: bool,
    /// Episodes per evaluation.
    pub episodes: usize,
    /// Shortest time between the starts of two evaluations.
    pub interval_ms: u64,
}

/// Table `[machine]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineConfig {
    /// Bind each process to cores, so that they don't fight.
    pub affinity: bool,
    /// Threads of libtorch inside each learner.
    pub torch_threads: usize,
    /// Ask the kernel for huge pages under the segment.
    pub huge_pages: bool,
    /// Restarts granted to one process before the run is given up.
    pub max_restarts: u32,
    /// Seconds without a heartbeat after which a process counts as hung and is replaced.
    pub hang_timeout_s: f64,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            folder: "runs".into(),
            stop_env_steps: 1_000_000,
            stop_eval_return: None,
            stop_wall_s: None,
            metrics_interval_s: 1.0,
        }
    }
}

impl Default for AlgorithmConfig {
    fn default() -> Self {
        Self {
            name: "dqn".into(),
            gamma: 0.99,
            n_step: 1,
            double: true,
            loss: Loss::Huber,
            target_interval_updates: 100,
            target_tau: 1.0,
            exploration: Exploration::Global,
            epsilon_start: 1.0,
            epsilon_end: 0.05,
            epsilon_anneal_steps: 10_000,
            epsilon_alpha: 7.0,
        }
    }
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self { hidden: vec![256, 256], dueling: false, engine: Engine::Auto }
    }
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self { count: 1, environments: 8, flush_transitions: 64, flush_interval_ms: 50, random_steps: 1_000, attach_slots: 8 }
    }
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self {
            count: 1,
            batch_size: 64,
            learning_rate: 1e-3,
            learning_rate_end: None,
            adam_beta1: 0.9,
            adam_beta2: 0.999,
            adam_epsilon: 1e-8,
            max_gradient_norm: Some(10.0),
            publish_interval_updates: 4,
            device: "cpu".into(),
        }
    }
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self {
            capacity: 100_000,
            fanout: 8,
            prioritized: true,
            alpha: 0.6,
            beta_start: 0.4,
            beta_end: 1.0,
            beta_anneal_steps: 100_000,
            priority_epsilon: 1e-2,
            initial_priority: InitialPriority::Max,
            min_size: 1_000,
            samples_per_insert: Some(32.0),
            error_band: None,
        }
    }
}

impl Default for EvaluatorConfig {
    fn default() -> Self {
        Self { enabled: true, episodes: 20, interval_ms: 500 }
    }
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self { affinity: true, torch_threads: 1, huge_pages: true, max_restarts: 10, hang_timeout_s: 60.0 }
    }
}
