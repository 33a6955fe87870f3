//! What can be wrong with a configuration. All of it is reported at once, each problem where it was written.

use std::fmt;

use super::place::Place;

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct ConfigError {
    /// Where it was written.
    pub place: Place,
    /// The path of the key, such as `learner.batch_size`; empty where no key is concerned.
    pub key: String,
    /// The value as written, where there is one.
    pub value: Option<String>,
    /// What is wrong, what is allowed, and what to do.
    pub problem: Box<Problem>,
}

/// What is wrong, what is allowed, and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read ({0}); give the path of a TOML file")]
    Unreadable(String),
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// An override is not of the form `TABLE.KEY=VALUE`.
    #[error("expected TABLE.KEY=VALUE, such as learner.batch_size=512")]
    NotAnAssignment,
    /// No table has that name.
    #[error("unknown table; {0}")]
    UnknownTable(String),
    /// No key has that name.
    #[error("unknown key; {0}")]
    UnknownKey(String),
    /// The value has another type.
    #[error("expected {expected}, found {found}{advice}")]
    WrongType {
        /// The allowed values in words.
        expected: String,
        /// The type found.
        found: &'static str,
        /// How to write it instead, where that is known; begins with `; `.
        advice: String,
    },
    /// The value is none of the allowed ones.
    #[error("must be {allowed}; {advice}")]
    NotAllowed {
        /// The allowed values in words.
        allowed: String,
        /// A value to use instead.
        advice: String,
    },
    /// A key that has no default is absent.
    #[error("missing; set it to {0}")]
    Required(String),
    /// The chosen algorithm does not know the key.
    #[error("it has no effect on {algorithm}, only on {}; remove it, or change algorithm.name", known_to.join(", "))]
    WithoutEffect {
        /// The algorithm that was chosen.
        algorithm: String,
        /// The algorithms that know the key.
        known_to: &'static [&'static str],
    },
    /// Another key leaves this one without effect.
    #[error("it has no effect while {state}; leave it out, or set {remedy}")]
    Idle {
        /// The state of the other key.
        state: &'static str,
        /// What to set for it to have an effect.
        remedy: &'static str,
    },
    /// Two keys contradict each other; the text names both with their values.
    #[error("{0}")]
    Contradiction(String),
    /// Refused by another part of Shoal, through [`Loaded::error_at`](super::Loaded::error_at).
    #[error("{0}")]
    Refused(String),
}

impl ConfigError {
    /// An error that shows no value.
    pub(super) fn new(place: Place, key: impl Into<String>, problem: Problem) -> Self {
        Self { place, key: key.into(), value: None, problem: Box::new(problem) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, value, problem } = self;
        // An argument is no key, and most messages name it already.
        if let Place::Argument { text } = place {
            let message = problem.to_string();
            return if message.contains(text.as_str()) { out.write_str(&message) } else { write!(out, "{text}: {message}") };
        }
        // A contradiction names its keys, and an override shows key and value as its place. What another part of
        // Shoal says may name neither.
        let is_shown = match **problem {
            Problem::Contradiction(_) => true,
            Problem::Refused(_) => false,
            _ => place.is_override(),
        };
        match value {
            _ if key.is_empty() || is_shown => write!(out, "{place}: {problem}"),
            Some(value) if *place == Place::Default => write!(out, "{key} = {value} ({place}): {problem}"),
            Some(value) => write!(out, "{place}: {key} = {value}: {problem}"),
            None => write!(out, "{place}: {key}: {problem}"),
        }
    }
}

/// Every problem of a configuration, sorted by place; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    pub(crate) fn sorted(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|left, right| left.place.cmp(&right.place));
        Self(errors)
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.0 {
            writeln!(out, "{error}")?;
        }
        match self.0.len() {
            1 => write!(out, "1 problem in the configuration"),
            count => write!(out, "{count} problems in the configuration"),
        }
    }
}
