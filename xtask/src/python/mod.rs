//! The Python that environments run in: `.venv` in the workspace's root, with the packages of `requirements.txt`.
//!
//! Programs link its libpython, so it is made of a Python that has a shared one. A machine without such a Python still
//! builds and trains native environments: the feature `python` is then left out, and a line says how to get it.

mod candidate;
mod folder;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::lock::SetupLock;
use crate::report::{duration, say};
use crate::virtual_environment::{self, interpreter, runs};
use crate::workspace;

pub(crate) use candidate::Obstacle;

const FOLDER: &str = ".venv";
/// The features of a build on a machine without a Python to embed.
const FEATURES_WITHOUT_PYTHON: [&str; 3] = ["--no-default-features", "--features", "torch"];

/// Which environments a build can have.
#[derive(Debug)]
pub(crate) enum Environments {
    /// All of them, with the interpreter in this folder.
    InPython(PathBuf),
    /// Native ones alone, for this reason.
    NativeAlone(Obstacle),
}

impl Environments {
    /// Whether environments in Python are among them.
    pub(crate) fn are_in_python(&self) -> bool {
        matches!(self, Self::InPython(_))
    }

    /// What a cargo command that builds the default features needs in addition.
    pub(crate) fn features(&self) -> &'static [&'static str] {
        if self.are_in_python() { &[] } else { &FEATURES_WITHOUT_PYTHON }
    }
}

impl fmt::Display for Environments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPython(folder) => write!(formatter, "Python for environments is ready: {}.", folder.display()),
            Self::NativeAlone(obstacle) => write!(formatter, "Building without environments in Python: {obstacle}"),
        }
    }
}

/// What a build would have now, or `None` if a Python has to be set up first.
///
/// # Errors
///
/// If `.venv` was not made by the set-up, or is of another version than the Python that the user has named.
pub(crate) fn find() -> Result<Option<Environments>> {
    let folder = workspace::root().join(FOLDER);
    if folder::check(&folder).is_ok() {
        return ready(folder, candidate::named()).map(Some);
    }
    match candidate::best() {
        Ok(_) => virtual_environment::refuse_anothers(&folder).map(|()| None),
        Err(obstacle) => Ok(Some(Environments::NativeAlone(obstacle))),
    }
}

/// Makes `.venv` if need be. If this machine has no Python to embed, says so and succeeds.
pub(crate) fn provide() -> Result<Environments> {
    let root = workspace::root();
    let folder = root.join(FOLDER);
    if folder::check(&folder).is_ok() {
        return ready(folder, candidate::named());
    }
    let _lock = SetupLock::acquire(&root, FOLDER)?;
    // Another set-up may have finished while this one waited for the lock.
    let Err(reason) = folder::check(&folder) else { return ready(folder, candidate::named()) };
    match candidate::best() {
        Ok(python) => {
            virtual_environment::refuse_anothers(&folder)?;
            say(format!("Making {} with {} for environments in Python ({reason:#}).", folder.display(), python.display()));
            make(&python, &folder)?;
            Ok(Environments::InPython(folder))
        }
        Err(obstacle) => {
            let without = Environments::NativeAlone(obstacle);
            say(&without);
            Ok(without)
        }
    }
}

/// The complete `folder`, unless builds link a Python that the user has `named` and that its packages do not fit.
fn ready(folder: PathBuf, named: Option<Result<PathBuf, Obstacle>>) -> Result<Environments> {
    match named {
        Some(Err(obstacle)) => bail!("{}, which uses {}", obstacle.reason, folder.display()),
        Some(Ok(python)) if !candidate::are_alike(&interpreter(&folder), &python) => bail!(
            "PYO3_PYTHON names {}, and {} is of another version of Python. Run `unset PYO3_PYTHON` to keep that folder, or make it \
             again:  {}",
            python.display(),
            folder.display(),
            command_to_remake(&folder, &python)
        ),
        _ => Ok(Environments::InPython(folder)),
    }
}

/// The command that makes `folder` again, as an environment of `python`.
fn command_to_remake(folder: &Path, python: &Path) -> String {
    format!("rm -r {} && PYO3_PYTHON={} cargo xtask setup", folder.display(), python.display())
}

/// Makes or completes `folder`; its last file is what says that it is complete.
fn make(python: &Path, folder: &Path) -> Result<()> {
    const REMEDY: &str = "its own message is above. Check the network connection and try again, or train without Python:  \
                          cargo run --release --no-default-features --features torch -- train CONFIG";
    let start = std::time::Instant::now();
    let inside = interpreter(folder);
    // If its interpreter does not run, the Python that it was made from is gone, as after an upgrade of the system, and so its packages are
    // of no use.
    let anew = folder.exists() && !runs(&inside, "");
    if !anew && folder.exists() && !is_of(folder, python) {
        let (place, remake) = (folder.display(), command_to_remake(folder, python));
        bail!("{place} was made from another Python than {}. Remove it and repeat:  {remake}", python.display());
    }
    virtual_environment::make(python, folder, anew, &format!("Python could not make the virtual environment; {REMEDY}"))?;
    let requirements = folder::requirements_file();
    virtual_environment::install(&inside, &requirements, &format!("pip could not install the packages; {REMEDY}"))?;
    folder::complete(folder)?;
    say(format!("Python for environments was set up in {}.", duration(start.elapsed())));
    Ok(())
}

/// Whether the virtual environment `folder` was made from `python`. With the packages of two Pythons it would work with neither.
fn is_of(folder: &Path, python: &Path) -> bool {
    matches!((interpreter(folder).canonicalize(), python.canonicalize()), (Ok(inside), Ok(python)) if inside == python)
}

/// Removes `.venv`, if the set-up has made it.
pub(crate) fn remove() -> Result<()> {
    let root = workspace::root();
    let _lock = SetupLock::acquire(&root, FOLDER)?;
    virtual_environment::remove(&root.join(FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_python_to_embed_leaves_its_feature_out_and_says_how_to_get_it() {
        let without = Environments::NativeAlone(Obstacle::missing("python3 has no shared library"));
        assert_eq!(without.features(), ["--no-default-features", "--features", "torch"]);
        let line = without.to_string();
        assert!(line.contains("python3 has no shared library") && line.contains("cargo xtask setup") && !line.contains('\n'), "{line}");
        assert!(Environments::InPython(PathBuf::new()).features().is_empty());
    }

    #[test]
    fn a_complete_environment_is_refused_where_builds_link_a_python_that_it_does_not_fit() {
        let folder = Path::new("/checkout/.venv");
        assert!(ready(folder.into(), None).unwrap().are_in_python());
        let refusal = |named| ready(folder.into(), Some(named)).unwrap_err().to_string();
        let another = refusal(Ok("/no/such/python3.12".into()));
        let command = "rm -r /checkout/.venv && PYO3_PYTHON=/no/such/python3.12 cargo xtask setup";
        assert!(another.ends_with(command) && another.contains("`unset PYO3_PYTHON`"), "{another}");
        assert!(refusal(Err(Obstacle::missing("PYO3_PYTHON is set to \"python3.14\""))).contains("python3.14"));
    }

    #[test]
    fn a_folder_is_of_the_python_that_its_links_end_at() {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python3.12");
        let other = folder.path().join("python3.13");
        let inside = interpreter(folder.path());
        std::fs::write(&python, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::fs::create_dir(inside.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&python, &inside).unwrap();
        assert!(is_of(folder.path(), &python) && is_of(folder.path(), &inside) && !is_of(folder.path(), &other));
    }
}
