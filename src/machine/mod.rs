//! `machine`.
