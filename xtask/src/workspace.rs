//! Where this checkout lies, and the cargo that it is built with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

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
