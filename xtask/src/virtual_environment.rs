//! Virtual environments of Python: made with or without `ensurepip`, and filled by pip.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::report::say;

/// File with the requirements that were installed. It is empty until all of them are: whoever has an environment made writes them last. An
/// environment without this file was not made by the set-up.
pub(crate) const INSTALLED: &str = "shoal-requirements.txt";

const INSTALL: [&str; 3] = ["install", "--disable-pip-version-check", "--quiet"];

/// Whether all of `requirements`, the text of a file, was installed in `folder`.
pub(crate) fn is_complete(folder: &Path, requirements: &str) -> bool {
    std::fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == requirements)
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

/// Makes `folder` a virtual environment of `python` that has pip; if `anew`, removes what is there first. `failure` is the error if a
/// command fails; the command's own message stands above it.
pub(crate) fn make(python: &Path, folder: &Path, anew: bool, failure: &str) -> Result<()> {
    begin(folder, anew).with_context(|| format!("{} cannot be made", folder.display()))?;
    let has_ensurepip = runs(python, "import ensurepip");
    let mut venv = Command::new(python);
    venv.args(["-m", "venv"]);
    if !has_ensurepip {
        venv.arg("--without-pip");
    }
    run(venv.arg(folder), failure)?;
    if has_ensurepip {
        return Ok(());
    }
    // Some distributions leave out `ensurepip`. Their pip can install another pip in the environment.
    let mut pip = Command::new(python);
    run(pip.args(["-m", "pip", "--python"]).arg(interpreter(folder)).args(INSTALL).arg("pip"), failure)
}

/// Marks `folder` as made by the set-up, before anything that may be interrupted; if `anew`, removes everything else in it.
fn begin(folder: &Path, anew: bool) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(INSTALLED), "")?;
    if !anew {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != INSTALLED {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Installs what the file `requirements` names beside `python`; `failure` as for [`make`].
pub(crate) fn install(python: &Path, requirements: &Path, failure: &str) -> Result<()> {
    let mut pip = Command::new(python);
    run(pip.args(["-m", "pip"]).args(INSTALL).arg("--requirement").arg(requirements), failure)
}

/// Fails if `folder` holds anything that the set-up did not make, and so must not change.
pub(crate) fn refuse_anothers(folder: &Path) -> Result<()> {
    let is_empty = std::fs::read_dir(folder).into_iter().flatten().next().is_none();
    ensure!(
        is_empty || is_ours(folder),
        "{} was not made by the set-up, which leaves it as it is. Move it elsewhere, or remove it, and repeat the command",
        folder.display()
    );
    Ok(())
}

/// Whether the set-up has made `folder`, or has begun to.
fn is_ours(folder: &Path) -> bool {
    folder.join(INSTALLED).is_file()
}

/// Removes `folder`, if the set-up has made it.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    if !is_ours(folder) {
        say(format!("There is no {} that the set-up made.", folder.display()));
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

/// `command` without the variables that cargo or the user has set for another Python.
pub(crate) fn for_itself(command: &mut Command) -> &mut Command {
    for variable in ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(variable);
    }
    // If pip's settings say `user`, pip refuses to install in a virtual environment. The variable overrides them.
    command.env("PIP_USER", "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_of_somebody_elses_is_neither_taken_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        refuse_anothers(folder.path()).expect("an empty folder is nobody's");
        let own = folder.path().join("pyvenv.cfg");
        std::fs::write(&own, "").unwrap();
        let error = refuse_anothers(folder.path()).unwrap_err().to_string();
        assert!(error.contains("was not made by the set-up"), "{error}");
        remove(folder.path()).unwrap();
        assert!(own.exists());
    }

    #[test]
    fn an_environment_is_the_set_ups_from_its_beginning_on_also_where_it_is_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".venv");
        begin(&folder, false).unwrap();
        std::fs::create_dir_all(folder.join("lib/python3.11")).unwrap();
        std::fs::write(folder.join("pyvenv.cfg"), "").unwrap();
        std::fs::write(folder.join(INSTALLED), "numpy\n").unwrap();
        assert!(is_complete(&folder, "numpy\n"));
        begin(&folder, true).unwrap();
        refuse_anothers(&folder).expect("it was begun");
        assert!(!is_complete(&folder, "numpy\n"));
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [INSTALLED]);
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }
}
