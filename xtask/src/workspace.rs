//! Where this checkout lies, and the cargo that it is built with.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The file by which a folder of this checkout makes cargo use it: `.cargo/config.toml` includes it when it is there.
pub(crate) const CARGO_SETTINGS: &str = "cargo-settings.toml";

/// The folder of the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    // Cargo names the manifest at run time; the compiled-in value serves a binary that is started by hand.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    Path::new(&manifest).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The cargo that runs this program, working in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}

/// Runs `build`, a build of cargo, with its progress and the compiler's messages on the terminal, and returns the first path that `path_in`
/// finds in what cargo tells programs. `failure` is the error if the build fails.
pub(crate) fn built_path(build: &mut Command, path_in: impl Fn(&Value) -> Option<&str>, failure: &str) -> Result<Option<PathBuf>> {
    let built = build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output().context("cargo does not start")?;
    ensure!(built.status.success(), "{failure}");
    Ok(first_path(&String::from_utf8_lossy(&built.stdout), path_in))
}

/// The first path that `path_in` finds in cargo's `messages`, of which each line is one.
pub(crate) fn first_path(messages: &str, path_in: impl Fn(&Value) -> Option<&str>) -> Option<PathBuf> {
    messages.lines().find_map(|line| path_in(&serde_json::from_str(line).ok()?).map(PathBuf::from))
}

/// Writes the file by a rename, so that a cargo that reads it at this moment sees all of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let draft = path.with_extension(std::process::id().to_string());
    fs::write(&draft, text).and_then(|()| fs::rename(&draft, path)).with_context(|| format!("{} cannot be written", path.display()))
}
