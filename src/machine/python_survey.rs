//! What `shoal doctor` says about Python: which one was linked, which one a run would take, and its packages.

use std::collections::BTreeMap;

use super::doctor::Finding;
use super::{LinkedPython, Python, PythonError};
use crate::shell::word;

/// What `cargo xtask setup` installs; `xtask/python/requirements.txt` pins the same version.
const GYMNASIUM: &str = "gymnasium[classic-control,box2d,mujoco]==1.4.0";
/// Packages that the environments need in which most people train.
const PACKAGES: [&str; 4] = ["gymnasium", "numpy", "mujoco", BOX2D];
const BOX2D: &str = "box2d";
/// What installs packages, and is itself one. uv makes environments without it.
const PIP: &str = "pip";

/// The Python of this machine, as far as a run is concerned.
#[derive(Debug)]
pub struct PythonSurvey {
    linked: Option<LinkedPython>,
    /// The interpreter, and the versions of those of [`PACKAGES`] and of pip that it has.
    found: Result<(Python, BTreeMap<String, String>), PythonError>,
}

impl PythonSurvey {
    /// Looks for the interpreter that a run takes if its configuration names none, and asks it for its packages.
    pub fn detect() -> Self {
        let found = Python::find("").and_then(|python| {
            let versions = python.versions(&[&PACKAGES[..], &[PIP]].concat())?;
            Ok((python, versions))
        });
        Self { linked: LinkedPython::detect(), found }
    }

    /// The finding whether there is an interpreter that fits.
    pub(super) fn interpreter(&self) -> Finding {
        match (&self.linked, &self.found) {
            (None, _) => Finding::warning(
                "python",
                "this program was built without it: only native environments run".to_owned(),
                "cargo xtask setup && cargo build --release",
            ),
            (Some(linked), Ok((python, _))) => {
                let program = python.executable.display();
                Finding::ok("python", format!("{} of {program}; linked with {} of {}", python.version, linked.abi, linked.home))
            }
            (Some(linked), Err(error)) => {
                let fact = format!("linked with {} of {}, but environments find none: {error}", linked.abi, linked.home);
                Finding::warning("python", fact, "cargo xtask setup")
            }
        }
    }

    /// The finding whether the interpreter has the packages of Gymnasium.
    pub(super) fn packages(&self) -> Finding {
        const TOPIC: &str = "python packages";
        let Ok((python, versions)) = &self.found else {
            return Finding::ok(TOPIC, "none, since there is no Python".to_owned());
        };
        let list = |names: Vec<String>| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let installed = list(versions.iter().filter(|(name, _)| *name != PIP).map(|(name, version)| format!("{name} {version}")).collect());
        let has_box2d = has_box2d(python, std::env::consts::ARCH);
        let expected = PACKAGES.into_iter().filter(|name| has_box2d || *name != BOX2D);
        let missing: Vec<String> = expected.filter(|name| !versions.contains_key(*name)).map(str::to_owned).collect();
        if missing.is_empty() {
            return Finding::ok(TOPIC, installed);
        }
        let gymnasium = if has_box2d { GYMNASIUM.to_owned() } else { GYMNASIUM.replace("box2d,", "") };
        let program = word(&python.executable);
        let install =
            if versions.contains_key(PIP) { format!("{program} -m pip install") } else { format!("uv pip install --python {program}") };
        Finding::warning(TOPIC, format!("{installed}; missing: {}", list(missing)), format!("{install} \"{gymnasium}\""))
    }

    /// A survey in which nothing is amiss, whatever this machine is like.
    #[cfg(test)]
    pub(super) fn sound() -> Self {
        let python = Python {
            executable: "/venv/bin/python".into(),
            version: "3.11.7".into(),
            abi: "3.11".into(),
            prefix: "/venv".into(),
            package_folders: Vec::new(),
            utf8_mode: false,
            requested: String::new(),
        };
        let versions = PACKAGES.into_iter().chain([PIP]).map(|name| (name.to_owned(), "1.0".to_owned())).collect();
        Self { linked: Some(LinkedPython { abi: "3.11", home: "/usr" }), found: Ok((python, versions)) }
    }
}

/// Whether Box2D is published for `python` on `processor` as a binary, which need not be compiled.
fn has_box2d(python: &Python, processor: &str) -> bool {
    let minor = python.version.split('.').nth(1).and_then(|number| number.parse::<u32>().ok());
    processor == "x86_64" && minor.is_none_or(|minor| minor < 14)
}

#[cfg(test)]
mod tests {
    use super::super::doctor::Severity;
    use super::*;

    #[test]
    fn a_missing_package_comes_with_the_command_of_the_interpreter_that_lacks_it() {
        let mut survey = PythonSurvey::sound();
        assert_eq!(survey.packages().verdict, Severity::Ok);
        if let Ok((python, versions)) = &mut survey.found {
            python.executable = "/my venv/bin/python".into();
            versions.remove("mujoco");
        }
        let finding = survey.packages();
        assert_eq!(finding.verdict, Severity::Warning);
        assert!(finding.fact.ends_with("missing: mujoco") && !finding.fact.contains(PIP), "{finding}");
        assert!(finding.fix.unwrap().starts_with("'/my venv/bin/python' -m pip install \"gymnasium["));
        if let Ok((_, versions)) = &mut survey.found {
            versions.remove(PIP);
        }
        assert!(survey.packages().fix.unwrap().starts_with("uv pip install --python '/my venv/bin/python' \"gymnasium["));
    }

    #[test]
    fn box2d_is_neither_missed_nor_advised_where_it_would_have_to_be_compiled() {
        let mut survey = PythonSurvey::sound();
        if let Ok((python, versions)) = &mut survey.found {
            python.version = "3.14.0".to_owned();
            versions.remove(BOX2D);
        }
        assert_eq!(survey.packages().verdict, Severity::Ok);
        if let Ok((_, versions)) = &mut survey.found {
            versions.remove("mujoco");
        }
        let finding = survey.packages();
        assert!(finding.fact.ends_with("missing: mujoco"), "{finding}");
        assert!(finding.fix.unwrap().contains("\"gymnasium[classic-control,mujoco]=="));
        let (python, _) = PythonSurvey::sound().found.unwrap();
        assert!(has_box2d(&python, "x86_64") && !has_box2d(&python, "aarch64"));
    }

    #[test]
    fn an_interpreter_that_does_not_fit_is_a_warning_because_native_environments_run() {
        let mut survey = PythonSurvey::sound();
        survey.found = Err(PythonError::NotFound);
        assert_eq!(survey.interpreter().verdict, Severity::Warning);
        survey.linked = None;
        assert!(survey.interpreter().fact.contains("built without it"));
    }

    #[test]
    fn the_version_named_here_is_the_one_that_the_set_up_installs() {
        let requirements = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/xtask/python/requirements.txt")).unwrap();
        let (_, version) = GYMNASIUM.split_once("==").unwrap();
        for wanted in [GYMNASIUM.replace("box2d,", ""), format!("gymnasium[{BOX2D}]=={version}; platform_machine == \"x86_64\"")] {
            assert!(requirements.lines().any(|line| line == wanted), "{wanted} is not in {requirements}");
        }
        // Where there is none, pip would install nothing at all.
        assert!(requirements.lines().any(|line| line.starts_with("box2d==") && line.ends_with("; platform_machine == \"x86_64\"")));
        let faults = include_str!("../environments/python/faults.py");
        assert!(faults.contains(&format!("GYMNASIUM = \"{GYMNASIUM}\"")));
    }
}
