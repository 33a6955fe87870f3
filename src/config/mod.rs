//! What a user asks for: TOML files, `--set` overrides, ranges, suggestions.
//!
//! [`schema`] declares every key once, with its type, default, limits, unit and meaning. From that declaration come
//! the structs that the rest of Shoal reads, the checks of [`Config::load`], the errors, and the reference in
//! `docs/configuration.md`.

mod advice;
mod automatic;
mod by_algorithm;
mod check;
mod define;
mod document;
mod error;
pub(crate) mod fitted;
mod flow;
mod idle;
mod key;
mod key_type;
mod limits;
mod load;
mod overrides;
mod own;
mod place;
mod reference;
mod resumption;
mod rules;
pub mod schedule;
pub mod schema;
mod write;

pub use advice::for_option as advice_for_option;
pub use automatic::LEAST_TRANSITIONS_PER_LEARNER;
pub use by_algorithm::{Rows, TargetNetworks};
pub use error::{ConfigError, ConfigErrors, Problem};
pub use key::{Key, Table};
pub use key_type::{Choice, KeyType, Kind};
pub use limits::Limits;
pub use load::{Difference, Loaded};
pub use own::{AlgorithmKey, AlgorithmKeyError, OwnConfig};
pub use place::Place;
pub use reference::reference;
pub use resumption::{INITIAL_KEYS, changes_that_do_not_fit, overrides_that_do_not_fit, repeats, settings_to_begin_with};
pub(crate) use rules::multiple_near;
pub use schema::{Config, Resume};
