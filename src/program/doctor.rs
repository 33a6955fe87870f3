//! `shoal doctor`: what the machine offers, and what is missing.

use std::fmt;

use clap::Args;
use serde::Serialize;

use super::end::{Code, FAILURE, SUCCESS};
use super::print::print;
use crate::machine::{Machine, PythonSurvey, doctor};

/// Print what the machine offers, what is missing, and the commands that fix it.
#[derive(Args)]
pub(crate) struct Doctor {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The findings, one a line.
#[derive(Serialize)]
#[serde(transparent)]
struct Findings(Vec<doctor::Finding>);

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|finding| writeln!(formatter, "{finding}"))
    }
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<Code, anyhow::Error> {
        let findings = Findings(doctor::report(&Machine::detect(), &PythonSurvey::detect()));
        print(&findings, self.json)?;
        let has_problem = findings.0.iter().any(|finding| finding.verdict == doctor::Severity::Problem);
        Ok(if has_problem { FAILURE } else { SUCCESS })
    }
}
