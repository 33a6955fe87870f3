//! The message of a test that cannot run on this machine.
#![allow(dead_code, unreachable_pub, reason = "on some machines a test binary has nothing to skip")]

use std::fmt::Display;
use std::io::Write;

/// Say why a test is skipped: it passes all the same.
pub fn because(why: impl Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
