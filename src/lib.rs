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

pub mod adaptation;
pub mod algorithms;
mod bounded_file;
pub mod catalogue;
pub mod checkpoint;
pub mod config;
pub mod dashboard;
pub mod environments;
pub mod experience;
pub mod inspector;
pub mod machine;
pub mod metrics;
pub mod networks;
pub mod prelude;
pub mod presets;
pub mod program;
mod readable;
pub mod rendezvous;
pub mod replay;
pub mod roles;
pub mod run_name;
pub mod seeds;
pub mod segment;
pub mod shell;
pub mod standalone;
mod suggestion;
pub mod sync;
pub mod telemetry;
pub mod values;
