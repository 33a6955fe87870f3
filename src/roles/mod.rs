//! `roles`.
