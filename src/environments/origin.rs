//! What makes environments of one kind.

use super::request::{EnvironmentRequest, Examined};
use super::{Environment, EnvironmentError, EnvironmentSpec};

/// What makes environments of one kind.
pub(super) trait Origin: Sync {
    /// As [`EnvironmentRequest::make`].
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError>;

    /// As [`EnvironmentRequest::examine`].
    fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError>;

    /// As [`EnvironmentRequest::needs_python`].
    fn needs_python(&self) -> bool {
        false
    }
}

/// An environment that is part of this program.
pub(super) struct Entry {
    pub(super) id: &'static str,
    /// Names and versions of what it runs on, besides this program.
    pub(super) software: &'static [(&'static str, &'static str)],
    pub(super) spec: fn() -> Result<EnvironmentSpec, EnvironmentError>,
    pub(super) make: fn() -> Result<Box<dyn Environment>, EnvironmentError>,
}

impl Origin for Entry {
    fn make(&self, request: &EnvironmentRequest) -> Result<Box<dyn Environment>, EnvironmentError> {
        takes_no_arguments(self.id, request)?;
        (self.make)()
    }

    fn examine(&self, request: &EnvironmentRequest) -> Result<Examined, EnvironmentError> {
        takes_no_arguments(self.id, request)?;
        let software = self.software.iter().map(|&(name, version)| (name.to_owned(), version.to_owned())).collect();
        Ok(Examined { spec: (self.spec)()?, software, remark: None })
    }
}

/// Refuse arguments for an environment that has none.
pub(super) fn takes_no_arguments(id: &str, request: &EnvironmentRequest) -> Result<(), EnvironmentError> {
    if request.arguments()?.is_empty() {
        return Ok(());
    }
    Err(EnvironmentError::TakesNoArguments { id: id.into(), given: request.keyword_arguments.clone() })
}
