//! What a user asks for: TOML files, `--set` overrides, ranges, suggestions.
//!
//! [`schema`] declares every key once, with its type, default, limits, unit and meaning. From that declaration come
//! the structs that the rest of Shoal reads, the checks of [`Config::load`], the errors, and the reference in
//! `docs/configuration.md`.

// Keys: what there is, and what a value may be.
mod define;
mod key;
mod key_type;
mod limits;
mod own; // the keys of an algorithm that a program adds
mod reference; // docs/configuration.md
pub mod schema;

// From text to a configuration, and back.
mod advice; // what was probably meant
mod check; // one entry
mod document;
mod error;
mod load;
mod overrides;
mod place;
mod write;

// What follows from the values of keys.
mod automatic; // numbers that are chosen before a run begins
mod by_algorithm;
mod flow; // how insertion and sampling are kept in step
mod idle; // keys that have no effect beside others
mod rules;
pub mod schedule; // numbers that change along a run

// Runs that go on, and runs that fit themselves to the machine.
pub(crate) mod fitted;
mod resumption;

pub use advice::for_option as advice_for_option;
pub use automatic::{LEAST_TRANSITIONS_PER_LEARNER, SLEEPING_ACTORS_PER_CORE};
pub use by_algorithm::{RowKind, TargetNetworks};
pub use error::{ConfigError, ConfigErrors, Problem};
pub use key::{Key, Table};
pub use key_type::{Choice, KeyType, Kind};
pub use limits::Limits;
pub(crate) use load::CONFIG_LIMIT_BYTES;
pub use load::{Difference, Loaded};
pub use own::{AlgorithmKey, AlgorithmKeyError, OwnConfig};
pub use place::Place;
pub use reference::reference;
pub use resumption::{INITIAL_KEYS, changes_that_do_not_fit, overrides_that_do_not_fit, repeats, settings_to_begin_with};
pub(crate) use rules::multiple_near;
pub use schema::{Config, Resume};
