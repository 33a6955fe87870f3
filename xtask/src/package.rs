//! The Python package in `python/`: the environment in which it is built and tested.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::lock::SetupLock;
use crate::processor::Processor;
use crate::report::{duration, say};
use crate::virtual_environment::{self, INSTALLED, interpreter, is_complete, runs};
use crate::workspace;

const FOLDER: &str = "python";
/// The native part with the libtorch engine, in the package's folder; made for a wheel alone.
pub(crate) const NATIVE_WITH_LIBTORCH: &str = "shoal/_libtorch/_native.abi3.so";
/// The version of PyTorch that this native part needs, in the package's folder; made for a wheel alone.
pub(crate) const LIBTORCH_VERSION: &str = "shoal/_libtorch/version";
/// The licences of all crates in a wheel, in the package's folder; made for a wheel alone. `pyproject.toml` has a pattern for
/// such names.
pub(crate) const THIRD_PARTY_LICENSES: &str = "LICENSE-third-party";
/// The name of the lock under which the parts of a wheel are made, in `python/`.
const WHEEL: &str = ".wheel";
/// Folder of the virtual environment, in `python/`.
const ENVIRONMENT: &str = ".venv";
/// File with the requirements of the package's tests, in `python/`.
const TESTS: &str = "requirements-test.txt";
/// The oldest Python that the package supports, as its `pyproject.toml` says. Environments in Python also run in older ones.
const OLDEST: (u32, u32) = (3, 11);
/// Names the folder of the workspace's programs to the package's tests.
const PROGRAMS: &str = "SHOAL_TEST_PROGRAMS";
/// The error if the virtual environment cannot be made.
const FAILURE: &str = "python/.venv could not be made; check the network connection and try again";

/// Makes `python/.venv` of the interpreter in `base`, if need be, and returns the folder of its programs.
pub(crate) fn provide(base: &Path) -> Result<PathBuf> {
    let package = folder();
    remove_parts_of_interrupted_wheel(&package)?;
    let (folder, wanted) = (package.join(ENVIRONMENT), package.join(TESTS));
    let requirements = std::fs::read_to_string(&wanted).with_context(|| wanted.display().to_string())?;
    if is_usable(&folder, &requirements) {
        return Ok(folder.join("bin"));
    }
    let _lock = SetupLock::acquire(&package, ENVIRONMENT)?;
    // Another set-up may have finished while this one waited for the lock.
    if is_usable(&folder, &requirements) {
        return Ok(folder.join("bin"));
    }
    virtual_environment::refuse_anothers(&folder)?;
    let start = std::time::Instant::now();
    virtual_environment::make(&interpreter(base), &folder, true, FAILURE)?;
    virtual_environment::install(&interpreter(&folder), &wanted, FAILURE)?;
    let installed = folder.join(INSTALLED);
    std::fs::write(&installed, requirements).with_context(|| installed.display().to_string())?;
    say(format!("The environment of the Python package was set up in {}.", duration(start.elapsed())));
    Ok(folder.join("bin"))
}

/// Whether all of `requirements` was installed in `folder` and its interpreter still finds it. An upgrade of the system may have removed or
/// replaced that interpreter.
fn is_usable(folder: &Path, requirements: &str) -> bool {
    is_complete(folder, requirements) && runs(&interpreter(folder), "import pytest")
}

/// Removes `python/.venv`, if it was made here.
pub(crate) fn remove() -> Result<()> {
    let package = folder();
    let _lock = SetupLock::acquire(&package, ENVIRONMENT)?;
    virtual_environment::remove(&package.join(ENVIRONMENT))
}

/// Why the package cannot be built and tested with the interpreter in `base`, if it cannot.
pub(crate) fn obstacle(base: &Path) -> Option<String> {
    let python = interpreter(base);
    let (major, minor) = OLDEST;
    let is_new_enough = runs(&python, &format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))"));
    (!is_new_enough).then(|| {
        format!(
            "the Python package needs Python {major}.{minor} or later, and {} is older; remove it and name a newer one:  rm -r {} && \
             PYO3_PYTHON=python3.12 cargo xtask setup",
            python.display(),
            base.display()
        )
    })
}

/// The folder of the package.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join(FOLDER)
}

/// The right to put the parts of a wheel among the files of `package`, where every build finds them.
pub(crate) fn lock_for_wheel(package: &Path) -> Result<SetupLock> {
    SetupLock::acquire(package, WHEEL)
}

/// Removes what an interrupted `cargo xtask wheel` has left: it would be part of whatever is built. What a running one has made stays.
fn remove_parts_of_interrupted_wheel(package: &Path) -> Result<()> {
    match SetupLock::try_acquire(package, WHEEL)? {
        Some(_lock) => remove_wheel_parts(package),
        None => Ok(()),
    }
}

/// Removes what is made for a wheel alone from the package's folder.
pub(crate) fn remove_wheel_parts(package: &Path) -> Result<()> {
    for name in [NATIVE_WITH_LIBTORCH, LIBTORCH_VERSION, THIRD_PARTY_LICENSES] {
        match std::fs::remove_file(package.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => bail!("{}: {error}", package.join(name).display()),
            _ => {}
        }
    }
    Ok(())
}

/// Installs what the file `requirements` of the package names, beside the interpreter in `programs`.
pub(crate) fn install(programs: &Path, requirements: &str) -> Result<()> {
    let package = folder();
    let _lock = SetupLock::acquire(&package, ENVIRONMENT)?;
    virtual_environment::install(&programs.join("python"), &package.join(requirements), FAILURE)
}

/// A command of the package's stages: a program of its environment, or cargo, in its folder. Builds share the
/// workspace's target folder, and with it most of what they depend on. Tests find the workspace's programs beside this one.
pub(crate) fn command(programs: &Path, program: &str) -> Command {
    let root = workspace::root();
    let mut command = if program == "cargo" { workspace::cargo() } else { Command::new(programs.join(program)) };
    virtual_environment::for_itself(&mut command).current_dir(root.join(FOLDER));
    command.env("CARGO_TARGET_DIR", target(&root)).env("VIRTUAL_ENV", programs.with_file_name(""));
    command.envs(std::env::current_exe().ok().map(|program| (PROGRAMS, program.with_file_name(""))));
    command
}

/// The workspace's target folder: what `CARGO_TARGET_DIR` names, or else the one that this program was built in, since cargo's own settings
/// may name one too.
pub(crate) fn target(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) {
        // Absolute, because a command that is given it may run in another folder.
        Some(folder) => std::path::absolute(&folder).unwrap_or(folder),
        None => std::env::current_exe().ok().and_then(|program| target_of(&program)).unwrap_or_else(|| root.join("target")),
    }
}

/// The target folder in which cargo has built `program`; `None` if the program does not lie where cargo puts it.
fn target_of(program: &Path) -> Option<PathBuf> {
    let profile = program.parent().filter(|folder| folder.ends_with("debug") || folder.ends_with("release"))?;
    // If cargo's settings name a processor, there is a folder for it.
    let outer = profile.parent()?;
    let target = if outer.ends_with(Processor::HOST.target()) { outer.parent()? } else { outer };
    Some(target.to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn no_other_environment_than_its_own_steers_a_stage() {
        let command = command(Path::new("/x/bin"), "maturin");
        let variables: Vec<_> = command.get_envs().collect();
        for other in ["CONDA_PREFIX", "PYTHONPATH"] {
            assert!(variables.contains(&(OsStr::new(other), None)), "{other}");
        }
        assert!(variables.contains(&(OsStr::new("PIP_USER"), Some(OsStr::new("0")))));
        assert!(variables.iter().any(|(name, value)| *name == "VIRTUAL_ENV" && value.is_some()));
        let programs = std::env::current_exe().unwrap().with_file_name("");
        assert!(variables.contains(&(OsStr::new(PROGRAMS), Some(programs.as_os_str()))), "tests find the programs beside this one");
    }

    #[test]
    fn the_target_folder_is_the_one_that_cargo_has_built_this_program_in() {
        let processor = Processor::HOST.target();
        for program in ["debug/xtask".to_owned(), "release/xtask".to_owned(), format!("{processor}/debug/xtask")] {
            let target = Path::new("/large/built");
            assert_eq!(target_of(&target.join(&program)).as_deref(), Some(target), "{program}");
        }
        for elsewhere in ["/usr/local/bin/xtask", "/large/built/debug/deps/xtask-0123456789abcdef", "xtask"] {
            assert_eq!(target_of(Path::new(elsewhere)), None, "{elsewhere}");
        }
    }

    #[test]
    fn an_environment_whose_python_is_gone_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(INSTALLED), "pytest\n").unwrap();
        let inside = interpreter(folder.path());
        std::fs::create_dir(inside.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/no/such/python", inside).unwrap();
        assert!(is_complete(folder.path(), "pytest\n"));
        assert!(!is_usable(folder.path(), "pytest\n"));
    }

    #[test]
    fn what_an_interrupted_wheel_has_left_is_removed_and_nothing_else() {
        let package = tempfile::tempdir().unwrap();
        let kept = ["shoal/_libtorch/__init__.py", "LICENSE-MIT"];
        std::fs::create_dir_all(package.path().join("shoal/_libtorch")).unwrap();
        for name in [&kept[..], &[NATIVE_WITH_LIBTORCH, LIBTORCH_VERSION, THIRD_PARTY_LICENSES]].concat() {
            std::fs::write(package.path().join(name), "").unwrap();
        }
        let lock = lock_for_wheel(package.path()).unwrap();
        remove_parts_of_interrupted_wheel(package.path()).unwrap();
        assert!(package.path().join(NATIVE_WITH_LIBTORCH).exists(), "a wheel is being built");
        drop(lock);
        remove_parts_of_interrupted_wheel(package.path()).unwrap();
        let count = |folder: &str| std::fs::read_dir(package.path().join(folder)).unwrap().count();
        assert!(kept.iter().all(|name| package.path().join(name).exists()));
        // The file of the lock stays.
        assert_eq!((count("shoal/_libtorch"), count("")), (1, 3));
        remove_wheel_parts(package.path()).expect("there is nothing left to remove");
    }
}
