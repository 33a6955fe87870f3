//! What a user asks for: TOML files, `--set` overrides, ranges, suggestions.

pub mod schema;

pub use schema::Config;
