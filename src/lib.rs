//! Shoal: deep reinforcement learning that uses a whole Linux machine.
//!
//! A supervisor allocates one shared-memory [`segment`] with a prioritized [`replay`] in it and forks actors, learners and
//! an evaluator ([`roles`]). ARCHITECTURE.md is the map. Most users run the binaries; an algorithm or an environment of your own
//! begins at [`prelude`]. The other rooms of the library can be used on their own, for instance an environment
//! that equals Gymnasium's:
//!
//! ```
//! use shoal::environments::{Action, registry};
//!
//! let mut environment = registry::make("CartPole-v1")?;
//! let mut observation = environment.spec().observation.zeros();
//! environment.reset(Some(1), observation.values_mut())?;
//! let step = environment.step(Action::Discrete(0), observation.values_mut())?;
//! assert_eq!((step.reward, step.terminated, step.truncated), (1.0, false, false));
//! # Ok::<(), shoal::environments::EnvironmentError>(())
//! ```

// Foundations. Each group uses only itself and the groups above it, as in ARCHITECTURE.md.
mod bounded_file;
pub mod machine;
pub mod metrics;
mod readable;
pub mod shell;
mod suggestion;
pub mod sync;
pub mod values;

// Shared memory: all that the processes of a run have in common.
pub mod rendezvous;
pub mod replay;
pub mod segment;

// Configuration: what a user asks for, and what is found to suit the machine.
pub mod adaptation;
pub mod config;

// Learning: from environments to algorithms.
pub mod algorithms;
pub mod catalogue;
pub mod environments;
pub mod experience;
pub mod networks;
pub mod prelude;

// Runs: what their processes do, what is seen of them and what stays.
pub mod checkpoint;
pub mod presets;
pub mod roles;
pub mod run_name;
pub mod seeds;
pub mod telemetry;

// Programs: looks at runs from outside, the command line, and a replay without a run.
pub mod dashboard;
pub mod inspector;
pub mod program;
pub mod standalone;
