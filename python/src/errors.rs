//! Turns errors into Python exceptions.

use std::io::ErrorKind;

use pyo3::exceptions::{PyFileNotFoundError, PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use shoal::replay::SampleError;
use shoal::segment::SegmentError;
use shoal::standalone::ReplayError;

/// The exception for `error`.
pub(crate) fn exception(py: Python<'_>, error: &ReplayError) -> PyErr {
    let text = error.to_string();
    match error {
        ReplayError::OutOfRange { .. }
        | ReplayError::Layout(_)
        | ReplayError::NoFields
        | ReplayError::Field { .. }
        | ReplayError::NotPrioritized { .. }
        | ReplayError::PrioritiesOfSteps
        | ReplayError::NotFinite { .. }
        | ReplayError::Priority { .. }
        | ReplayError::Segment(SegmentError::DescriptionTooLong { .. }) => PyValueError::new_err(text),
        ReplayError::Index { .. } | ReplayError::EmptySlot { .. } | ReplayError::FrameGone { .. } => PyIndexError::new_err(text),
        ReplayError::Segment(SegmentError::NoRoom { .. } | SegmentError::NoMemory { .. }) => PyMemoryError::new_err(text),
        ReplayError::Segment(SegmentError::Open { .. }) | ReplayError::Gone { .. } => PyFileNotFoundError::new_err(text),
        ReplayError::Segment(SegmentError::Create { .. } | SegmentError::Refused { .. } | SegmentError::System { .. }) => {
            PyOSError::new_err(text)
        }
        ReplayError::Segment(
            SegmentError::OtherPidNamespace { .. }
            | SegmentError::OtherTimeNamespace { .. }
            | SegmentError::UnknownProcesses
            | SegmentError::NoPidfd { .. }
            | SegmentError::NotOurs { .. },
        ) => named(py, "ReplayError", text),
        ReplayError::Segment(_) | ReplayError::Options { .. } | ReplayError::Corrupt { .. } => named(py, "CorruptError", text),
        ReplayError::File { source, .. } if source.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        ReplayError::File { .. } => PyOSError::new_err(text),
        ReplayError::Sample(SampleError::Empty) | ReplayError::AllZero => named(py, "EmptyError", text),
        ReplayError::Stale { .. } => named(py, "StaleIndexError", text),
        ReplayError::RateLimited { .. } | ReplayError::Busy => named(py, "RateLimitError", text),
        ReplayError::Stopped | ReplayError::Closed | ReplayError::NobodyDraws { .. } | ReplayError::RunEnded => {
            named(py, "StoppedError", text)
        }
        ReplayError::Interrupted => PyKeyboardInterrupt::new_err(text),
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
