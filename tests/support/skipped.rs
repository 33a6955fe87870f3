//! The message of a test that cannot run on this machine.
#![allow(dead_code, unreachable_pub, reason = "on some machines a test binary has nothing to skip")]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that takes the reasons for the summary of `cargo xtask test`: what a passed test prints is not shown.
const REASONS: &str = "SHOAL_TEST_SKIPPED";

/// Say why a test is skipped: it passes all the same.
pub fn because(why: impl Display) {
    let line = format!("{why}\n");
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(reasons) = std::env::var_os(REASONS) {
        // In one write: other tests append to it at the same time.
        let _ = OpenOptions::new().append(true).open(reasons).and_then(|mut reasons| reasons.write_all(line.as_bytes()));
    }
}
