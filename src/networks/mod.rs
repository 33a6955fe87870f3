//! `networks`.
