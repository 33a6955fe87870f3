//! Which Python exception an error becomes.

use std::io::ErrorKind;

use pyo3::exceptions::{PyFileNotFoundError, PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use shoal::replay::SampleError;
use shoal::segment::SegmentError;
use shoal::standalone::StandaloneError;

/// The exception for `error`.
pub(crate) fn exception(py: Python<'_>, error: &StandaloneError) -> PyErr {
    let text = error.to_string();
    match error {
        StandaloneError::OutOfRange { .. }
        | StandaloneError::Layout(_)
        | StandaloneError::NoFields
        | StandaloneError::Field { .. }
        | StandaloneError::NotPrioritized
        | StandaloneError::PrioritiesOfSteps
        | StandaloneError::NotFinite { .. }
        | StandaloneError::Priority { .. }
        | StandaloneError::Segment(SegmentError::DescriptionTooLong { .. }) => PyValueError::new_err(text),
        StandaloneError::Index { .. } | StandaloneError::EmptySlot { .. } | StandaloneError::FrameGone { .. } => {
            PyIndexError::new_err(text)
        }
        StandaloneError::Segment(SegmentError::NoRoom { .. }) => PyMemoryError::new_err(text),
        StandaloneError::Segment(SegmentError::Open { .. }) | StandaloneError::Gone { .. } => PyFileNotFoundError::new_err(text),
        StandaloneError::Segment(SegmentError::Create { .. } | SegmentError::Refused { .. } | SegmentError::System { .. }) => {
            PyOSError::new_err(text)
        }
        StandaloneError::Segment(
            SegmentError::OtherPidNamespace { .. }
            | SegmentError::OtherTimeNamespace { .. }
            | SegmentError::UnknownProcesses
            | SegmentError::NotOurs { .. },
        ) => named(py, "ReplayError", text),
        StandaloneError::Segment(_) | StandaloneError::Options { .. } | StandaloneError::Corrupt { .. } => named(py, "CorruptError", text),
        StandaloneError::File { source, .. } if source.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        StandaloneError::File { .. } => PyOSError::new_err(text),
        StandaloneError::Sample(SampleError::Empty) | StandaloneError::AllZero => named(py, "EmptyError", text),
        StandaloneError::Stale { .. } => named(py, "StaleIndexError", text),
        StandaloneError::RateLimited { .. } | StandaloneError::Busy => named(py, "RateLimitError", text),
        StandaloneError::Stopped | StandaloneError::Closed | StandaloneError::NobodyDraws { .. } | StandaloneError::RunEnded => {
            named(py, "StoppedError", text)
        }
        StandaloneError::Interrupted => PyKeyboardInterrupt::new_err(text),
        _ => named(py, "ReplayError", text),
    }
}

/// An exception of the package.
pub(crate) fn named(py: Python<'_>, name: &str, text: String) -> PyErr {
    match py.import("shoal.errors").and_then(|module| module.getattr(name)).and_then(|class| class.call1((text,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
