//! `replay`.
