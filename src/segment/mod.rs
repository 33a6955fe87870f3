//! `segment`.
