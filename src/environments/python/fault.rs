//! What Python reports of an exception, turned into an [`EnvironmentError`].

use serde::Deserialize;

use crate::environments::{EnvironmentError, Moment};

/// The answer of `report` in `faults.py`.
#[derive(Debug, Deserialize)]
pub(super) struct Fault {
    kind: Kind,
    summary: String,
    advice: String,
    traceback: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Any exception.
    Raised,
    /// An environment that does not exist or does not fit.
    Refused,
    /// A package that is not installed; the advice is the command that installs it.
    Missing,
    /// A module that is in no package known here: one of the user's own, or of a package that the advice would install.
    Unknown,
}

impl Fault {
    /// The error of the environment `id`, which came up in `during`.
    pub(super) fn into_error(self, id: &str, during: Moment) -> EnvironmentError {
        let Self { kind, summary, advice, traceback } = self;
        let id = id.to_owned();
        match kind {
            Kind::Refused => {
                let reason = if advice.is_empty() { summary } else { format!("{summary} ({advice})") };
                EnvironmentError::Unusable { id, reason }
            }
            Kind::Missing => EnvironmentError::MissingPackage { id, summary, command: advice },
            Kind::Unknown => {
                EnvironmentError::MissingModule { id, summary: summary.into(), command: advice.into(), traceback: traceback.into() }
            }
            Kind::Raised => EnvironmentError::Python { id, during, summary: summary.into(), traceback: traceback.into() },
        }
    }
}
