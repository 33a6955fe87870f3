//! The configuration as a user types it: one struct per TOML table, every key with its default, limits, unit and
//! meaning.
//!
//! Each table has a file of its own. A key is declared there and nowhere else (see `define.rs`): add a line, and the
//! key is read and checked, suggested for near misses, and listed in the reference.

mod actor;
mod adaptation;
mod algorithm;
mod auto_encoder;
mod checkpoint;
mod environment;
mod evaluator;
mod fragments;
mod learner;
mod machine;
mod network;
mod replay;
mod run;
mod visualizer;

use serde::{Deserialize, Serialize};

pub use actor::ActorConfig;
pub use adaptation::{AdaptationConfig, StepSize};
pub use algorithm::{AlgorithmConfig, Exploration, Loss, Surrogate};
pub use auto_encoder::AutoEncoderConfig;
pub use checkpoint::{CheckpointConfig, KeepReplay};
pub use environment::EnvironmentConfig;
pub use evaluator::EvaluatorConfig;
pub(crate) use fragments::LEAST_FRAGMENTS;
pub use fragments::{FragmentsConfig, OnFull};
pub use learner::{LearnerConfig, Split};
pub use machine::{AfterSupervisor, MachineConfig};
pub use network::{Engine, Initialisation, NetworkConfig};
pub use replay::{InitialPriority, ReplayConfig};
pub use run::{MOST_NAME_CHARACTERS, Resume, RunConfig};
pub use visualizer::{VideoFormat, VisualizerConfig};

use super::key::Table;
use super::own::OwnConfig;

/// The algorithms that learn from transitions, which are drawn from the replay again and again.
pub(crate) const TRANSITION_ALGORITHMS: [&str; 4] = ["dqn", "ddpg", "td3", "sac"];
/// The algorithms with a policy and critics, all of which learn from transitions.
pub(crate) const CRITIC_ALGORITHMS: [&str; 3] = ["ddpg", "td3", "sac"];
/// The algorithms that learn from fragments of trajectories, each taken once.
pub(crate) const FRAGMENT_ALGORITHMS: [&str; 2] = ["appo", "ppo"];

/// A whole run: the file `configs/*.toml` and what `--set` changes in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What to run, until when, and where results go.
    pub run: RunConfig,
    /// The environment to train in (required).
    pub environment: EnvironmentConfig,
    /// The algorithm and its settings.
    pub algorithm: AlgorithmConfig,
    /// The network that the algorithm trains.
    pub network: NetworkConfig,
    /// The auto-encoder of a policy that sees images.
    pub auto_encoder: AutoEncoderConfig,
    /// The processes that step environments.
    pub actor: ActorConfig,
    /// The processes that compute gradients.
    pub learner: LearnerConfig,
    /// The prioritized replay between actors and learners.
    pub replay: ReplayConfig,
    /// The fragments of trajectories between actors and learners.
    pub fragments: FragmentsConfig,
    /// The process that evaluates the newest parameters.
    pub evaluator: EvaluatorConfig,
    /// The process that plays for people to watch.
    pub visualizer: VisualizerConfig,
    /// The checkpoints from which the run can be resumed.
    pub checkpoint: CheckpointConfig,
    /// How the run fits itself to the machine.
    pub adaptation: AdaptationConfig,
    /// How the machine is used.
    pub machine: MachineConfig,
    /// The keys of an algorithm that a program adds.
    pub own: OwnConfig,
}

/// Every declared table, in the order of the reference and of [`Config::to_toml`].
pub(crate) const TABLES: &[Table] = &[
    RunConfig::TABLE,
    EnvironmentConfig::TABLE,
    AlgorithmConfig::TABLE,
    NetworkConfig::TABLE,
    AutoEncoderConfig::TABLE,
    ActorConfig::TABLE,
    LearnerConfig::TABLE,
    ReplayConfig::TABLE,
    FragmentsConfig::TABLE,
    EvaluatorConfig::TABLE,
    VisualizerConfig::TABLE,
    CheckpointConfig::TABLE,
    AdaptationConfig::TABLE,
    MachineConfig::TABLE,
];

impl Config {
    /// The defaults, for the environment with this id; [`Config::for_algorithm`] has those of an algorithm.
    pub fn for_environment(id: &str) -> Self {
        Self { environment: EnvironmentConfig { id: id.to_owned(), ..EnvironmentConfig::default() }, ..Self::default() }
    }

    /// Whether libtorch computes gradients, on at least one learner.
    pub fn computes_with_libtorch(&self) -> bool {
        self.network.engine == Engine::Torch || self.network.engine == Engine::Auto && self.learner.uses_gpu()
    }
}
