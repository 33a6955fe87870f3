//! Everything for an algorithm or an environment of your own, in a crate of your own.
//!
//! # What to write, in this order
//!
//! 1. **An environment**, unless one of the library's serves: a type with [`Dynamics`] (how it starts, what a step
//!    does), which [`Native`] completes with seeds, checks and the time limit. An environment that does all of that
//!    itself implements [`Environment`].
//!    [`conformance::check`] tells whether it keeps the rules.
//! 2. **An algorithm**, unless one of the library's serves: three types, one for each place where it runs.
//!    - [`Algorithm`] is what is known before a process starts: the network, how many values go where, the metrics, and
//!      where batches come from ([`Transitions`]: prioritized n-step transitions). It makes the other two.
//!    - [`Policy`] is what actors and the evaluator act with: observations in, actions out. Actions are indices
//!      ([`discrete_actions`], [`greedy`]), or rows of numbers ([`continuous_actions`], [`uniform`]) in which -1 and 1
//!      stand for the environment's bounds.
//!    - [`Learning`] is what a learner learns with: a batch in, a gradient out ([`Learning::gradient`]), and then, from
//!      the sum of all learners' gradients, new parameters ([`Learning::apply`]). The loss is written by hand against
//!      [`Network::forward`] and [`Network::backward`]. [`Trained`] keeps network, target network and Adam together.
//!
//!    [`check_algorithm`] tells whether several learners make the update of one, and whether a replacement goes on.
//! 3. **A program**: [`program::main`](crate::program::main), which is told what to add to the [`Catalogue`]. The
//!    program has all commands of `shoal`.
//!
//! `examples/own_algorithm` has one of each, complete; `docs/own.md` walks through it.
//!
//! # A program with an environment of its own
//!
//! ```
//! use std::process::ExitCode;
//!
//! use shoal::prelude::*;
//!
//! /// A number that should be brought to 0.
//! #[derive(Default)]
//! struct Balance {
//!     value: f64,
//! }
//!
//! impl Dynamics for Balance {
//!     /// An index, as the action space has indices.
//!     type Action = usize;
//!     /// Floats, as the observation space has floats; an image would be `u8`.
//!     type Value = f32;
//!
//!     fn spec() -> EnvironmentSpec {
//!         // The last observation of an episode is one step beyond 2.
//!         let observation = ObservationSpace::symmetric([2.1]);
//!         let action = ActionSpace::Discrete { n: 2 };
//!         EnvironmentSpec { time_limit_steps: Some(100), ..EnvironmentSpec::new("Balance-v0", observation, action) }
//!     }
//!
//!     fn reset(&mut self, random: &mut Generator, observation: &mut [f32]) {
//!         self.value = random.uniform(-1.0, 1.0);
//!         observation[0] = self.value as f32;
//!     }
//!
//!     fn step(&mut self, action: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
//!         self.value += if action == 0 { -0.1 } else { 0.1 };
//!         observation[0] = self.value as f32;
//!         (-self.value.abs(), self.value.abs() > 2.0)
//!     }
//! }
//!
//! # mod program {
//! # use super::*;
//! fn main() -> ExitCode {
//!     shoal::program::main(|catalogue| catalogue.add_environment("Balance-v0", || Ok(Native::new(Balance::default()))))
//! }
//! # }
//! # fn main() -> Result<(), conformance::ConformanceError> {
//! #     conformance::check(|| Ok(Box::new(Native::new(Balance::default()))))
//! # }
//! ```
//!
//! Then `cargo run --release -- train balance.toml`, where the file begins with
//!
//! ```toml
//! [environment]
//! id = "Balance-v0"
//! ```
//!
//! # Shapes
//!
//! Observations, actions and values of several environments or transitions lie row after row in flat slices.
//! Parameters, gradients and a learner's state are flat slices of `f32` too, which is how they lie in shared memory:
//! [`Sizes`] says how long they are.

pub use rand::{RngExt, SeedableRng};
pub use rand_distr::StandardNormal;

pub use crate::algorithms::conformance::{check_algorithm, random_transitions};
pub use crate::algorithms::registry::Declaration;
pub use crate::algorithms::{
    ActionMut, Algorithm, AlgorithmError, GRADIENT_NORM, LOSS, Learning, Policy, Q_MEAN, Random, Sizes, StateReader, StateWriter, Trained,
    WithTarget, adam_settings, bootstrap, continuous_actions, discrete_actions, greedy, take_mean, take_weighted_mean, uniform,
};
pub use crate::catalogue::{Catalogue, CatalogueError};
pub use crate::config::schema::{AlgorithmConfig, Engine, InitialPriority, Loss};
pub use crate::config::{AlgorithmKey, Config};
pub use crate::environments::{
    Action, ActionSpace, Dynamics, Environment, EnvironmentError, EnvironmentSpec, Generator, Native, ObservationSpace, Outcome, Picture,
    Step, conformance, derive_seed,
};
pub use crate::experience::{Choice, Drawn, Experience, Recorder, Seat, Source, SourceError, Steps, Storage, Transitions, transition};
pub use crate::metrics::{Metric, Share, Tally};
pub use crate::networks::{
    Adam, AdamSettings, Device, Head, InputSpec, Layer, NamedHead, Network, NetworkSpec, build as build_network, build_for_acting,
    clip_norm, polyak,
};
pub use crate::replay::{Batch, Element, Field, NStep, Priority, RateLimiter, RecentFrames, Replay, Schema, StagingArea};
pub use crate::values::{Values, ValuesMut};
