//! How often a test does what it does.
#![allow(unreachable_pub, reason = "some test binaries re-export it")]

/// A count that the environment variable `name` may raise, for longer runs than the everyday ones.
pub fn count_from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, expected a count")),
        Err(_) => default,
    }
}
