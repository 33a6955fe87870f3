//! Virtual environments of Python: made with or without `ensurepip`, and filled by pip.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::report::say;

/// Holds the requirements that were installed; whoever has an environment made writes it last.
pub(crate) const COMPLETE: &str = "shoal-requirements.txt";

const INSTALL: [&str; 3] = ["install", "--disable-pip-version-check", "--quiet"];

/// Whether all of `requirements`, the text of a file, was installed in `folder`.
pub(crate) fn is_complete(folder: &Path, requirements: &str) -> bool {
    std::fs::read_to_string(folder.join(COMPLETE)).is_ok_and(|installed| installed == requirements)
}

/// The interpreter in `folder`.
pub(crate) fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Whether `python` runs `code` to its end.
pub(crate) fn runs(python: &Path, code: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", code]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for_itself(&mut command).status().is_ok_and(|status| status.success())
}

/// Makes `folder` an environment of `python` that has pip. Where `anew`, what is there is removed first. `failure` is what is said when a
/// command fails, whose own message stands above it.
pub(crate) fn make(python: &Path, folder: &Path, anew: bool, failure: &str) -> Result<()> {
    let has_ensurepip = runs(python, "import ensurepip");
    let mut venv = Command::new(python);
    venv.args(["-m", "venv"]);
    if anew {
        venv.arg("--clear");
    }
    if !has_ensurepip {
        venv.arg("--without-pip");
    }
    run(venv.arg(folder), failure)?;
    if has_ensurepip {
        return Ok(());
    }
    // Where distributions leave out `ensurepip`, the pip outside brings its like along.
    let mut pip = Command::new(python);
    run(pip.args(["-m", "pip", "--python"]).arg(interpreter(folder)).args(INSTALL).arg("pip"), failure)
}

/// Installs what the file `requirements` names beside `python`; `failure` as for [`make`].
pub(crate) fn install(python: &Path, requirements: &Path, failure: &str) -> Result<()> {
    let mut pip = Command::new(python);
    run(pip.args(["-m", "pip"]).args(INSTALL).arg("--requirement").arg(requirements), failure)
}

/// Removes `folder`, if it `is_ours`.
pub(crate) fn remove(folder: &Path, is_ours: bool) -> Result<()> {
    if !is_ours {
        say(format!("There is no {} of the set-up's.", folder.display()));
        return Ok(());
    }
    std::fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    say(format!("Removed {}.", folder.display()));
    Ok(())
}

fn run(command: &mut Command, failure: &str) -> Result<()> {
    let status = for_itself(command).status().with_context(|| format!("`{}` does not start", command.get_program().display()))?;
    if status.success() { Ok(()) } else { bail!("{failure} ({status})") }
}

/// What cargo or the user set for another Python must not steer this one.
pub(crate) fn for_itself(command: &mut Command) -> &mut Command {
    for variable in ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(variable);
    }
    // A virtual environment refuses what pip's settings send to the user's folder. The variable wins over them.
    command.env("PIP_USER", "0")
}
