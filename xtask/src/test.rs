//! `cargo xtask test`: everything that must hold before a change is merged.

use std::process::Command;

use anyhow::{Result, bail};

use crate::libtorch::{self, Devices, Libtorch, Profile};
use crate::python::{self, Environments};
use crate::report::say;
use crate::stages::{self, Stage};
use crate::{package, prerequisites, workspace};

/// One stage as it is written down: its name, what it needs, its arguments and a variable it sets.
struct Definition {
    name: &'static str,
    needs: Needs,
    arguments: &'static str,
    variable: Option<(&'static str, &'static str)>,
}

/// What a stage needs beside cargo. `--fast` keeps those that need nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Libtorch,
    /// The environment of the Python package, and the program that runs in it.
    Package(&'static str),
}

const fn stage(name: &'static str, arguments: &'static str) -> Definition {
    Definition { name, needs: Needs::Nothing, arguments, variable: None }
}

const fn with_libtorch(name: &'static str, arguments: &'static str) -> Definition {
    Definition { name, needs: Needs::Libtorch, arguments, variable: None }
}

const fn package(name: &'static str, program: &'static str, arguments: &'static str) -> Definition {
    Definition { name, needs: Needs::Package(program), arguments, variable: None }
}

/// The cheap stages come first, so that a slip is found in seconds.
const DEFINITIONS: [Definition; 18] = [
    stage("format", "fmt --all --check"),
    stage("example-format", "fmt --manifest-path examples/own_algorithm/Cargo.toml --check"),
    stage("lints-without-libtorch", "clippy --workspace --all-targets --no-default-features -- -D warnings"),
    stage("tests-without-libtorch", "nextest run --no-fail-fast --workspace --exclude shoal-models --no-default-features"),
    // The models try every order of the protocol's accesses. They use neither libtorch nor a feature of the library.
    stage("models", "nextest run --no-fail-fast --package shoal-models --no-default-features"),
    // These tests kill a process after each of its instructions, and an optimised build has other instructions.
    stage("kills-in-release", "nextest run --no-fail-fast --config tests/killed/as_released.toml --no-default-features --test killed"),
    with_libtorch("lints", "clippy --workspace --all-targets --features shoal/mp4 -- -D warnings"),
    // In one process: if libtorch is loaded at the start, a process for each test would take longer than the tests. One test after the
    // other, since some fork, and with libtorch other threads could hold any lock at that moment.
    with_libtorch("unit-tests", "test --no-fail-fast --workspace --exclude shoal-models --lib --features shoal/mp4 -- --test-threads=1"),
    with_libtorch("tests", "nextest run --no-fail-fast --workspace --exclude shoal-models --features shoal/mp4 --bins --test=*"),
    package("package-format", "cargo", "fmt --check"),
    package("package-style", "ruff", "check ."),
    package("package-lints", "cargo", "clippy --features pyo3/extension-module -- -D warnings"),
    // What the package's tests start: any test of the library is built with all its programs, which the full set has built above.
    with_libtorch("package-programs", "test --no-run --workspace --exclude shoal-models --features shoal/mp4 --test architecture"),
    package("package-build", "maturin", "develop --quiet"),
    package("package-tests", "python", "-m pytest"),
    package("documentation-site", "python", "../docs/site/build.py ../target/site"),
    // Without the models, as above: they depend on crates with other features, for which nearly everything would be compiled again.
    with_libtorch("documentation-tests", "test --workspace --exclude shoal-models --doc --features shoal/mp4"),
    Definition {
        name: "documentation",
        needs: Needs::Libtorch,
        arguments: "doc --workspace --no-deps --features shoal/mp4",
        variable: Some(("RUSTDOCFLAGS", "-D warnings")),
    },
];

/// The names that `--only` takes.
pub(crate) fn stage_names() -> Vec<&'static str> {
    DEFINITIONS.iter().map(|definition| definition.name).collect()
}

/// The stages to run. Unless the compiler `is_named` by Cargo.toml, its warnings are no failures, and no stage checks the format: each
/// release of Rust has lints and a format of its own.
fn choose(fast: bool, only: Option<&str>, is_named: bool) -> Vec<Definition> {
    let is_chosen = |definition: &Definition| match only {
        // These tests load and start what the other two build.
        Some("package-tests") => ["package-programs", "package-build", "package-tests"].contains(&definition.name),
        Some(name) => definition.name == name,
        None if !is_named && definition.arguments.starts_with("fmt ") => false,
        // The full set leaves that stage out: its tests run with libtorch as well, except for those of what a build without libtorch,
        // or without MP4, refuses.
        None if fast => definition.needs == Needs::Nothing,
        None => definition.name != "tests-without-libtorch",
    };
    let tolerant = |definition: Definition| Definition {
        arguments: definition.arguments.trim_end_matches(" -- -D warnings"),
        variable: definition.variable.filter(|(_, value)| *value != "-D warnings"),
        ..definition
    };
    DEFINITIONS.into_iter().filter(is_chosen).map(|definition| if is_named { definition } else { tolerant(definition) }).collect()
}

/// Whether `version`, as cargo says it, is of the release of Rust that Cargo.toml names.
fn is_named(version: &str) -> bool {
    let patch = version.split(' ').nth(1).and_then(|number| number.strip_prefix(concat!(env!("CARGO_PKG_RUST_VERSION"), ".")));
    patch.is_some_and(|patch| patch.parse::<u32>().is_ok())
}

/// Sets up what the chosen stages need, then runs them.
pub(crate) fn test(fast: bool, only: Option<&str>) -> Result<()> {
    let version = workspace::cargo().arg("--version").output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())?;
    if !is_named(&version) && only.is_none() {
        let named = env!("CARGO_PKG_RUST_VERSION");
        say(format!(
            "`{version}` is not of Rust {named}, which Cargo.toml names: its warnings are no failures, and the format is not checked."
        ));
    }
    let chosen = choose(fast, only, is_named(&version));
    let set_up = if chosen.iter().any(|definition| definition.needs != Needs::Nothing) {
        let found = libtorch::find()?;
        // One stage builds a part of it, which is not known.
        let profiles: &[Profile] = if only.is_none() { &[Profile::Dev] } else { &[] };
        prerequisites::require(prerequisites::for_build(profiles, found.is_none()))?;
        let libtorch = found.map_or_else(|| libtorch::provide(Devices::Cpu), Ok)?;
        let environments = python::provide()?;
        Some((libtorch.loaded_on_demand(Profile::Dev), environments))
    } else {
        prerequisites::require(only.is_none().then(prerequisites::shared_memory))?;
        None
    };
    let environments = set_up.as_ref().map(|(_, environments)| environments);
    // Without a Python the package is left out; `python::provide` has said so already.
    let programs = match environments {
        Some(Environments::InPython(folder)) if chosen.iter().any(|definition| matches!(definition.needs, Needs::Package(_))) => {
            match package::obstacle(folder) {
                Some(obstacle) if only.is_some() => bail!("{obstacle}"),
                Some(obstacle) => {
                    say(format!("The Python package is left out: {obstacle}"));
                    None
                }
                None => Some(package::provide(folder)?),
            }
        }
        _ => None,
    };
    check_that_something_is_left(only, &chosen, environments)?;
    let nextest = has_nextest();
    if !nextest && chosen.iter().any(|definition| definition.arguments.starts_with("nextest")) {
        say("cargo-nextest is not installed: tests run under `cargo test`, one after the other, and nothing ends one that hangs.");
    }
    let stages = chosen.iter().filter_map(|definition| {
        let command = match definition.needs {
            Needs::Package(program) => {
                let mut command = package::command(programs.as_ref()?, program);
                command.args(definition.arguments.split(' '));
                command
            }
            _ => command(definition, nextest, set_up.as_ref()),
        };
        Some(Stage { name: definition.name, command })
    });
    stages::run(stages.collect(), "cargo xtask test --only")
}

/// Fails if the one stage that was asked for is left out: the command would succeed without having run it.
fn check_that_something_is_left(only: Option<&str>, chosen: &[Definition], environments: Option<&Environments>) -> Result<()> {
    let needs_python = || chosen.iter().any(|definition| matches!(definition.needs, Needs::Package(_)));
    match (only, environments) {
        (Some(stage), Some(Environments::NativeAlone(obstacle))) if needs_python() => {
            bail!("the stage `{stage}` needs a Python to embed: {obstacle}")
        }
        _ => Ok(()),
    }
}

fn command(definition: &Definition, nextest: bool, set_up: Option<&(Libtorch, Environments)>) -> Command {
    let mut command = workspace::cargo();
    let mut words = arguments(definition.arguments, nextest);
    if let Some((libtorch, environments)) = set_up {
        libtorch.hand_to(&mut command);
        libtorch.hide_other_environment(&mut command);
        if definition.needs == Needs::Libtorch {
            // Features are arguments of cargo: those of the compiler come after `--`.
            let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            words.splice(end..end, environments.features().iter().copied());
        }
    }
    command.args(words).envs(definition.variable);
    command
}

/// Without cargo-nextest the same tests run under `cargo test`. Documentation tests have a stage of their own, and a
/// benchmark is no test. In one program one test runs after the other, since some fork, and another thread could hold a
/// lock at that moment: only the models never do.
fn arguments(written: &str, nextest: bool) -> Vec<&str> {
    let Some(rest) = written.strip_prefix("nextest run ").filter(|_| !nextest) else { return written.split(' ').collect() };
    let words: Vec<&str> = rest.split(' ').collect();
    let kinds: &[&str] = if rest.contains("--test") { &[] } else { &["--lib", "--bins", "--tests", "--examples"] };
    let threads: &[&str] = if rest.contains("--package shoal-models") { &[] } else { &["--", "--test-threads=1"] };
    [&["test"][..], kinds, &words[..], threads].concat()
}

fn has_nextest() -> bool {
    workspace::cargo().args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Obstacle;

    #[test]
    fn the_same_tests_run_without_nextest() {
        assert_eq!(arguments("nextest run --workspace", true), ["nextest", "run", "--workspace"]);
        let without = |written| arguments(written, false).join(" ");
        assert_eq!(without("nextest run --workspace"), "test --lib --bins --tests --examples --workspace -- --test-threads=1");
        assert_eq!(without("nextest run --test one --test two"), "test --test one --test two -- --test-threads=1");
        assert_eq!(without("nextest run --bins --test=*"), "test --bins --test=* -- --test-threads=1");
        assert_eq!(without("nextest run --package shoal-models"), "test --lib --bins --tests --examples --package shoal-models");
        assert_eq!(without("fmt --all --check"), "fmt --all --check");
    }

    #[test]
    fn warnings_are_failures_for_the_release_of_rust_that_is_named_alone() {
        let named = env!("CARGO_PKG_RUST_VERSION");
        assert!(is_named(&format!("cargo {named}.0 (f2d3ce0bd 2026-03-21)")) && is_named(&format!("cargo {named}.1")));
        let nightly = format!("cargo {named}.0-nightly (f2d3ce0bd 2026-03-21)");
        for other in [nightly.as_str(), "cargo 1.999.0 (f2d3ce0bd 2026-11-03)", ""] {
            assert!(!is_named(other), "{other}");
        }
        let fails = |definition: &&Definition| definition.arguments.contains("-D warnings") || definition.variable.is_some();
        let formats = |definition: &&Definition| definition.arguments.starts_with("fmt ");
        for (is_named, expected) in [(true, (4, 3)), (false, (0, 0))] {
            let chosen = choose(false, None, is_named);
            assert_eq!((chosen.iter().filter(fails).count(), chosen.iter().filter(formats).count()), expected);
        }
        assert_eq!(choose(false, Some("format"), false).len(), 1, "whoever asks for a stage gets it");
    }

    #[test]
    fn the_tests_of_the_package_are_repeated_with_what_they_load_and_start() {
        let names: Vec<_> = choose(false, Some("package-tests"), true).iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["package-programs", "package-build", "package-tests"]);
    }

    #[test]
    fn a_machine_without_a_python_to_embed_builds_without_its_feature() {
        let without = (Libtorch::Fetched, Environments::NativeAlone(Obstacle::missing("there is none")));
        let lints = DEFINITIONS.iter().find(|definition| definition.name == "lints").unwrap();
        let command = command(lints, true, Some(&without));
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let expected = "clippy --workspace --all-targets --features shoal/mp4 --no-default-features --features torch -- -D warnings";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn an_active_environment_is_left_out_unless_its_pytorch_is_linked() {
        let tests = DEFINITIONS.iter().find(|definition| definition.name == "tests").unwrap();
        let leaves_out = |libtorch| {
            let set_up = (libtorch, Environments::InPython("venv".into()));
            let command = command(tests, true, Some(&set_up));
            command.get_envs().any(|(name, value)| name == "VIRTUAL_ENV" && value.is_none())
        };
        assert!(leaves_out(Libtorch::Fetched) && leaves_out(Libtorch::Chosen("/opt/libtorch".into())));
        assert!(!leaves_out(Libtorch::Python));
    }

    #[test]
    fn a_stage_that_is_asked_for_and_left_out_is_no_success() {
        let without = Environments::NativeAlone(Obstacle::missing("there is none"));
        let with = Environments::InPython("venv".into());
        let check = |name, environments| check_that_something_is_left(Some(name), &choose(false, Some(name), true), Some(environments));
        let error = check("package-tests", &without).unwrap_err().to_string();
        assert!(error.starts_with("the stage `package-tests` needs a Python to embed: there is none. "), "{error}");
        check("package-tests", &with).unwrap();
        check("lints", &without).unwrap();
    }

    #[test]
    fn a_stage_without_libtorch_does_not_ask_for_its_feature() {
        for definition in DEFINITIONS.iter().filter(|definition| definition.needs == Needs::Nothing && !definition.name.ends_with("format"))
        {
            assert!(definition.arguments.contains("--no-default-features"), "{}", definition.name);
        }
    }
}
