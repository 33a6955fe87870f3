//! Why there is no dashboard.

use std::io;

use thiserror::Error;

use crate::rendezvous::RendezvousError;
use crate::run_name::RunNameError;
use crate::segment::SegmentError;
use crate::telemetry::TelemetryError;

/// Why a dashboard cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The port is taken, or this user may not have it.
    #[error("cannot listen on port {port} of this machine ({source}); leave out --port for any that is free")]
    Listen {
        /// The port.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// The name leads to no run.
    #[error(transparent)]
    Name(#[from] RunNameError),
    /// The folder is not one of a run.
    #[error(transparent)]
    Folder(#[from] TelemetryError),
    /// There is no run with this process id.
    #[error(transparent)]
    Registry(#[from] RendezvousError),
    /// Signals cannot be handled.
    #[error(transparent)]
    Signals(#[from] SegmentError),
}
