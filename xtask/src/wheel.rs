//! `cargo xtask wheel`: the Python package as one file, for every Linux with this processor and a C library of 2014 or later.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::libtorch::{self, Devices};
use crate::processor::Processor;
use crate::python::{self, Environments};
use crate::report::say;
use crate::{package, prerequisites, third_party, workspace};

/// Where the file goes, in the workspace's target folder.
const FOLDER: &str = "wheels";
/// Where the native part with the libtorch engine is built, beside it.
const FOLDER_WITH_LIBTORCH: &str = "with-libtorch";
/// Largest file that a newcomer should have to fetch.
const LIMIT_BYTES: u64 = 25 << 20;

/// Builds the wheel, and says where it is and how large.
pub(crate) fn wheel(processor: Processor) -> Result<()> {
    // A wheel for another processor has no part with libtorch.
    let compiler = (processor == Processor::HOST).then(prerequisites::cpp_compiler);
    prerequisites::require([processor.standard_library()].into_iter().chain(compiler))?;
    let Environments::InPython(base) = python::provide()? else {
        bail!("there is no Python to build the package with; `cargo xtask doctor` says what is missing")
    };
    if let Some(obstacle) = package::obstacle(&base) {
        bail!("{obstacle}")
    }
    let programs = package::provide(&base)?;
    package::install(&programs, "requirements-wheel.txt")?;
    let folder = package::folder();
    let _lock = package::lock_for_wheel(&folder)?;
    // A wheel that this one has waited for may have been interrupted, or have been for another processor.
    package::remove_wheel_parts(&folder)?;
    third_party::write_licenses(processor, &programs, &folder.join(package::THIRD_PARTY_LICENSES))?;
    if processor == Processor::HOST {
        add_libtorch(&programs, &folder)?;
    }
    let built = build(processor, &programs);
    package::remove_wheel_parts(&folder)?;
    let wheel = built?;
    let bytes = std::fs::metadata(&wheel)?.len();
    ensure!(bytes <= LIMIT_BYTES, "{} has {bytes} bytes, more than {LIMIT_BYTES}", wheel.display());
    say(format!("{} ({:.1} MB)", wheel.display(), bytes as f64 / 1e6));
    Ok(())
}

/// Builds the wheel, which fits every Linux with the processor.
fn build(processor: Processor, programs: &Path) -> Result<PathBuf> {
    let folder = package::target(&workspace::root()).join(FOLDER);
    for earlier in wheels(&folder, processor) {
        std::fs::remove_file(earlier)?;
    }
    let mut command = package::command(programs, "maturin");
    // zig links against an old C library, so that the file serves older systems than this one, and for other processors.
    command.args(["build", "--release", "--zig", "--compatibility", "manylinux2014", "--target", processor.target(), "--out"]).arg(&folder);
    name_commit(&mut command);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", std::env::join_paths([programs.to_path_buf()].into_iter().chain(std::env::split_paths(&path)))?);
    ensure!(command.status()?.success(), "the wheel could not be built");
    let wheels = wheels(&folder, processor);
    let [wheel] = wheels.as_slice() else { bail!("{} holds {} wheels, and one was to be built", folder.display(), wheels.len()) };
    Ok(wheel.clone())
}

/// Builds the native part with the libtorch engine. It is linked with the C library and the C++ library of this machine, since that is
/// what libtorch is linked with.
fn add_libtorch(programs: &Path, folder: &Path) -> Result<()> {
    let libtorch = libtorch::provide(Devices::Cpu)?;
    let target = package::target(&workspace::root()).join(FOLDER_WITH_LIBTORCH);
    let mut command = command_with_libtorch(programs, &target);
    libtorch.hand_to(&mut command);
    name_commit(&mut command);
    ensure!(command.status()?.success(), "the native part with libtorch could not be built");
    std::fs::copy(built_with_libtorch(&target), folder.join(package::NATIVE_WITH_LIBTORCH))?;
    let (version, _) = libtorch::VERSION.rsplit_once('.').unwrap_or((libtorch::VERSION, ""));
    std::fs::write(folder.join(package::LIBTORCH_VERSION), version)?;
    Ok(())
}

/// The command that builds the native part with the libtorch engine in the folder `target`. It names the processor, since the user's
/// settings may name another one. The folder must be its own, since maturin builds the part without libtorch under the same name.
fn command_with_libtorch(programs: &Path, target: &Path) -> Command {
    let mut command = package::command(programs, "cargo");
    command.args(["rustc", "--release", "--features", "pyo3/extension-module,torch", "--target", Processor::HOST.target(), "--target-dir"]);
    command.arg(target).args(["--", "-C", "strip=symbols"]);
    // The interpreter has loaded PyTorch's libtorch before it loads this.
    command.env("SHOAL_LIBTORCH_AT_START", "1");
    command
}

/// The library that [`command_with_libtorch`] builds in `target`.
fn built_with_libtorch(target: &Path) -> PathBuf {
    target.join(Processor::HOST.target()).join("release/lib_native.so")
}

/// Lets a build give its programs a version with the commit that is checked out, if there is one.
fn name_commit(build: &mut Command) {
    if let Some(version) = version_with_commit(&workspace::root()) {
        build.env("SHOAL_VERSION", version);
    }
}

/// The version of a package that is built from what git has checked out in `folder`; `None` if that is an archive.
fn version_with_commit(folder: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--abbrev=10", "--dirty=.changed", "--exclude=*"]).current_dir(folder);
    // A repository around an archive is another project's.
    git.env("GIT_CEILING_DIRECTORIES", folder.parent()?);
    let described = git.output().ok().filter(|output| output.status.success())?;
    Some(format!("{}+{}", env!("CARGO_PKG_VERSION"), String::from_utf8_lossy(&described.stdout).trim()))
}

fn wheels(folder: &Path, processor: Processor) -> Vec<PathBuf> {
    let end = format!("{}.whl", processor.name());
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.to_str().is_some_and(|path| path.ends_with(&end))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extra_for_libtorch_installs_the_version_that_it_is_built_for() {
        let project = std::fs::read_to_string(workspace::root().join("python/pyproject.toml")).unwrap();
        let (version, _) = libtorch::VERSION.rsplit_once('.').unwrap();
        assert!(project.contains(&format!("torch = [\"torch=={version}.*\"]")), "libtorch {version} is another version than PyTorch's");
    }

    #[test]
    fn a_package_names_the_commit_that_it_is_built_from_unless_that_comes_in_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(version_with_commit(folder.path()), None);
        git(&["init"]);
        let settings = ["-c", "user.name=somebody", "-c", "user.email=somebody@nowhere", "-c", "commit.gpgsign=false"];
        git(&[&settings[..], &["commit", "--allow-empty", "--message=first"]].concat());
        let commit = git(&["rev-parse", "--short=10", "HEAD"]).stdout;
        let version = format!("{}+{}", env!("CARGO_PKG_VERSION"), String::from_utf8(commit).unwrap().trim());
        assert_eq!(version_with_commit(folder.path()), Some(version));
        let archive = folder.path().join("archive");
        std::fs::create_dir(&archive).unwrap();
        assert_eq!(version_with_commit(&archive), None);
    }

    #[test]
    fn the_part_with_libtorch_is_taken_from_where_it_is_built_whatever_the_users_settings_say() {
        let folder = Path::new("/x/target");
        let command = command_with_libtorch(Path::new("/x/bin"), folder);
        let words: Vec<_> = command.get_args().collect();
        let value = |name: &str| words.iter().position(|word| *word == name).map(|at| Path::new(words[at + 1]));
        let named = value("--target-dir").unwrap().join(value("--target").unwrap());
        assert!(built_with_libtorch(folder).starts_with(named), "{words:?}");
    }
}
