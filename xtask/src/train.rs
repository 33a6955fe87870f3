//! `cargo xtask train`: from a fresh checkout to a training run.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::libtorch::{self, Devices, Libtorch, Profile};
use crate::report::say;
use crate::{prerequisites, python, workspace};

const DEFAULT_CONFIG: &str = "configs/cartpole_dqn.toml";

/// Sets up, builds, and becomes `shoal train`: it owns the terminal, and its exit status is this program's.
pub(crate) fn train(config: Option<PathBuf>, arguments: Vec<OsString>) -> Result<()> {
    let config = config.unwrap_or_else(default_config);
    check_config(&config)?;
    let found = libtorch::find()?;
    prerequisites::require(prerequisites::for_build(&[Profile::Release], found.is_none()))?;
    let libtorch = found.map_or_else(|| libtorch::provide(Devices::Cpu), Ok)?;
    let environments = python::provide()?;
    let libtorch = libtorch.loaded_on_demand(Profile::Release);
    let program = build_program(&libtorch, &environments)?;
    let mut command = Command::new(&program);
    libtorch.hide_other_environment(&mut command);
    command.arg("train").arg(&config).args(arguments);
    Err(command.exec()).with_context(|| format!("{} does not start", program.display()))
}

/// The default configuration, by a short relative path if possible: the run's own messages show it.
fn default_config() -> PathBuf {
    if Path::new(DEFAULT_CONFIG).is_file() { PathBuf::from(DEFAULT_CONFIG) } else { workspace::root().join(DEFAULT_CONFIG) }
}

/// Fails unless `config` is a file: a mistyped name must not cost the minutes of a build.
fn check_config(config: &Path) -> Result<()> {
    if config.is_file() {
        return Ok(());
    }
    let folder = workspace::root().join("configs");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .map(|name| format!("\n  configs/{name}"))
        .collect();
    names.sort();
    let known = if names.is_empty() { "\n  none".to_owned() } else { names.concat() };
    bail!("there is no configuration file {}. The configurations that come with Shoal are:{known}", config.display())
}

/// Builds `shoal` in release mode, with cargo's own progress on the terminal, and returns where cargo put it. Each of the other programs
/// would be linked anew from the whole library, and `shoal` has all their commands.
fn build_program(libtorch: &Libtorch, environments: &python::Environments) -> Result<PathBuf> {
    say("Building in release mode: several minutes the first time, seconds later.");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--package", "shoal", "--bin", "shoal"]);
    command.args(environments.features());
    libtorch.hand_to(&mut command);
    let words = [&["cargo build --release --bin shoal"][..], environments.features()].concat().join(" ");
    let failure = format!("the build failed; its messages are above. Repeat it alone with:  {words}");
    workspace::built_path(&mut command, program_executable, &failure)?.context("cargo built no program `shoal`")
}

/// The path of the program `shoal`, if this message of cargo has it: the library of that name is no executable.
fn program_executable(message: &Value) -> Option<&str> {
    let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == "shoal";
    is_it.then(|| message["executable"].as_str()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages_of_cargo() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"shoal"},"executable":"/t/release/shoal"}"#;
        assert_eq!(workspace::first_path(message, program_executable), Some(PathBuf::from("/t/release/shoal")));
        for other in [
            r#"{"reason":"compiler-artifact","target":{"name":"inspect"},"executable":"/t/release/inspect"}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"shoal"},"executable":null}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "not a message",
        ] {
            assert_eq!(workspace::first_path(other, program_executable), None, "{other}");
        }
    }

    #[test]
    fn a_mistyped_configuration_is_told_before_the_build() {
        let error = check_config(Path::new("configs/no_such_file.toml")).unwrap_err();
        assert!(error.to_string().contains("no configuration file configs/no_such_file.toml"), "{error}");
    }
}
