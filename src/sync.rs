//! The only place that names atomics and futex waits.
