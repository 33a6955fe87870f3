//! `algorithms`.
