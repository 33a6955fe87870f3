//! What tests skip because this machine does not allow or have it. They pass all the same, and what a passed test prints is not shown.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

#[cfg(test)]
#[path = "../../tests/support/skipped.rs"]
mod in_a_test;

/// Names the file to which `tests/support/skipped.rs` appends each reason, as a line.
const VARIABLE: &str = "SHOAL_TEST_SKIPPED";

/// The reasons of the tests that some commands run.
pub(crate) struct Skipped(NamedTempFile);

impl Skipped {
    pub(crate) fn new() -> Result<Self> {
        let file = NamedTempFile::new();
        Ok(Self(file.with_context(|| format!("no file for what tests skip can be made in {}", std::env::temp_dir().display()))?))
    }

    /// Let the tests that `command` will run say what they skip.
    pub(crate) fn hear(&self, command: &mut Command) {
        command.env(VARIABLE, self.0.path());
    }

    /// Every reason so far, with how often it was given; `None` without any.
    pub(crate) fn summary(&self) -> Option<String> {
        let reasons = std::fs::read_to_string(self.0.path()).unwrap_or_default();
        let mut counts = BTreeMap::new();
        reasons.lines().for_each(|reason| *counts.entry(reason).or_insert(0) += 1);
        let all: i32 = counts.values().sum();
        let lines: String = counts.iter().map(|(reason, count)| format!("\n  skipped {count:>3} x {reason}")).collect();
        (all > 0).then(|| format!("\nSkipped on this machine, by tests that passed all the same ({all}):{lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_skips_is_told_although_it_passes() {
        let skipped = Skipped::new().unwrap();
        assert_eq!(skipped.summary(), None);
        for _ in 0..2 {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "skipped::tests::a_test_that_skips", "--ignored"]);
            skipped.hear(&mut command);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        let expected = "\nSkipped on this machine, by tests that passed all the same (2):\n  skipped   2 x no namespace";
        assert_eq!(skipped.summary().unwrap(), expected);
    }

    #[test]
    #[ignore = "the test above runs it in a process of its own"]
    fn a_test_that_skips() {
        in_a_test::because("no namespace");
    }
}
