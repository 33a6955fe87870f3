//! The configuration as a user types it: one struct per TOML table, every key with its default, limits, unit and meaning.
//!
//! Each table has a file of its own. A key is declared there and nowhere else (see `define.rs`): add a line, and it is read, checked, suggested
//! for near misses and listed in the reference.

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

/// The algorithms that learn from transitions, drawn from the replay again and again.
pub(crate) const TRANSITION_ALGORITHMS: [&str; 4] = ["dqn", "ddpg", "td3", "sac"];
/// Those of them that have an actor and critics.
pub(crate) const ACTOR_CRITIC_ALGORITHMS: [&str; 3] = ["ddpg", "td3", "sac"];
/// The algorithms that learn from fragments of trajectories, each taken once.
pub(crate) const FRAGMENT_ALGORITHMS: [&str; 2] = ["appo", "ppo"];

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
    /// The auto-encoder of a policy that sees images.
    #[serde(default)]
    pub auto_encoder: AutoEncoderConfig,
    /// The processes that step environments.
    #[serde(default)]
    pub actor: ActorConfig,
    /// The processes that compute gradients.
    #[serde(default)]
    pub learner: LearnerConfig,
    /// The prioritized replay between them.
    #[serde(default)]
    pub replay: ReplayConfig,
    /// The fragments of trajectories between them.
    #[serde(default)]
    pub fragments: FragmentsConfig,
    /// The process that measures the newest parameters.
    #[serde(default)]
    pub evaluator: EvaluatorConfig,
    /// The process that plays for people to watch.
    #[serde(default)]
    pub visualizer: VisualizerConfig,
    /// What the run goes on from.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
    /// How the run fits itself to the machine.
    #[serde(default)]
    pub adaptation: AdaptationConfig,
    /// How the machine is used.
    #[serde(default)]
    pub machine: MachineConfig,
    /// The keys of an algorithm that a program adds.
    #[serde(default)]
    pub own: OwnConfig,
}

/// Every table that is declared here, in the order of the reference and of [`Config::to_toml`].
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
    /// The defaults, for the environment of that name.
    pub fn for_environment(id: &str) -> Self {
        Self {
            run: RunConfig::default(),
            environment: EnvironmentConfig { id: id.to_owned(), ..EnvironmentConfig::default() },
            algorithm: AlgorithmConfig::default(),
            network: NetworkConfig::default(),
            auto_encoder: AutoEncoderConfig::default(),
            actor: ActorConfig::default(),
            learner: LearnerConfig::default(),
            replay: ReplayConfig::default(),
            fragments: FragmentsConfig::default(),
            evaluator: EvaluatorConfig::default(),
            visualizer: VisualizerConfig::default(),
            checkpoint: CheckpointConfig::default(),
            adaptation: AdaptationConfig::default(),
            machine: MachineConfig::default(),
            own: OwnConfig::default(),
        }
    }

    /// Whether libtorch computes gradients, and not the native engine alone.
    pub fn computes_with_libtorch(&self) -> bool {
        self.network.engine == Engine::Torch || self.network.engine == Engine::Auto && self.learner.uses_gpu()
    }
}
