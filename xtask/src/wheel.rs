//! `cargo xtask wheel`: the Python package as one file, for every Linux with this processor and a C library of 2014 or later.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use crate::python::{self, Environments};
use crate::report::say;
use crate::{package, workspace};

/// Where the file goes, in the workspace's target folder.
const FOLDER: &str = "wheels";
/// Largest file that a newcomer should have to fetch.
const LIMIT_BYTES: u64 = 25 << 20;

/// Builds it and says where it is.
pub(crate) fn wheel() -> Result<()> {
    let Environments::InPython(base) = python::provide()? else {
        bail!("there is no Python to build the package with: `cargo xtask doctor` says what is missing")
    };
    let programs = package::provide(&base)?;
    package::install(&programs, "requirements-wheel.txt")?;
    let folder = package::target(&workspace::root()).join(FOLDER);
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = package::command(&programs, "maturin");
    // zig links against an old C library, so that the file serves older systems than this one.
    command.args(["build", "--release", "--zig", "--compatibility", "manylinux2014", "--out"]).arg(&folder);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)))?);
    ensure!(command.status()?.success(), "the wheel could not be built");
    let files: Vec<PathBuf> = std::fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    let [wheel] = files.as_slice() else { bail!("{} holds {} files, and one was to be built", folder.display(), files.len()) };
    let bytes = std::fs::metadata(wheel)?.len();
    ensure!(bytes <= LIMIT_BYTES, "{} has {bytes} bytes, more than {LIMIT_BYTES}", wheel.display());
    say(format!("{} ({:.1} MB)", wheel.display(), bytes as f64 / 1e6));
    Ok(())
}
