//! Environments in Python and games of the Atari 2600: steps of them in this process, and whole runs of the real programs.
//!
//! A test that needs an interpreter in its process runs once more, alone, in one that may have it.
//! `cargo nextest run --test python start::` runs the tests of one file.
#![cfg(feature = "python")]

mod atari_games;
mod atari_parity;
mod atari_runs;
mod environments;
mod runs;
mod start;

#[path = "../support"]
mod support {
    pub(crate) mod programs;
    pub(crate) mod python;
    pub(crate) mod recording;
    pub(crate) mod skipped;
}
